"""Judges of consumer groups: what members and their tools were answered, and what contradicts it.

| check | where |
|---|---|
| no partition has two owners, as each protocol has it; none stays unowned | ownership.py |
| a commit answered ok is not forgotten, nothing deleted comes back | committed_offsets.py |
| the commit of a fenced or refused member never counts | fenced_commits.py |
| no generation that was given out is denied by a later coordinator | generations.py |
| what was committed is not given out again; what a group got twice or never | deliveries.py |
| no member epoch that was given out is denied by a later coordinator | member_epochs.py |
| every request is answered, or its connection ends | group_checks.py |

group_history.py has the operations, member_partitions.py who held what in a KIP-848 group, and
group_checks.py applies every check to a history of them.
"""
