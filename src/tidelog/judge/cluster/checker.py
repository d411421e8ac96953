"""The checker of a cluster: takes facts in, keeps the model, and holds invariants against it.

`check_step` looks only at what was touched since the last step; `check_all` at everything. Either
way an anomaly is written down once. Elections and lost tails become excuses for the judges of the
clients' history, since they are what lets records go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tidelog.judge.anomalies import Anomaly
from tidelog.judge.cluster.cluster_model import ClusterModel, Violation
from tidelog.judge.cluster.facts import (
    METADATA,
    Incarnation,
    ObservedBatch,
    ObservedBroker,
    ObservedPartition,
    ObservedProducer,
    ObservedQuorumNode,
    ObservedReplica,
)
from tidelog.judge.cluster.high_watermark import (
    UnprovenLeaders,
    behind_maximal_isr,
    high_watermark_moved,
)
from tidelog.judge.cluster.in_sync_set import (
    joined_as_itself,
    quorum_superset,
    recovery_quorum,
    sound_sets,
)
from tidelog.judge.cluster.leadership import (
    Candidates,
    Leaderships,
    Predecessors,
    broker_epochs,
    election_between,
    election_not_allowed,
    partition_epochs,
)
from tidelog.judge.cluster.log_invariants import (
    batches_match,
    candidate_completeness,
    cut_too_deep,
    leader_completeness,
    log_matching,
    no_committed_lost,
    producer_state,
    proposed_completeness,
    synced_is_durable,
)
from tidelog.judge.cluster.metadata_quorum import (
    Votes,
    applied_is_committed,
    image_differs,
    quorum_leader_completeness,
    quorum_majority,
)
from tidelog.judge.cluster.paused_leaders import PausedLeaders, PausedTime
from tidelog.judge.cluster.reassignment import replicas_moved
from tidelog.judge.excuses import BatchesForgotten, ElectionHeld, ElectionSource, Excuse, TailLost

STATE_INVARIANTS: tuple[Callable[[ClusterModel, str], Iterator[Violation]], ...] = (
    leader_completeness,
    candidate_completeness,
    proposed_completeness,
    behind_maximal_isr,
    sound_sets,
    quorum_superset,
    recovery_quorum,
    no_committed_lost,
    quorum_leader_completeness,
    quorum_majority,
)
"""What must hold after every step, for each partition that the step touched."""

WHOLE_INVARIANTS: tuple[Callable[[ClusterModel, str], Iterator[Violation]], ...] = (
    *STATE_INVARIANTS,
    log_matching,
)
"""The same and what costs more, now and then for all partitions."""


# Size: one class with an input for every kind of fact; splitting it would split its state.
class ClusterChecker:
    """Inputs: on_*. Outputs: anomalies and excuses."""

    def __init__(self, *, now_us: Callable[[], int]) -> None:
        self.model = ClusterModel()
        self.anomalies: list[Anomaly] = []
        self.elections = 0
        self._now_us = now_us
        self._touched: dict[str, None] = {}
        self._reported: set[tuple[str, str, str]] = set()
        self._leaderships = Leaderships()
        self._candidates = Candidates()
        self._changes: list[tuple[ObservedPartition, ObservedPartition]] = []
        """Of this step: what a change means is clear when its whole batch is known."""
        self._votes = Votes()
        self._elected: list[ElectionHeld] = []
        self._deposed_us: dict[tuple[str, int], int] = {}
        self._tails: list[TailLost] = []
        self._forgotten: list[BatchesForgotten] = []
        self._predecessors = Predecessors(self.model)
        self._unproven = UnprovenLeaders(self.model)
        self._paused = PausedLeaders()
        self._deleted: set[str] = set()
        self._unclean_requests: Counter[str] = Counter()
        """Unclean elections that an administrator asked for and that may still be held."""

    # What an administrator does.

    def on_unclean_election_requested(self, partition: str) -> None:
        """ElectLeaders was sent: it elects an unclean leader whatever the topic's setting says."""
        self._unclean_requests[partition] += 1

    def on_unclean_election_answered(self, partition: str) -> None:
        """The request is settled. One without an answer stays open: it may still be carried out."""
        self._unclean_requests[partition] -= 1

    # What nodes do.

    def on_up(self, incarnation: Incarnation) -> None:
        """A node runs; its logs are described next, from their beginning."""
        self.model.incarnations[incarnation.node_id] = incarnation
        for name, log_copies in self.model.log_copies.items():
            if incarnation.node_id in log_copies:
                self._forget_batches(name, incarnation.node_id)
        self._touch(incarnation.node_id)

    def on_down(self, node_id: int, *, floors: dict[str, int] | None, because: str = "") -> None:
        """A node ended; where it may have lost its tail it has a floor."""
        model = self.model
        model.incarnations.pop(node_id, None)
        model.registered.pop(node_id, None)
        for key in [key for key in model.replicas if key[1] == node_id]:
            self._note_deposed(model.replicas.pop(key))
        self._touch(node_id)
        self._unproven.on_down(node_id)
        self._paused.on_down(node_id)
        self._predecessors.on_tails_lost(node_id, floors or ())
        for partition, floor_offset in (floors or {}).items():
            model.floors[(partition, node_id)] = floor_offset
            if floor_offset < model.committed_log(partition).end_offset:
                model.lossy.setdefault(partition, set()).add(node_id)
            self._tails.append(
                TailLost(
                    at_us=self._now_us(),
                    partition=partition,
                    broker_id=node_id,
                    floor_offset=floor_offset,
                    because=because,
                )
            )

    def on_resumed(self, node_id: int, *, paused_us: int) -> None:
        """A node goes on after a pause that was longer than its session; it was described when the
        pause began."""
        self._paused.on_resumed(node_id, PausedTime(paused_us, self._now_us()))

    def on_registered(self, node_id: int, broker_epoch: int) -> None:
        """A node knows the broker epoch of its own registration."""
        self.model.registered[node_id] = broker_epoch
        self._touch(node_id)

    def on_log(
        self,
        partition: str,
        node_id: int,
        *,
        start_offset: int,
        cut_to: int | None = None,
        appended: Sequence[ObservedBatch] = (),
    ) -> None:
        """A replica's log lost its end, got a new one, or lost its head; in this order."""
        log_copy = self.model.log_copy(partition, node_id)
        self.model.floors.pop((partition, node_id), None)
        if cut_to is not None:
            if cut_to < log_copy.end_offset:
                self._forget_batches(partition, node_id)
            log_copy.cut(cut_to)
        if start_offset > log_copy.end_offset:
            log_copy.cut(0)
            log_copy.start_at(start_offset)
        self._report(self._paused.wrote(self.model.replicas.get((partition, node_id)), appended))
        self._report(batches_match(self.model, partition, node_id, appended, log_copy.newest))
        log_copy.append(appended)
        if start_offset != log_copy.start_offset:
            log_copy.start_at(start_offset)
        self._touched[partition] = None

    def on_replica(self, facts: ObservedReplica) -> None:
        """Something about a replica is new; its log was described before."""
        key = (facts.partition, facts.incarnation.node_id)
        before = self.model.replicas.get(key)
        self.model.replicas[key] = facts
        if before is not None and before.is_leader and not facts.is_leader:
            self._note_deposed(before)
        if facts.is_leader:
            committed = self.model.committed_log(facts.partition)
            if facts.leader_epoch >= committed.since_leader_epoch:
                log_copy = self.model.log_copy(*key)
                committed.extend(log_copy, facts.high_watermark)
        self._unproven.on_replica(facts)
        self._report(self._leaderships.on_replica(facts))
        self._report(high_watermark_moved(before, facts))
        self._touched[facts.partition] = None

    def on_replica_gone(self, partition: str, node_id: int) -> None:
        """A node has no longer this replica, or cannot use it."""
        gone = self.model.replicas.pop((partition, node_id), None)
        if gone is not None:
            self._note_deposed(gone)
            self._touched[partition] = None

    def on_log_deleted(self, partition: str, node_id: int) -> None:
        """The partition has moved: what this node had of it is gone, and vouches for nothing."""
        self.on_replica_gone(partition, node_id)
        self._predecessors.on_tails_lost(node_id, (partition,))
        self.model.log_copies.get(partition, {}).pop(node_id, None)
        self.model.floors.pop((partition, node_id), None)
        self.model.lossy.get(partition, set()).discard(node_id)
        for index, tail in enumerate(self._tails):
            if (tail.partition, tail.broker_id, tail.until_us) == (partition, node_id, None):
                self._tails[index] = replace(tail, until_us=self._now_us())

    def on_producers(
        self, partition: str, node_id: int, remembered: Sequence[ObservedProducer]
    ) -> None:
        self._report(producer_state(self.model, partition, node_id, remembered))

    def on_follower_truncated(
        self, partition: str, node_id: int, *, leader_epoch: int, end_offset: int
    ) -> None:
        """A follower cut its log since its leader's is another; told before `on_log`."""
        self._report(
            cut_too_deep(
                self.model, partition, node_id, leader_epoch=leader_epoch, end_offset=end_offset
            )
        )

    def on_synced(
        self,
        partition: str,
        node_id: int,
        *,
        synced_end_offset: int,
        recovery_point: int,
        durable_end_offset: int,
    ) -> None:
        """What a log believes about its disk is new; the last one is what is true."""
        self._report(
            synced_is_durable(
                partition,
                node_id,
                synced_end_offset=synced_end_offset,
                recovery_point=recovery_point,
                durable_end_offset=durable_end_offset,
            )
        )

    # What metadata says.

    def on_partition(self, facts: ObservedPartition) -> None:
        """A committed change, in the order of the metadata log."""
        before = self.model.partitions.get(facts.partition)
        self.model.partitions[facts.partition] = facts
        self._note_minimum(facts)
        self._touched[facts.partition] = None
        for found in (partition_epochs(before, facts), self._leaderships.on_partition(facts)):
            self._report(found)
        if before is not None:
            self._report(joined_as_itself(self.model, before, facts))
            self._report(replicas_moved(before, facts))
            self._changes.append((before, facts))
        self._candidates.on_partition(facts, self.model.brokers)
        self._unproven.on_partition(facts)
        election = election_between(before, facts)
        if election is not None:
            self._on_election(facts, election)

    def on_settings(self, partition: str, *, minimum: int, allows_unclean: bool) -> None:
        """The settings of a topic changed, without any change of the partition itself."""
        known = self.model.partitions.get(partition)
        if known is not None:
            self.model.partitions[partition] = replace(
                known,
                minimum=min(minimum, len(known.replicas)),
                allows_unclean=allows_unclean,
            )
            self._note_minimum(self.model.partitions[partition])
            self._touched[partition] = None

    def _note_minimum(self, facts: ObservedPartition) -> None:
        committed = self.model.committed_log(facts.partition)
        least = committed.least_minimum
        committed.least_minimum = facts.minimum if least is None else min(least, facts.minimum)

    def on_partition_deleted(self, partition: str) -> None:
        """For good: nobody asks about it any more, whatever is left of its logs."""
        self._deleted.add(partition)
        self.model.partitions.pop(partition, None)
        self._touched.pop(partition, None)

    def on_broker(self, facts: ObservedBroker) -> None:
        """A committed change of a registration."""
        self._report(broker_epochs(self.model.brokers.get(facts.broker_id), facts))
        self.model.brokers[facts.broker_id] = facts
        self._touch(facts.broker_id)

    def on_broker_forgotten(self, broker_id: int) -> None:
        self.model.brokers.pop(broker_id, None)
        self._touch(broker_id)

    def on_image_differs(self, incarnation: Incarnation, difference: str) -> None:
        """A node believes something else than what is committed."""
        self._report(image_differs(incarnation, difference))

    def on_quorum(self, facts: ObservedQuorumNode) -> None:
        """Something about a node's part in the quorum is new; its log was described before."""
        before = self.model.quorum.get(facts.incarnation.node_id)
        self.model.quorum[facts.incarnation.node_id] = facts
        # A leader may commit something, hear of a later epoch and resign within one step.
        led_before = (
            before is not None and before.is_leader and before.incarnation == facts.incarnation
        )
        if facts.is_leader or led_before:
            log_copy = self.model.log_copy(METADATA, facts.incarnation.node_id)
            self.model.committed_log(METADATA).extend(log_copy, facts.high_watermark)
        self._report(self._votes.on_quorum(facts))
        self._report(applied_is_committed(self.model, facts))
        self._touched[METADATA] = None

    # Checking.

    def check_step(self) -> None:
        """Hold the invariants against what was touched since the last step."""
        self._check_elections()
        if self._touched:
            touched, self._touched = self._touched, {}
            model = self.model
            for partition in touched:
                for invariant in STATE_INVARIANTS:
                    for violation in invariant(model, partition):
                        self._report((violation,))
                self._close_tails(partition)

    def check_all(self) -> None:
        """Hold every invariant against everything."""
        self._check_elections()
        for partition in self.model.names():
            for invariant in WHOLE_INVARIANTS:
                self._report(invariant(self.model, partition))
            self._close_tails(partition)

    def excuses(self) -> list[Excuse]:
        """What may have let records go, for the judges of the history."""
        elected = [
            replace(
                excuse,
                believed_until_us=self._believed_until(excuse.partition, excuse.leader_epoch),
            )
            for excuse in self._elected
        ]
        return [*elected, *self._tails, *self._forgotten]

    def _touch(self, node_id: int) -> None:
        """Something about a node concerns all partitions that it has."""
        for name, log_copies in self.model.log_copies.items():
            if node_id in log_copies and name not in self._deleted:
                self._touched[name] = None

    def _report(self, found: Iterable[Violation]) -> None:
        for kind, partition, evidence in found:
            anomaly = kind.found(at_us=self._now_us(), partition=partition, **evidence)
            key = (anomaly.name, partition, anomaly.text)
            if key not in self._reported:
                self._reported.add(key)
                self.anomalies.append(anomaly)

    # Elections.

    def _check_elections(self) -> None:
        changes, self._changes = self._changes, []
        for before, after in changes:
            if self._unclean_requests[after.partition] == 0:
                found = election_not_allowed(before, after, self._candidates, self.model.brokers)
                self._report(found)

    def _on_election(self, facts: ObservedPartition, election: ElectionSource) -> None:
        assert facts.leader is not None
        self.elections += 1
        partition = facts.partition
        elected = ElectionHeld(
            at_us=self._now_us(),
            partition=partition,
            leader=facts.leader,
            leader_epoch=facts.leader_epoch,
            election=election,
            predecessor=self._predecessors.leader_of(partition),
            kept_end_offset=self._predecessors.kept_by(partition, facts.leader),
            believed_until_us=self._now_us(),
        )
        self._elected.append(elected)
        self._paused.on_elected(partition, facts.leader_epoch, at_us=elected.at_us)
        if election is not ElectionSource.CLEAN:
            self._unproven.on_unclean(facts)
        self._cut_committed(elected)

    def _cut_committed(self, elected: ElectionHeld) -> None:
        """Only where an excuse says so: an unclean election, or a lost tail of the last leader.

        An unclean election counts even where its winner holds all that is committed: an old leader
        does not wait for the winner, and may commit more until it hears of the election.
        """
        partition = elected.partition
        committed = self.model.committed_log(partition)
        agreed_end_offset = self.model.agreement(partition, elected.leader)
        if elected.election is ElectionSource.CLEAN:
            return
        has_lost = agreed_end_offset < committed.end_offset and any(
            tail.partition == partition
            and tail.broker_id == elected.leader
            and tail.floor_offset <= agreed_end_offset
            and tail.until_us is None
            for tail in self._tails
        )
        if elected.election is ElectionSource.UNCLEAN or has_lost:
            committed.cut(agreed_end_offset, leader_epoch=elected.leader_epoch)
            for log_copy in self.model.log_copies[partition].values():
                log_copy.disagree()

    def _close_tails(self, partition: str) -> None:
        """A replica that has come back and holds all that is committed has recovered."""
        model = self.model
        for index, tail in enumerate(self._tails):
            if tail.partition != partition or tail.until_us is not None:
                continue
            node_id = tail.broker_id
            is_back = (partition, node_id) in model.replicas
            committed = model.committed_log(partition)
            if is_back and model.agreement(partition, node_id) >= committed.end_offset:
                self._tails[index] = replace(tail, until_us=self._now_us())

    def _forget_batches(self, partition: str, node_id: int) -> None:
        self._forgotten.append(
            BatchesForgotten(at_us=self._now_us(), partition=partition, broker_id=node_id)
        )

    def _note_deposed(self, replica: ObservedReplica) -> None:
        if replica.is_leader:
            key = (replica.partition, replica.leader_epoch)
            self._deposed_us[key] = self._paused.believed_until_us(replica, now_us=self._now_us())

    def _believed_until(self, partition: str, leader_epoch: int) -> int:
        """When the last leader before this leader epoch heard that it is none any more."""
        now_us = self._now_us()
        still = [
            now_us
            for replica in self.model.replicas.values()
            if replica.partition == partition
            and replica.is_leader
            and replica.leader_epoch < leader_epoch
        ]
        ended = [
            at_us
            for (name, earlier), at_us in self._deposed_us.items()
            if name == partition and earlier < leader_epoch
        ]
        return max([*still, *ended], default=0)
