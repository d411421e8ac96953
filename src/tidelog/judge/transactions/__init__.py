"""Checks of transactions: a history of producers, readers and offsets, and one check per rule.

Reading order:

- `transaction_history.py`: what producers asked and were answered, and what readers were given
- `transaction_facts.py`: which transactions are committed, aborted or unknown; who read what
- `committed_whole.py`, `aborted_reads.py`, `torn.py`: each transaction counts whole or not at all
- `stable_reads.py`, `hanging_transactions.py`: the last stable offset
- `zombies.py`: what a producer may do after another has taken its transactional id
- `transactional_offsets.py`, `transforms.py`: offsets in transactions, and exactly once
- `transaction_checks.py`: all of them
"""
