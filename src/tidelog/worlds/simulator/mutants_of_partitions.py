"""Mutants of a partition: what its leader counts and answers, what its log keeps, what readers get.

They plant mistakes in the rooms storage, formats and replication, and in the node's fetches and
produce requests.
"""

from __future__ import annotations

from typing import Any

from tidelog.core.node.api import api_00_produce, api_02_list_offsets
from tidelog.core.node.fetch import fetch_answers
from tidelog.core.replication import replica_fetcher
from tidelog.core.replication.follower import EpochEnd
from tidelog.core.replication.in_sync import InSync, Proposal
from tidelog.core.replication.leader import Leadership
from tidelog.core.replication.partition import Partition
from tidelog.core.replication.produce_purgatory import ProducePurgatory
from tidelog.core.replication.replica_fetcher import ReplicaFetcher
from tidelog.core.storage import log_append, truncation
from tidelog.core.storage.durability import Durability
from tidelog.core.storage.log import Log
from tidelog.core.storage.log_append import Appended
from tidelog.core.storage.segment import Segment
from tidelog.core.wire.fetch_fast import FetchPartitionAnswer
from tidelog.judge.anomalies import (
    BEHIND_MAXIMAL_ISR,
    CANDIDATE_COMPLETENESS,
    CRASHED,
    CUT_TOO_DEEP,
    DIRTY_READ,
    DUPLICATED,
    LOST,
    MINIMUM_IN_SYNC,
    MISPLACED,
    QUORUM_SUPERSET,
    STALE,
    SYNCED_IS_DURABLE,
)
from tidelog.worlds.simulator.mutant import Mutant, Patch, replication_mutant

# What is replaced, as it is.

_read = fetch_answers.read
_propose_member = Leadership.propose_member
_require = Partition.require
_begin = Partition._begin
_mark = Durability.mark
_not_appended = log_append._not_appended
_truncate_log = truncation._truncate


def no_check(self: object, **_: object) -> None:
    """The product's own check would notice first."""


# What readers get.


def serve_to_the_log_end(
    node: Any, partition: Partition, entry: Any, call: Any, **rest: Any
) -> FetchPartitionAnswer:
    """A read replica gives consumers all that it holds."""
    found = _read(node, partition, entry, call, **rest)
    if call.replica_id >= 0 or partition.is_leader:
        return found
    return _up_to_the_log_end(found, partition, entry)


def lead_to_the_log_end(
    node: Any, partition: Partition, entry: Any, call: Any, **rest: Any
) -> FetchPartitionAnswer:
    """A leader gives consumers what its followers may not have."""
    found = _read(node, partition, entry, call, **rest)
    if call.replica_id >= 0 or not partition.is_leader:
        return found
    return _up_to_the_log_end(found, partition, entry)


def _up_to_the_log_end(
    found: FetchPartitionAnswer, partition: Partition, entry: Any
) -> FetchPartitionAnswer:
    if found.error_code or found.diverging is not None or found.preferred_read_replica >= 0:
        return found
    log, offset = partition.log, entry.call.fetch_offset
    records = log.read(offset, bytes_max=entry.call.bytes_max, end_offset=log.log_end_offset)
    size_bytes = 0 if records is None else records.size_bytes
    return found._replace(records=records, records_bytes=size_bytes)


def list_the_log_end(partition: Partition, call: Any) -> int:
    return partition.log.log_end_offset


# What a leader counts.


def count_before_the_epoch(
    node: Any, partition: Partition, entry: Any, call: Any, **rest: Any
) -> FetchPartitionAnswer:
    """A follower's fetch counts before anybody compared its leader epoch, or its log (D3-R2)."""
    leadership = partition.leadership
    if leadership is not None and call.replica_id in leadership.followers:
        fetch_answers._count(node, partition, entry, call, node.now_ms)
    return _read(node, partition, entry, call, **rest)


def shrink_at_once(self: InSync, isr: tuple[int, ...]) -> Proposal:
    """Whoever is proposed to leave is not waited for any more."""
    self.pending = Proposal(isr, self.leader_epoch, self.partition_epoch)
    self.maximal = frozenset(isr)
    return self.pending


def join_by_high_watermark(self: Leadership, broker_id: int, **rest: Any) -> Proposal | None:
    """A follower joins without all that an earlier leader may have committed."""
    start_offset, self.start_offset = self.start_offset, 0
    try:
        return _propose_member(self, broker_id, **rest)
    finally:
        self.start_offset = start_offset


def require_one(self: Partition, isr_min: int) -> None:
    """min.insync.replicas is read, and not kept."""
    _require(self, isr_min)
    self.minimum, self.is_under_minimum = min(1, len(self.replicas)), False


def cover_at_once(node: Any, parked: Any) -> None:
    """acks=all is answered when the leader has it."""
    parked._finish()


def cover_everyone(self: ProducePurgatory, high_watermark: int) -> None:
    """Whenever the high watermark moves, all who wait are answered."""
    self.high_watermark = high_watermark
    parked = self._parked
    while parked:
        parked.popleft()[1].on_covered()


# What followers do.


def cut_at_the_high_watermark(log: Any, *, diverging: EpochEnd) -> int:
    """A follower whose log parts from its leader's cuts what it does not know to be committed."""
    return int(min(log.high_watermark, diverging.end_offset))


def fetch_before_the_sync(self: ReplicaFetcher) -> None:
    """A follower vouches for what it has not synced."""
    self.link.include(self)


# What a log remembers.


def duplicate_at_the_end(verdict: Any, header: Any) -> Appended:
    """A retry is answered with the offset behind its first copy."""
    found = _not_appended(verdict, header)
    return found._replace(base_offset=found.end_offset) if found.is_duplicate else found


def duplicate_at_once(verdict: Any, header: Any) -> Appended:
    """A retry is answered at once, whether its first copy is committed or not."""
    found = _not_appended(verdict, header)
    return found._replace(end_offset=0) if found.is_duplicate else found


def begin_without_producers(self: Partition, assigned: Any, now_ms: int) -> None:
    """Whoever leads anew has forgotten what its producers wrote."""
    self.log.producers.by_id.clear()
    _begin(self, assigned, now_ms)


def mark_ahead(self: Durability, segment: Segment, end_offset: int) -> None:
    """The recovery point moves when a sync is asked for."""
    _mark(self, segment, end_offset)
    self.recovery_point = end_offset


def mark_as_done(self: Durability, segment: Segment, end_offset: int) -> None:
    """A sync counts as done when it is asked for."""
    _mark(self, segment, end_offset)
    segment.synced_bytes = segment.file.size_bytes
    self._advance()


def keep_high_watermark(log: Log, end_offset: int, wall_ms: int | None) -> None:
    """A truncation leaves the high watermark behind the log's end."""
    high_watermark = log.high_watermark
    _truncate_log(log, end_offset, wall_ms)
    log.high_watermark = high_watermark


PARTITION_MUTANTS: tuple[Mutant, ...] = (
    replication_mutant(
        "read-replica-serves-to-its-log-end",
        "a read replica gives consumers what is not committed yet",
        caught_by=[DIRTY_READ],
        within=60,
        patches=[Patch(fetch_answers, "read", serve_to_the_log_end)],
    ),
    replication_mutant(
        "leader-serves-to-its-log-end",
        "a leader gives consumers what is not committed yet",
        caught_by=[DIRTY_READ],
        within=10,
        patches=[Patch(fetch_answers, "read", lead_to_the_log_end)],
    ),
    replication_mutant(
        "list-the-log-end",
        "ListOffsets answers consumers with the end of the leader's log",
        caught_by=[DIRTY_READ],
        within=10,
        patches=[Patch(api_02_list_offsets, "_fence", list_the_log_end)],
    ),
    replication_mutant(
        "count-before-the-epoch",
        "a follower's fetch counts before its leader epoch was compared",
        caught_by=[BEHIND_MAXIMAL_ISR, CANDIDATE_COMPLETENESS],
        within=60,
        patches=[Patch(fetch_answers, "read", count_before_the_epoch)],
    ),
    replication_mutant(
        "shrink-at-once",
        "a leader does not wait for a member that it has proposed to remove",
        caught_by=[QUORUM_SUPERSET, CANDIDATE_COMPLETENESS],
        within=30,
        patches=[Patch(InSync, "propose", shrink_at_once), Patch(InSync, "check", no_check)],
    ),
    replication_mutant(
        "join-before-the-epoch-starts",
        "a follower joins the in-sync set before it has the leader epoch's start",
        caught_by=[CANDIDATE_COMPLETENESS],
        within=60,
        patches=[Patch(Leadership, "propose_member", join_by_high_watermark)],
    ),
    replication_mutant(
        "acknowledge-below-the-minimum",
        "min.insync.replicas counts as one",
        caught_by=[MINIMUM_IN_SYNC],
        within=10,
        patches=[Patch(Partition, "require", require_one)],
    ),
    replication_mutant(
        "acknowledge-before-the-commit",
        "acks=all is answered when the leader alone has the records",
        caught_by=[LOST, STALE],
        within=10,
        patches=[Patch(api_00_produce, "_park", cover_at_once)],
    ),
    replication_mutant(
        "cover-everyone",
        "whoever waits is answered when the high watermark moves, wherever to",
        caught_by=[LOST, STALE],
        within=20,
        patches=[Patch(ProducePurgatory, "on_high_watermark", cover_everyone)],
    ),
    replication_mutant(
        "cut-to-the-high-watermark-on-divergence",
        "a follower whose log diverges cuts to the high watermark that it knows",
        caught_by=[CUT_TOO_DEEP],
        within=10,
        patches=[Patch(replica_fetcher, "truncation_end", cut_at_the_high_watermark)],
    ),
    replication_mutant(
        "fetch-before-the-sync",
        "a follower vouches for what it has not synced",
        caught_by=[BEHIND_MAXIMAL_ISR],
        within=20,
        patches=[Patch(ReplicaFetcher, "_request_next", fetch_before_the_sync)],
    ),
    replication_mutant(
        "answer-duplicates-with-another-offset",
        "a retry is answered with an offset at which it does not stand",
        caught_by=[MISPLACED],
        within=20,
        patches=[Patch(log_append, "_not_appended", duplicate_at_the_end)],
    ),
    replication_mutant(
        "answer-duplicates-at-once",
        "a retry is acknowledged although its first copy is not committed yet",
        caught_by=[LOST, STALE],
        within=60,
        patches=[Patch(log_append, "_not_appended", duplicate_at_once)],
    ),
    replication_mutant(
        "forget-producers-at-failover",
        "a new leader does not know its producers, and takes their retries for new records",
        caught_by=[DUPLICATED],
        within=60,
        patches=[Patch(Partition, "_begin", begin_without_producers)],
    ),
    replication_mutant(
        "recovery-point-ahead-of-the-sync",
        "the recovery point moves when a sync is asked for",
        caught_by=[SYNCED_IS_DURABLE],
        within=10,
        patches=[Patch(Durability, "mark", mark_ahead), Patch(Durability, "check", no_check)],
    ),
    replication_mutant(
        "sync-counts-when-asked-for",
        "a sync counts as done when it is asked for",
        caught_by=[SYNCED_IS_DURABLE],
        within=10,
        patches=[Patch(Durability, "mark", mark_as_done)],
    ),
    replication_mutant(
        "keep-the-high-watermark-of-a-cut-log",
        "a truncation leaves the high watermark behind the end of the log",
        caught_by=[CRASHED],
        within=60,
        patches=[Patch(truncation, "_truncate", keep_high_watermark)],
    ),
)
