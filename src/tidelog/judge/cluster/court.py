"""The court: takes facts in, keeps the picture, and holds every invariant against it.

`judge_step` looks only at what was touched since the last step; `judge_all` at everything. Either
way an anomaly is written down once. Elections and lost tails become excuses for the judges of the
clients' history, since they are what lets records go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tidelog.judge.cluster import log_matching
from tidelog.judge.cluster.completeness import (
    candidate_completeness,
    leader_completeness,
    no_committed_lost,
)
from tidelog.judge.cluster.epochs import broker_epochs, partition_epochs
from tidelog.judge.cluster.facts import (
    METADATA,
    Batch,
    BrokerFacts,
    Complaint,
    Life,
    PartitionFacts,
    ProducerFacts,
    QuorumFacts,
    ReplicaFacts,
)
from tidelog.judge.cluster.high_watermark import behind_maximal_isr, on_moved
from tidelog.judge.cluster.in_sync_set import (
    joined_as_itself,
    quorum_superset,
    recovery_quorum,
    sound_sets,
)
from tidelog.judge.cluster.leadership import (
    Candidates,
    Leaderships,
    election_between,
    not_allowed,
)
from tidelog.judge.cluster.metadata import applied_is_committed, image_differs
from tidelog.judge.cluster.picture import Picture
from tidelog.judge.cluster.predecessors import Predecessors
from tidelog.judge.cluster.producers import producer_state
from tidelog.judge.cluster.quorum import Votes, quorum_leader_completeness, quorum_majority
from tidelog.judge.cluster.unproven import Unproven
from tidelog.judge.excuses import BatchesForgotten, Elected, Election, Excuse, TailLost
from tidelog.judge.history import Anomaly

STATE_INVARIANTS: tuple[Callable[[Picture, str], Iterator[Complaint]], ...] = (
    leader_completeness,
    candidate_completeness,
    behind_maximal_isr,
    sound_sets,
    quorum_superset,
    recovery_quorum,
    no_committed_lost,
    quorum_leader_completeness,
    quorum_majority,
)
"""What must hold after every step, for each partition that the step touched."""

WHOLE_INVARIANTS: tuple[Callable[[Picture, str], Iterator[Complaint]], ...] = (
    *STATE_INVARIANTS,
    log_matching.log_matching,
)
"""The same and what costs more, now and then for all partitions."""


# Size: one class with an input for every kind of fact; splitting it would split its state.
class Court:
    """Inputs: on_*. Outputs: anomalies and excuses."""

    def __init__(self, *, now_us: Callable[[], int]) -> None:
        self.picture = Picture()
        self.anomalies: list[Anomaly] = []
        self.elections = 0
        self._now_us = now_us
        self._touched: dict[str, None] = {}
        self._told: set[Complaint] = set()
        self._leaderships = Leaderships()
        self._candidates = Candidates()
        self._changes: list[tuple[PartitionFacts, PartitionFacts]] = []
        """Of this step: what a change means is clear when its whole batch is known."""
        self._votes = Votes()
        self._elected: list[Elected] = []
        self._deposed_us: dict[tuple[str, int], int] = {}
        self._tails: list[TailLost] = []
        self._forgotten: list[BatchesForgotten] = []
        self._predecessors = Predecessors(self.picture)
        self._unproven = Unproven(self.picture)
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

    def on_up(self, life: Life) -> None:
        """A node runs; its logs are told next, from their beginning."""
        self.picture.lives[life.node_id] = life
        for name, mirrors in self.picture.mirrors.items():
            if life.node_id in mirrors:
                self._forget_batches(name, life.node_id)
        self._touch(life.node_id)

    def on_down(self, node_id: int, *, floors: dict[str, int] | None, because: str = "") -> None:
        """A node ended; where it may have lost its tail it has a floor."""
        picture = self.picture
        picture.lives.pop(node_id, None)
        picture.registered.pop(node_id, None)
        for key in [key for key in picture.replicas if key[1] == node_id]:
            self._note_deposed(picture.replicas.pop(key))
        self._touch(node_id)
        self._unproven.on_down(node_id)
        self._predecessors.on_tails_lost(node_id, floors or ())
        for partition, floor_offset in (floors or {}).items():
            picture.floors[(partition, node_id)] = floor_offset
            if floor_offset < picture.committed_log(partition).end_offset:
                picture.lossy.setdefault(partition, set()).add(node_id)
            self._tails.append(
                TailLost(
                    at_us=self._now_us(),
                    partition=partition,
                    broker_id=node_id,
                    floor_offset=floor_offset,
                    because=because,
                )
            )

    def on_registered(self, node_id: int, broker_epoch: int) -> None:
        """A node knows the broker epoch of its own registration."""
        self.picture.registered[node_id] = broker_epoch
        self._touch(node_id)

    def on_log(
        self,
        partition: str,
        node_id: int,
        *,
        start_offset: int,
        cut_to: int | None = None,
        appended: Sequence[Batch] = (),
    ) -> None:
        """A replica's log lost its end, got a new one, or lost its head; in this order."""
        mirror = self.picture.mirror(partition, node_id)
        self.picture.floors.pop((partition, node_id), None)
        if cut_to is not None:
            if cut_to < mirror.end_offset:
                self._forget_batches(partition, node_id)
            mirror.cut(cut_to)
        if start_offset > mirror.end_offset:
            mirror.cut(0)
            mirror.start_at(start_offset)
        self._complain(
            log_matching.on_appended(self.picture, partition, node_id, appended, mirror.newest)
        )
        mirror.append(appended)
        if start_offset != mirror.start_offset:
            mirror.start_at(start_offset)
        self._touched[partition] = None

    def on_replica(self, facts: ReplicaFacts) -> None:
        """Something about a replica is new; its log was told before."""
        key = (facts.partition, facts.life.node_id)
        before = self.picture.replicas.get(key)
        self.picture.replicas[key] = facts
        if before is not None and before.is_leader and not facts.is_leader:
            self._note_deposed(before)
        if facts.is_leader:
            committed = self.picture.committed_log(facts.partition)
            if facts.leader_epoch >= committed.since_leader_epoch:
                mirror = self.picture.mirror(*key)
                committed.extend(mirror, facts.high_watermark)
        self._unproven.on_replica(facts)
        self._complain(self._leaderships.on_replica(facts))
        self._complain(on_moved(before, facts))
        self._touched[facts.partition] = None

    def on_replica_gone(self, partition: str, node_id: int) -> None:
        """A node has no longer this replica, or cannot use it."""
        gone = self.picture.replicas.pop((partition, node_id), None)
        if gone is not None:
            self._note_deposed(gone)
            self._touched[partition] = None

    def on_producers(
        self, partition: str, node_id: int, remembered: Sequence[ProducerFacts]
    ) -> None:
        self._complain(producer_state(self.picture, partition, node_id, remembered))

    # What metadata says.

    def on_partition(self, facts: PartitionFacts) -> None:
        """A committed change, in the order of the metadata log."""
        before = self.picture.partitions.get(facts.partition)
        self.picture.partitions[facts.partition] = facts
        self._note_minimum(facts)
        self._touched[facts.partition] = None
        for found in (partition_epochs(before, facts), self._leaderships.on_partition(facts)):
            self._complain(found)
        if before is not None:
            self._complain(joined_as_itself(self.picture, before, facts))
            self._changes.append((before, facts))
        self._candidates.on_partition(facts, self.picture.brokers)
        self._unproven.on_partition(facts)
        election = election_between(before, facts)
        if election is not None:
            self._on_election(facts, election)

    def on_settings(self, partition: str, *, minimum: int, allows_unclean: bool) -> None:
        """The settings of a topic changed, without any change of the partition itself."""
        known = self.picture.partitions.get(partition)
        if known is not None:
            self.picture.partitions[partition] = replace(
                known,
                minimum=min(minimum, len(known.replicas)),
                allows_unclean=allows_unclean,
            )
            self._note_minimum(self.picture.partitions[partition])
            self._touched[partition] = None

    def _note_minimum(self, facts: PartitionFacts) -> None:
        committed = self.picture.committed_log(facts.partition)
        least = committed.least_minimum
        committed.least_minimum = facts.minimum if least is None else min(least, facts.minimum)

    def on_partition_deleted(self, partition: str) -> None:
        """For good: nobody asks about it any more, whatever is left of its logs."""
        self._deleted.add(partition)
        self.picture.partitions.pop(partition, None)
        self._touched.pop(partition, None)

    def on_broker(self, facts: BrokerFacts) -> None:
        """A committed change of a registration."""
        self._complain(broker_epochs(self.picture.brokers.get(facts.broker_id), facts))
        self.picture.brokers[facts.broker_id] = facts
        self._touch(facts.broker_id)

    def on_broker_forgotten(self, broker_id: int) -> None:
        self.picture.brokers.pop(broker_id, None)
        self._touch(broker_id)

    def on_image_differs(self, life: Life, evidence: str) -> None:
        """A node believes something else than what is committed."""
        self._complain(image_differs(life, evidence))

    def on_quorum(self, facts: QuorumFacts) -> None:
        """Something about a node's part in the quorum is new; its log was told before."""
        before = self.picture.quorum.get(facts.life.node_id)
        self.picture.quorum[facts.life.node_id] = facts
        # A leader may commit something, hear of a later epoch and resign within one step.
        led_before = before is not None and before.is_leader and before.life == facts.life
        if facts.is_leader or led_before:
            mirror = self.picture.mirror(METADATA, facts.life.node_id)
            self.picture.committed_log(METADATA).extend(mirror, facts.high_watermark)
        self._complain(self._votes.on_quorum(facts))
        self._complain(applied_is_committed(self.picture, facts))
        self._touched[METADATA] = None

    # Judging.

    def judge_step(self) -> None:
        """Hold the invariants against what was touched since the last step."""
        self._judge_elections()
        if self._touched:
            touched, self._touched = self._touched, {}
            picture = self.picture
            for partition in touched:
                for invariant in STATE_INVARIANTS:
                    for complaint in invariant(picture, partition):
                        self._complain((complaint,))
                self._close_tails(partition)

    def judge_all(self) -> None:
        """Hold every invariant against everything."""
        self._judge_elections()
        for partition in self.picture.names():
            for invariant in WHOLE_INVARIANTS:
                self._complain(invariant(self.picture, partition))
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
        for name, mirrors in self.picture.mirrors.items():
            if node_id in mirrors and name not in self._deleted:
                self._touched[name] = None

    def _complain(self, found: Iterable[Complaint]) -> None:
        for complaint in found:
            if complaint not in self._told:
                self._told.add(complaint)
                self.anomalies.append(
                    Anomaly(
                        check=complaint.invariant,
                        at_us=self._now_us(),
                        partition=complaint.partition,
                        evidence=complaint.evidence,
                    )
                )

    # Elections.

    def _judge_elections(self) -> None:
        changes, self._changes = self._changes, []
        for before, after in changes:
            if self._unclean_requests[after.partition] == 0:
                self._complain(not_allowed(before, after, self._candidates, self.picture.brokers))

    def _on_election(self, facts: PartitionFacts, election: Election) -> None:
        assert facts.leader is not None
        self.elections += 1
        partition = facts.partition
        elected = Elected(
            at_us=self._now_us(),
            partition=partition,
            leader=facts.leader,
            leader_epoch=facts.leader_epoch,
            election=election,
            kept_end_offset=self._predecessors.kept_by(partition, facts.leader),
            believed_until_us=self._now_us(),
        )
        self._elected.append(elected)
        if election is not Election.CLEAN:
            self._unproven.on_unclean(facts)
        self._cut_committed(elected)

    def _cut_committed(self, elected: Elected) -> None:
        """Only where an excuse says so: an unclean election, or a lost tail of the last leader."""
        partition = elected.partition
        committed = self.picture.committed_log(partition)
        agreed_end_offset = self.picture.agreement(partition, elected.leader)
        if elected.election is Election.CLEAN or agreed_end_offset >= committed.end_offset:
            return
        has_lost = any(
            tail.partition == partition
            and tail.broker_id == elected.leader
            and tail.floor_offset <= agreed_end_offset
            and tail.until_us is None
            for tail in self._tails
        )
        if elected.election is Election.UNCLEAN or has_lost:
            committed.cut(agreed_end_offset, leader_epoch=elected.leader_epoch)
            for mirror in self.picture.mirrors[partition].values():
                mirror.disagree()

    def _close_tails(self, partition: str) -> None:
        """A replica that has come back and holds all that is committed has recovered."""
        picture = self.picture
        for index, tail in enumerate(self._tails):
            if tail.partition != partition or tail.until_us is not None:
                continue
            node_id = tail.broker_id
            is_back = (partition, node_id) in picture.replicas
            committed = picture.committed_log(partition)
            if is_back and picture.agreement(partition, node_id) >= committed.end_offset:
                self._tails[index] = replace(tail, until_us=self._now_us())

    def _forget_batches(self, partition: str, node_id: int) -> None:
        self._forgotten.append(
            BatchesForgotten(at_us=self._now_us(), partition=partition, broker_id=node_id)
        )

    def _note_deposed(self, replica: ReplicaFacts) -> None:
        if replica.is_leader:
            self._deposed_us[(replica.partition, replica.leader_epoch)] = self._now_us()

    def _believed_until(self, partition: str, leader_epoch: int) -> int:
        """When the last leader before this leader epoch heard that it is none any more."""
        now_us = self._now_us()
        still = [
            now_us
            for replica in self.picture.replicas.values()
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
