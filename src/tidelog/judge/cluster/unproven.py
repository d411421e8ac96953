"""Unproven leaders: an election that was not clean puts a replica in sync that vouched for nothing.

  1. 1 and 2 have committed up to offset 81. Both lose their power.
  2. 1 comes back with 93 records and knows of the sync of 80. It is the last known leader, leads,
     and syncs the rest. 2 fetches all of it, joins the in-sync set and remembers the mark 81.
  3. 2 is the preferred leader and is elected, cleanly. Its mark is ahead of what 1 vouches for.

Nothing is wrong with that: the mark was right when it was set. Until 1 vouches for all that it
began to lead with, a mark that is not beyond this proves nothing against it.
"""

from __future__ import annotations

from tidelog.judge.cluster.facts import PartitionFacts, ReplicaFacts
from tidelog.judge.cluster.picture import Picture


class Unproven:
    """Keeps `picture.unproven`."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._elected: dict[tuple[str, int], int] = {}
        """The leader epoch of those that have not heard of their election yet."""

    def on_unclean(self, facts: PartitionFacts) -> None:
        """An election that was not clean."""
        assert facts.leader is not None
        self._elected[(facts.partition, facts.leader)] = facts.leader_epoch

    def on_replica(self, facts: ReplicaFacts) -> None:
        unproven = self._picture.unproven
        key = (facts.partition, facts.life.node_id)
        end_offset = self._picture.mirror(*key).end_offset
        elected_in = self._elected.get(key)
        if elected_in is not None and facts.is_leader and facts.leader_epoch >= elected_in:
            del self._elected[key]
            unproven[key] = end_offset
        began_with = unproven.get(key)
        if began_with is not None and facts.held_end_offset >= min(began_with, end_offset):
            del unproven[key]

    def on_partition(self, facts: PartitionFacts) -> None:
        """Whoever leaves the set proves itself before it joins again."""
        for known in (self._elected, self._picture.unproven):
            for key in [key for key in known if key[0] == facts.partition]:
                if key[1] not in facts.isr:
                    del known[key]

    def on_down(self, node_id: int) -> None:
        """It comes back with all of its log synced, or as a stranger to the set."""
        for known in (self._elected, self._picture.unproven):
            for key in [key for key in known if key[1] == node_id]:
                del known[key]
