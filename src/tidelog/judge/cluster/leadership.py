"""Leadership: at most one leader for each leader epoch, and elections that were allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidelog.judge.cluster.facts import (
    BrokerFacts,
    Complaint,
    Life,
    PartitionFacts,
    ReplicaFacts,
)
from tidelog.judge.excuses import Election

ONE_LEADER = "one leader per leader epoch"
ALLOWED = "elections are clean or allowed"


class Leaderships:
    """Who led in which leader epoch, over the whole run."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[str, int], Life] = {}
        self._named: dict[tuple[str, int], int] = {}

    def on_replica(self, replica: ReplicaFacts) -> Iterator[Complaint]:
        """A node in its next life is another leader: it needs a new leader epoch."""
        if not replica.is_leader:
            return
        key = (replica.partition, replica.leader_epoch)
        first = self._leaders.setdefault(key, replica.life)
        if first != replica.life:
            yield Complaint(
                ONE_LEADER,
                replica.partition,
                f"leader epoch {replica.leader_epoch}: first {first}, then {replica.life}",
            )

    def on_partition(self, partition: PartitionFacts) -> Iterator[Complaint]:
        if partition.leader is None:
            return
        key = (partition.partition, partition.leader_epoch)
        first = self._named.setdefault(key, partition.leader)
        if first != partition.leader:
            yield Complaint(
                ONE_LEADER,
                partition.partition,
                f"metadata names {first} and {partition.leader} for {partition.leader_epoch}",
            )


class Candidates:
    """With which registration each in-sync or eligible replica got onto its list."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], int] = {}
        self._left: dict[tuple[str, int], int] = {}

    def on_partition(self, facts: PartitionFacts, brokers: Mapping[int, BrokerFacts]) -> None:
        for node_id in facts.isr | facts.eligible:
            broker = brokers.get(node_id)
            if broker is not None:
                self._since.setdefault((facts.partition, node_id), broker.broker_epoch)
        for key in [key for key in self._since if key[0] == facts.partition]:
            if key[1] not in facts.isr | facts.eligible:
                self._gone(key)

    def _gone(self, key: tuple[str, int]) -> None:
        self._left[key] = self._since.pop(key)

    def has_returned(
        self, partition: str, node_id: int, brokers: Mapping[int, BrokerFacts]
    ) -> bool:
        """Whether a former member has registered anew since: it proved nothing about its log."""
        broker = brokers.get(node_id)
        since = self._left.get((partition, node_id))
        return broker is None or since is None or broker.broker_epoch > since


def election_between(before: PartitionFacts | None, after: PartitionFacts) -> Election | None:
    """How the leader was chosen; None: nobody was elected."""
    if after.leader is None or (before is not None and after.leader_epoch <= before.leader_epoch):
        return None
    if before is None or after.leader in before.isr | before.eligible:
        return Election.CLEAN
    if after.isr == {after.leader} and after.leader in before.last_known_leaders:
        return Election.LAST_KNOWN
    return Election.UNCLEAN


def not_allowed(
    before: PartitionFacts,
    after: PartitionFacts,
    candidates: Candidates,
    brokers: Mapping[int, BrokerFacts],
) -> Iterator[Complaint]:
    """An unclean leader needs a topic that allows it; the last known one that nobody is left.

    Elections that an administrator asked for are not judged here: as in Kafka, ElectLeaders with
    type UNCLEAN does not ask for the topic's setting.
    Nobody is left when everyone who was in sync or eligible has come back without the proof of a
    clean stop; the last of them to do so may be in the same batch of records.
    """
    election = election_between(before, after)
    if election in (None, Election.CLEAN) or after.allows_unclean or before.allows_unclean:
        return
    left_out = [
        node_id
        for node_id in sorted((before.isr | before.eligible) - {after.leader})
        if not candidates.has_returned(after.partition, node_id, brokers)
    ]
    if election is Election.UNCLEAN or left_out:
        yield Complaint(
            ALLOWED,
            after.partition,
            f"leader {after.leader} in leader epoch {after.leader_epoch} was neither in sync "
            f"{sorted(before.isr)} nor eligible {sorted(before.eligible)}, last known were "
            f"{before.last_known_leaders}",
        )
