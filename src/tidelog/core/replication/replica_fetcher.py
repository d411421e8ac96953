"""The follower's machine: fetches one partition from its leader, in one leader epoch.

It decides what to ask and what becomes of the answers: append, truncate, start anew, wait. All
partitions of one leader share a link (fetcher_links.py); the rules are in follower.py.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication import events
from tidelog.core.replication.fetcher_port import FetcherPort
from tidelog.core.replication.follower import (
    EpochEnd,
    Reaction,
    back_off_ms,
    new_start,
    reaction_to,
    truncation_end,
)
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log import Log, OffsetsOutOfOrder
from tidelog.core.wire.fetch_fast import FetchedPartition
from tidelog.core.wire.fetch_follower import AnsweredPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_LEADER_EPOCH

if TYPE_CHECKING:
    from tidelog.core.replication.fetcher_links import FetcherLink

PartitionKey = tuple[bytes, int]
"""A partition by topic id and index."""

LIST_OFFSETS_VERSION = 10
DROPPED_BATCHES_TRACED_MAX = 100


class FetcherState(Enum):
    """FETCHING: part of the link's requests. PAUSED: by an alarm, or until the metadata changes.

    FINDING_RANGE: its offset is not in the leader's log, and ListOffsets is under way.
    """

    PAUSED = "paused"
    FETCHING = "fetching"
    FINDING_RANGE = "finding range"
    ENDED = "ended"


_S = FetcherState
NEXT: dict[FetcherState, frozenset[FetcherState]] = {
    _S.PAUSED: frozenset({_S.FETCHING, _S.ENDED}),
    _S.FETCHING: frozenset({_S.PAUSED, _S.FINDING_RANGE, _S.ENDED}),
    _S.FINDING_RANGE: frozenset({_S.FETCHING, _S.PAUSED, _S.ENDED}),
    _S.ENDED: frozenset(),
}
assert set(NEXT) == set(FetcherState)


class ReplicaFetcher:
    """Invariant: fetches from the log's end, and only when that is as durable as it must be."""

    __slots__ = ("_failures", "_pause", "_port", "_sent", "_state", "key", "link", "partition")

    def __init__(self, port: FetcherPort, link: FetcherLink, partition: Partition) -> None:
        self._port = port
        self.link = link
        self.partition = partition
        self.key: PartitionKey = (partition.topic_id, partition.topic_partition.index)
        self._state = FetcherState.PAUSED
        self._sent: FetchedPartition | None = None
        self._failures = 0
        self._pause: Alarm | None = None

    @property
    def is_fetching(self) -> bool:
        return self._state is FetcherState.FETCHING

    def _become(self, state: FetcherState) -> None:
        """The only way a fetcher changes state."""
        assert state in NEXT[self._state], f"{self._state.name} may not become {state.name}"
        self._state = state

    def start(self) -> None:
        """Take part in the link's requests from now on."""
        self._become(FetcherState.FETCHING)
        self._sent = None
        self._request_next()

    def end(self) -> None:
        self._become(FetcherState.ENDED)
        self._cancel_pause()

    def on_link_closed(self) -> None:
        """A ListOffsets that was under way is lost, too; the next link begins anew."""
        self._sent = None
        if self._state is FetcherState.FINDING_RANGE:
            self._become(FetcherState.FETCHING)
        if self.is_fetching:
            self._request_next()

    def on_synced(self) -> None:
        """More of the log is durable; the next request waits for all of it."""
        log = self.partition.log
        if log.synced_end_offset >= log.log_end_offset:
            self.link.on_synced(self)

    def next_request(self) -> FetchedPartition:
        """This partition's part of the link's next request."""
        log = self.partition.log
        latest = log.latest_leader_epoch
        self._sent = FetchedPartition(
            self.key[1],
            self.partition.leader_epoch,
            log.log_end_offset,
            NO_LEADER_EPOCH if latest is None else latest,
            log.log_start_offset,
            self._port.settings.partition_bytes_max,
        )
        return self._sent

    def _request_next(self) -> None:
        """Be in the link's next request, once all that it has is as durable as it must be."""
        partition = self.partition
        log = partition.log
        if partition.waits_for_sync and log.synced_end_offset < log.log_end_offset:
            self.link.wait_for_sync(self)
            self._port.touch(partition)
        else:
            self.link.include(self)

    # Answers

    def on_answer(self, answered: AnsweredPartition, now_ms: int) -> None:
        """What the leader says; it counts only if the same would be asked now."""
        sent = self._sent
        if (
            sent is None
            or not self.is_fetching
            or sent.fetch_offset != self.partition.log.log_end_offset
            or sent.current_leader_epoch != self.partition.leader_epoch
        ):
            return
        if answered.error_code != ErrorCode.NONE:
            self._on_refused(answered.error_code, now_ms)
        elif answered.diverging is not None:
            self._on_diverged(EpochEnd(*answered.diverging), answered.log_start_offset, now_ms)
            self._on_progress()
        elif self._append(answered, now_ms):
            self._take_fences(answered)
            self._on_progress()

    def _on_progress(self) -> None:
        self._failures = 0
        if self.partition.log.failed is not None:
            self._port.on_log_failed(self.partition.log)
            return
        sent, log = self._sent, self.partition.log
        if sent is not None and (sent.fetch_offset, sent.log_start_offset) == (
            log.log_end_offset,
            log.log_start_offset,
        ):
            return
        self._request_next()

    def _append(self, answered: AnsweredPartition, now_ms: int) -> bool:
        if not answered.records:
            return True
        log = self.partition.log
        end_offset = log.log_end_offset
        wall_ms = self._port.wall_ms(now_ms)
        try:
            try:
                self._write(answered.records, wall_ms)
            except OffsetsOutOfOrder as bad:
                if log.log_start_offset != log.log_end_offset or not bad.holds_log_end:
                    raise
                # The leader's first record lies in the middle of a batch, which comes as a whole.
                log.start_anew_at(bad.base_offset, wall_ms=wall_ms)
                self._write(answered.records, wall_ms)
        except (CorruptBatch, OffsetsOutOfOrder) as bad:
            self._back_off(f"bad records: {bad}", now_ms)
            return False
        if log.log_end_offset == end_offset and log.failed is None:
            # The leader would answer the same at once, again and again: a damaged length makes the
            # first batch look cut, a damaged leader epoch as if it came from a later leader.
            self._back_off("bad records: none that could be taken", now_ms)
            return False
        return True

    def _write(self, records: memoryview, wall_ms: int) -> None:
        partition = self.partition
        partition.log.append_as_follower(
            records, wall_ms=wall_ms, leader_epoch_max=partition.leader_epoch
        )

    def _take_fences(self, answered: AnsweredPartition) -> None:
        """High watermark first: the log's start never passes it."""
        partition = self.partition
        log = partition.log
        if log.failed is not None:
            return
        moved = partition.follow_high_watermark(answered.high_watermark)
        start_offset = min(answered.log_start_offset, log.high_watermark)
        if start_offset > log.log_start_offset:
            log.delete_records_before(start_offset)
            moved = True
        if moved:
            partition.notify_watchers()

    def _on_diverged(self, diverging: EpochEnd, leader_start_offset: int, now_ms: int) -> None:
        """Give up what the leader does not share; of the other fences of its answer none counts.

        Behind the leader's start nothing can be compared. What would be kept from before it is
        about to be deleted, but may be another history, and would come back if the power fails.
        """
        log = self.partition.log
        end_offset = truncation_end(log, diverging=diverging)
        if log.log_start_offset < end_offset <= leader_start_offset:
            self._start_anew(leader_start_offset, now_ms)
        else:
            self._truncate(end_offset)

    def _truncate(self, end_offset: int) -> None:
        partition = self.partition
        log = partition.log
        before, high_watermark = log.log_end_offset, log.high_watermark
        dropped = _batches_from(log, end_offset)
        if log.truncate_to(end_offset):
            self._port.trace.emit(
                events.FollowerTruncated(
                    partition=str(partition.topic_partition),
                    broker_id=partition.node_id,
                    leader_epoch=partition.leader_epoch,
                    from_end_offset=before,
                    to_end_offset=log.log_end_offset,
                    high_watermark=high_watermark,
                    dropped=dropped,
                )
            )
            partition.notify_watchers()
        self._sent = None

    def _start_anew(self, offset: int, now_ms: int) -> None:
        partition = self.partition
        before = partition.log.log_end_offset
        partition.log.start_anew_at(offset, wall_ms=self._port.wall_ms(now_ms))
        self._port.trace.emit(
            events.FollowerStartedAnew(
                partition=str(partition.topic_partition),
                broker_id=partition.node_id,
                leader_epoch=partition.leader_epoch,
                from_end_offset=before,
                at_offset=offset,
            )
        )
        partition.notify_watchers()
        self._sent = None

    # Refusals

    def _on_refused(self, code: int, now_ms: int) -> None:
        if reaction_to(code) is Reaction.FIND_RANGE:
            self._find_range(now_ms)
        else:
            self._wait_after(code, now_ms)

    def _wait_after(self, code: int, now_ms: int) -> None:
        if reaction_to(code) is Reaction.AWAIT_METADATA:
            self._stand_still(f"refused with {code}", None)
        else:
            self._back_off(f"refused with {code}", now_ms)

    def _back_off(self, reason: str, now_ms: int) -> None:
        self._failures += 1
        at_most_ms = self._port.settings.backoff_ms_max
        wait_ms = back_off_ms(self._failures, at_most_ms=at_most_ms)
        self._stand_still(reason, wait_ms)
        self._pause = self._port.alarms.at(now_ms + wait_ms, self._resume)

    def _resume(self, now_ms: int) -> None:
        self._pause = None
        if self._state is FetcherState.PAUSED:
            self.start()

    def _stand_still(self, reason: str, wait_ms: int | None) -> None:
        self._become(FetcherState.PAUSED)
        self._cancel_pause()
        self.link.exclude(self)
        self._port.trace.emit(
            events.FollowerBackedOff(
                broker_id=self._port.settings.node_id,
                leader_id=self.link.leader_id,
                partition=str(self.partition.topic_partition),
                reason=reason,
                wait_ms=wait_ms,
            )
        )

    def _cancel_pause(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    # Out of range

    def _find_range(self, now_ms: int) -> None:
        """Ask where the leader's log begins and ends; meanwhile the other partitions go on."""
        link = self.link.link
        assert link is not None, "it has just answered"
        self._become(FetcherState.FINDING_RANGE)
        self.link.exclude(self)
        offsets: dict[int, int] = {}

        def then(timestamp: int, answer: Message | NoAnswer, now_ms: int) -> None:
            is_waiting = self._state is FetcherState.FINDING_RANGE
            if not is_waiting or not isinstance(answer, ListOffsetsResponse):
                return  # ended, or the link did; both have been dealt with
            found = answer.topics[0].partitions[0]
            if found.error_code != ErrorCode.NONE:
                self._wait_after(found.error_code, now_ms)
                return
            offsets[timestamp] = found.offset
            if len(offsets) == 2:
                self._restart(offsets[EARLIEST_TIMESTAMP], offsets[LATEST_TIMESTAMP], now_ms)

        for timestamp in (LATEST_TIMESTAMP, EARLIEST_TIMESTAMP):
            link.ask(
                self._list_offsets(timestamp),
                LIST_OFFSETS_VERSION,
                partial(then, timestamp),
                timeout_ms=self._port.settings.socket_timeout_ms,
                now_ms=now_ms,
            )

    def _list_offsets(self, timestamp: int) -> ListOffsetsRequest:
        topic_partition = self.partition.topic_partition
        partition = ListOffsetsPartition(
            partition_index=topic_partition.index,
            current_leader_epoch=self.partition.leader_epoch,
            timestamp=timestamp,
        )
        return ListOffsetsRequest(
            replica_id=self._port.settings.node_id,
            topics=[ListOffsetsTopic(name=topic_partition.topic, partitions=[partition])],
        )

    def _restart(self, leader_start_offset: int, leader_end_offset: int, now_ms: int) -> None:
        log = self.partition.log
        before = log.log_end_offset
        start = new_start(
            log_end_offset=before,
            leader_start_offset=leader_start_offset,
            leader_end_offset=leader_end_offset,
        )
        if start.starts_anew:
            self._start_anew(start.end_offset, now_ms)
        elif start.end_offset < before:
            self._truncate(start.end_offset)
        else:
            self._back_off("out of range, and in range again", now_ms)
            return
        if log.failed is not None:
            self._port.on_log_failed(log)
            return
        self.start()


def _batches_from(log: Log, start_offset: int) -> tuple[tuple[int, int, int], ...]:
    """For the trace: (first offset, end offset, leader epoch), as far as they can be read."""
    start_offset = max(start_offset, log.log_start_offset)
    if start_offset >= log.log_end_offset:
        return ()
    try:
        return tuple(
            (header.base_offset, header.end_offset, header.leader_epoch)
            for header in islice(log.batch_headers(start_offset), DROPPED_BATCHES_TRACED_MAX)
        )
    except (CorruptBatch, DiskError):
        return ()
