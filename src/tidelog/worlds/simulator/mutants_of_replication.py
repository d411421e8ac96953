"""Mutants of a cluster: mistakes that Kafka has made, or that its rules exist to prevent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidelog.core.controller import admission, alter_partition
from tidelog.core.node.broker.broker_lifecycle import BrokerLifecycle
from tidelog.core.node.broker.session_watch import SessionWatch
from tidelog.core.node.connections.request import Request
from tidelog.core.node.metadata.metadata_quorum import MetadataQuorum
from tidelog.core.node.replicas.replica_manager import ReplicaManager
from tidelog.core.quorum.leader_term import LeaderTerm as QuorumLeadership
from tidelog.core.quorum.machine import Quorum
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.values import ElectionState, Ready, RoleChanged
from tidelog.core.replication import replica_fetcher
from tidelog.core.replication.fetcher_links import FetcherLinks
from tidelog.core.replication.follower import EpochEnd, EpochKeeper
from tidelog.core.replication.in_sync import InSync, Proposal
from tidelog.core.replication.leader import Leadership
from tidelog.core.replication.partition import Partition
from tidelog.core.replication.replica_fetcher import ReplicaFetcher
from tidelog.core.storage import log_append, truncation
from tidelog.core.storage.log import Log
from tidelog.core.wire.sentinels import NO_LEADER_EPOCH
from tidelog.judge.anomalies import (
    CANDIDATE_COMPLETENESS,
    CORRUPT,
    CORRUPTION_SPREAD,
    JOINED_AS_ITSELF,
    LEADER_COMPLETENESS,
    LOG_MATCHING,
    METADATA_AGREES,
    METADATA_COMMITTED,
    MINIMUM_IN_SYNC,
    ONE_LEADER,
    ONE_VOTE,
    PAUSED_LEADER_ASKS,
    PRODUCER_STATE,
    QUORUM_ELECTION_SAFETY,
    QUORUM_SUPERSET,
    STRANGER_SERVED,
)
from tidelog.worlds.simulator.mutant import Mutant, Patch, replication_mutant

# What is replaced, as it is.

_follow = FetcherLinks.follow
_next_request = ReplicaFetcher.next_request
_read_state = MetadataQuorum._read_state
_on_start = Quorum.on_start
_on_high_watermark = MetadataQuorum._on_high_watermark
_broker_start = BrokerLifecycle.start
_high_watermark_candidate = Leadership.high_watermark_candidate
_truncate = truncation._truncate
_refuse_members = alter_partition._refuse_members
_may_join = ReplicaManager.may_join
_on_paused = SessionWatch.on_paused


def cut_by_high_watermark(self: FetcherLinks, partition: Partition) -> None:
    """KIP-101: a follower begins by cutting whatever it does not know to be committed."""
    if partition.leader_id is not None:
        partition.log.truncate_to(partition.log.high_watermark)
    _follow(self, partition)


def cut_once(log: EpochKeeper, *, diverging: EpochEnd) -> int:
    """KIP-279: the leader's end of the epoch it names is taken for ours, known or not."""
    return min(diverging.end_offset, log.log_end_offset)


def ask_once(self: ReplicaFetcher) -> Any:
    """KIP-279: whoever has cut once in this leader epoch does not ask about epochs again."""
    request = _next_request(self)
    latest = self.partition.log.latest_leader_epoch
    has_cut = latest is not None and latest < self.partition.leader_epoch - 1
    if has_cut:
        request = self._sent = request._replace(last_fetched_epoch=NO_LEADER_EPOCH)
    return request


def forget_vote(self: MetadataQuorum, directory: str) -> ElectionState | None:
    state = _read_state(self, directory)
    return None if state is None else state._replace(voted_for=None)


def propose_without_waiting(self: InSync, isr: tuple[int, ...]) -> Proposal:
    """A proposed member counts only once the controller's answer is here."""
    self.pending = Proposal(isr, self.leader_epoch, self.partition_epoch)
    self.maximal = frozenset(self.committed)
    return self.pending


def no_check(self: object) -> None:
    """The product's own check would notice first."""


def any_process(image: Any, state: Any, isr_change: alter_partition.IsrChange) -> Any:
    """KIP-903: whatever process of a broker fetched, the one that is there now may join."""
    members = tuple(replace_epoch(member) for member in isr_change.members)
    return _refuse_members(image, state, replace(isr_change, members=members))


def replace_epoch(member: alter_partition.Member) -> alter_partition.Member:
    return alter_partition.Member(member.broker_id, None)


def any_process_may_join(self: ReplicaManager, broker_id: int, broker_epoch: int | None) -> bool:
    broker = self._image.brokers.get(broker_id)
    return broker is not None and broker.is_active


def without_minimum(self: Leadership, *, isr_min: int, **rest: Any) -> int | None:
    return _high_watermark_candidate(self, isr_min=0, **rest)


def lead_on_after_restart(self: Quorum, now_ms: int) -> Ready:
    """A quorum leader that restarts goes on in its epoch."""
    ready = _on_start(self, now_ms)
    if self.role is not Role.RESIGNED:
        return ready
    self.role = Role.LEADER
    self.leadership = QuorumLeadership(
        node_id=self.node_id,
        voters=self.voters,
        epoch_start_offset=self._log.position.end_offset,
        granted_by=(),
        timing=self._timing,
        now_ms=now_ms,
    )
    ready.changes.append(
        RoleChanged(
            node_id=self.node_id,
            role=Role.LEADER,
            quorum_epoch=self.quorum_epoch,
            leader_id=self.node_id,
            because="resumed",
        )
    )
    return ready


def resume_leaderships(self: BrokerLifecycle, now_ms: int) -> None:
    """A broker that restarts leads what its old metadata says, before it has registered."""
    _broker_start(self, now_ms)
    self.is_caught_up = True
    self._metadata.announce_partitions(now_ms)


def apply_at_once(self: MetadataQuorum, high_watermark: int, now_ms: int) -> None:
    """Whatever is in the log counts as decided."""
    _on_high_watermark(self, high_watermark, now_ms)
    self._metadata.commit(self._metadata.log.log_end_offset, now_ms)


def keep_producers(self: Log, end_offset: int, wall_ms: int | None) -> None:
    """A truncation forgets records, but not who wrote them."""
    kept = self.producers
    _truncate(self, end_offset, wall_ms)
    self.producers = kept


def any_checksum(*_: object) -> bool:
    return True


def go_on_after_pause(self: SessionWatch, now_ms: int) -> None:
    """As Kafka: who was paused takes what waits in its sockets, and hears later who leads."""
    _on_paused(self, now_ms)
    self.is_confirmed = True


def always_clean(known: object, newcomer: object) -> bool:
    return True


REPLICATION_MUTANTS: tuple[Mutant, ...] = (
    replication_mutant(
        "truncate-by-high-watermark",
        "a follower cuts its log to the high watermark that it knows (KIP-101)",
        caught_by=[LEADER_COMPLETENESS, CANDIDATE_COMPLETENESS],
        within=30,
        patches=[Patch(FetcherLinks, "follow", cut_by_high_watermark)],
    ),
    replication_mutant(
        "truncate-once",
        "a follower that does not know the leader's epoch cuts at the leader's end (KIP-279)",
        caught_by=[LOG_MATCHING],
        within=120,
        patches=[
            Patch(replica_fetcher, "truncation_end", cut_once),
            Patch(ReplicaFetcher, "next_request", ask_once),
        ],
    ),
    replication_mutant(
        "forget-the-vote",
        "a voter that restarts does not know whom it voted for",
        caught_by=[ONE_VOTE, QUORUM_ELECTION_SAFETY],
        within=10,
        patches=[Patch(MetadataQuorum, "_read_state", forget_vote)],
    ),
    replication_mutant(
        "grow-without-maximal-set",
        "the high watermark does not wait for a proposed member",
        caught_by=[QUORUM_SUPERSET, CANDIDATE_COMPLETENESS],
        within=10,
        patches=[
            Patch(InSync, "propose", propose_without_waiting),
            Patch(InSync, "check", no_check),
        ],
    ),
    replication_mutant(
        "ignore-broker-epochs",
        "a follower joins the in-sync set on its former self's merits (KIP-903)",
        caught_by=[JOINED_AS_ITSELF, CANDIDATE_COMPLETENESS],
        within=120,
        patches=[
            Patch(alter_partition, "_refuse_members", any_process),
            Patch(ReplicaManager, "may_join", any_process_may_join),
        ],
    ),
    replication_mutant(
        "commit-below-the-minimum",
        "the high watermark moves however few replicas are in sync",
        caught_by=[MINIMUM_IN_SYNC],
        within=15,
        patches=[Patch(Leadership, "high_watermark_candidate", without_minimum)],
    ),
    replication_mutant(
        "quorum-leader-resumes",
        "a quorum leader that restarts leads on in its epoch",
        caught_by=[QUORUM_ELECTION_SAFETY],
        within=10,
        patches=[Patch(Quorum, "on_start", lead_on_after_restart)],
    ),
    replication_mutant(
        "leader-resumes",
        "a broker that restarts leads on what it led before, in the same leader epoch",
        caught_by=[ONE_LEADER],
        within=10,
        patches=[
            Patch(BrokerLifecycle, "start", resume_leaderships),
            Patch(BrokerLifecycle, "check", no_check),
        ],
    ),
    replication_mutant(
        "apply-before-commit",
        "a node acts on metadata that the quorum has not agreed on",
        caught_by=[METADATA_COMMITTED, METADATA_AGREES],
        within=10,
        patches=[Patch(MetadataQuorum, "_on_high_watermark", apply_at_once)],
    ),
    replication_mutant(
        "keep-producers-of-cut-records",
        "a truncation does not forget the producers of what it cuts",
        caught_by=[PRODUCER_STATE],
        within=40,
        patches=[Patch(truncation, "_truncate", keep_producers)],
    ),
    replication_mutant(
        "trust-every-restart",
        "every broker that comes back counts as having stopped cleanly",
        caught_by=[CANDIDATE_COMPLETENESS, LEADER_COMPLETENESS],
        within=20,
        patches=[Patch(admission, "_stopped_cleanly", always_clean)],
    ),
    replication_mutant(
        "serve-strangers-as-nodes",
        "whoever connects is taken for a node of the cluster",
        caught_by=[STRANGER_SERVED],
        within=10,
        patches=[Patch(Request, "is_from_member", True)],
    ),
    replication_mutant(
        "paused-leader-goes-on",
        "a leader that was paused for longer than its session acknowledges before it asks",
        caught_by=[PAUSED_LEADER_ASKS],
        within=60,
        patches=[Patch(SessionWatch, "on_paused", go_on_after_pause)],
    ),
    replication_mutant(
        "copy-unchecked",
        "a follower copies a batch whose bytes have decayed on its leader's disk",
        caught_by=[CORRUPTION_SPREAD, CORRUPT],
        within=500,
        patches=[Patch(log_append, "crc_is_valid", any_checksum)],
    ),
)
