"""Leadership: one leader for each leader epoch, elections that were allowed, epochs that grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidelog.judge.anomalies import ELECTION_ALLOWED, EPOCHS_GROW, ONE_LEADER
from tidelog.judge.cluster.cluster_model import ClusterModel, Violation, violation
from tidelog.judge.cluster.facts import (
    Incarnation,
    ObservedBroker,
    ObservedPartition,
    ObservedReplica,
)
from tidelog.judge.cluster.log_copies import LogCopy, common_end
from tidelog.judge.excuses import ElectionSource


class Leaderships:
    """Who led in which leader epoch, over the whole run."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[str, int], Incarnation] = {}
        self._named: dict[tuple[str, int], int] = {}

    def on_replica(self, replica: ObservedReplica) -> Iterator[Violation]:
        """A node in its next life is another leader: it needs a new leader epoch."""
        if not replica.is_leader:
            return
        key = (replica.partition, replica.leader_epoch)
        first = self._leaders.setdefault(key, replica.incarnation)
        if first != replica.incarnation:
            yield violation(
                ONE_LEADER,
                replica.partition,
                leader_epoch=replica.leader_epoch,
                first=first,
                second=replica.incarnation,
            )

    def on_partition(self, partition: ObservedPartition) -> Iterator[Violation]:
        if partition.leader is None:
            return
        key = (partition.partition, partition.leader_epoch)
        first = self._named.setdefault(key, partition.leader)
        if first != partition.leader:
            yield violation(
                ONE_LEADER,
                partition.partition,
                first_leader=first,
                second_leader=partition.leader,
                leader_epoch=partition.leader_epoch,
            )


class Candidates:
    """With which registration each in-sync or eligible replica got onto its list."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], int] = {}
        self._left: dict[tuple[str, int], int] = {}

    def on_partition(self, facts: ObservedPartition, brokers: Mapping[int, ObservedBroker]) -> None:
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
        self, partition: str, node_id: int, brokers: Mapping[int, ObservedBroker]
    ) -> bool:
        """Whether a former member has registered anew since: it proved nothing about its log."""
        broker = brokers.get(node_id)
        since = self._left.get((partition, node_id))
        return broker is None or since is None or broker.broker_epoch > since


def election_between(
    before: ObservedPartition | None, after: ObservedPartition
) -> ElectionSource | None:
    """How the leader was chosen; None: nobody was elected."""
    if after.leader is None or (before is not None and after.leader_epoch <= before.leader_epoch):
        return None
    if before is None or after.leader in before.isr | before.eligible:
        return ElectionSource.CLEAN
    ended = before.is_moving and not after.is_moving and not after.leader_is_recovering
    if ended and after.leader in before.replicas:
        return ElectionSource.CLEAN  # the last leader let it in, which ended a reassignment
    if after.isr == {after.leader} and after.leader in before.last_known_leaders:
        return ElectionSource.LAST_KNOWN
    return ElectionSource.UNCLEAN


def election_not_allowed(
    before: ObservedPartition,
    after: ObservedPartition,
    candidates: Candidates,
    brokers: Mapping[int, ObservedBroker],
) -> Iterator[Violation]:
    """An unclean leader needs a topic that allows it; the last known one that nobody is left.

    Elections that an administrator asked for are not judged here: as in Kafka, ElectLeaders with
    type UNCLEAN does not ask for the topic's setting.
    Nobody is left when everyone who was in sync or eligible has come back without the proof of a
    clean stop; the last of them to do so may be in the same batch of records.
    """
    election = election_between(before, after)
    if election in (None, ElectionSource.CLEAN) or after.allows_unclean or before.allows_unclean:
        return
    left_out = [
        node_id
        for node_id in sorted((before.isr | before.eligible) - {after.leader})
        if not candidates.has_returned(after.partition, node_id, brokers)
    ]
    if election is ElectionSource.UNCLEAN or left_out:
        yield violation(
            ELECTION_ALLOWED,
            after.partition,
            leader=after.leader,
            leader_epoch=after.leader_epoch,
            isr=sorted(before.isr),
            eligible=sorted(before.eligible),
            last_known=before.last_known_leaders,
        )


def partition_epochs(
    before: ObservedPartition | None, after: ObservedPartition
) -> Iterator[Violation]:
    """One step for each change; a new leader needs a new leader epoch."""
    if before is None:
        return
    if after.partition_epoch <= before.partition_epoch:
        yield violation(
            EPOCHS_GROW,
            after.partition,
            partition_epoch=after.partition_epoch,
            partition_epoch_before=before.partition_epoch,
        )
    is_new_leader = after.leader is not None and after.leader != before.leader
    least = before.leader_epoch + 1 if is_new_leader else before.leader_epoch
    if after.leader_epoch < least:
        yield violation(
            EPOCHS_GROW,
            after.partition,
            leader=after.leader,
            leader_epoch=after.leader_epoch,
            leader_before=before.leader,
            leader_epoch_before=before.leader_epoch,
        )


def broker_epochs(before: ObservedBroker | None, after: ObservedBroker) -> Iterator[Violation]:
    """The broker epoch of a registration never goes back."""
    if before is not None and after.broker_epoch < before.broker_epoch:
        yield violation(
            EPOCHS_GROW,
            "-",
            broker=after.broker_id,
            broker_epoch=after.broker_epoch,
            broker_epoch_before=before.broker_epoch,
        )


class Predecessors:
    """The newest leader of each partition, and what of its log the winner of an election kept.

    A leader that loses its power is compared as it was: what comes back may be another log. With
    the new end of a log, a power loss may also take back that an old one was deleted.
    """

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._led_by: dict[str, int] = {}
        self._led_with: dict[str, LogCopy] = {}
        """The logs of leaders that may have lost something since."""

    def on_tails_lost(self, node_id: int, partitions: Iterable[str]) -> None:
        """Called before the node shows what is left; only the first of several losses counts."""
        for partition in partitions:
            if self._led_by.get(partition) == node_id and partition not in self._led_with:
                self._led_with[partition] = self._model.log_copy(partition, node_id).copy()

    def leader_of(self, partition: str) -> int | None:
        return self._led_by.get(partition)

    def kept_by(self, partition: str, winner_id: int) -> int:
        """Up to where the winner's log is what its predecessor's was; from now on it leads."""
        winner = self._model.log_copy(partition, winner_id)
        predecessor = self._led_by.get(partition)
        led_with = self._led_with.pop(partition, None)
        self._led_by[partition] = winner_id
        if led_with is None and predecessor is not None:
            led_with = self._model.log_copies[partition].get(predecessor)
        if led_with is None:
            return winner.end_offset
        kept_end_offset = common_end(winner, led_with)
        winner.inherit(led_with)
        return kept_end_offset
