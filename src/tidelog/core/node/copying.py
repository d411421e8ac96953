"""One partition that is copied from its leader: what is asked, and what becomes of the answers."""

from __future__ import annotations

from enum import Enum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication import events
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

if TYPE_CHECKING:
    from tidelog.core.node.follower_links import FollowerLink
    from tidelog.core.node.node import Node

Key = tuple[bytes, int]
"""A partition by topic id and index."""

LIST_OFFSETS_VERSION = 10
LATEST = -1
EARLIEST = -2
UNKNOWN_EPOCH = -1
DROPPED_TOLD_MAX = 100


class State(Enum):
    """ASKING: part of the link's fetches. PAUSED: by an alarm, or until the metadata changes."""

    ASKING = "asking"
    PAUSED = "paused"
    RANGING = "ranging"
    ENDED = "ended"


class Copy:
    """Follows in one leader epoch. Invariant: fetches from the log's end, and only when synced."""

    __slots__ = ("_failures", "_node", "_pause", "_sent", "_state", "key", "link", "partition")

    def __init__(self, node: Node, link: FollowerLink, partition: Partition) -> None:
        self._node = node
        self.link = link
        self.partition = partition
        self.key: Key = (partition.topic_id, partition.topic_partition.index)
        self._state = State.PAUSED
        self._sent: FetchedPartition | None = None
        self._failures = 0
        self._pause: Alarm | None = None

    @property
    def is_asking(self) -> bool:
        return self._state is State.ASKING

    def ask(self) -> None:
        """Take part in the link's fetches from now on."""
        self._state = State.ASKING
        self._sent = None
        self._go_on()

    def end(self) -> None:
        self._state = State.ENDED
        self._cancel_pause()

    def on_link_closed(self) -> None:
        """What was asked beside the fetches is lost, too; the next link begins anew."""
        self._sent = None
        if self._state is State.RANGING:
            self._state = State.ASKING
        if self.is_asking:
            self._go_on()

    def on_synced(self, partition: Partition) -> None:
        log = partition.log
        if log.synced_end_offset >= log.log_end_offset:
            self.link.on_synced(self)

    def wanted(self, bytes_max: int) -> FetchedPartition:
        """What to say about this partition in the next request."""
        log = self.partition.log
        latest = log.latest_leader_epoch
        self._sent = FetchedPartition(
            self.key[1],
            self.partition.leader_epoch,
            log.log_end_offset,
            UNKNOWN_EPOCH if latest is None else latest,
            log.log_start_offset,
            bytes_max,
        )
        return self._sent

    def _go_on(self) -> None:
        """Mention it in the next request, once all that it has is as durable as it must be."""
        partition = self.partition
        log = partition.log
        if partition.waits_for_sync and log.synced_end_offset < log.log_end_offset:
            self.link.wait_for_sync(self)
            self._node.touch(partition)
        else:
            self.link.mention(self)

    # Answers

    def take(self, found: AnsweredPartition, now_ms: int) -> None:
        """What the leader says; only if it answers the question as it would be asked now."""
        sent = self._sent
        if (
            sent is None
            or not self.is_asking
            or sent.fetch_offset != self.partition.log.log_end_offset
            or sent.current_leader_epoch != self.partition.leader_epoch
        ):
            return
        if found.error_code != ErrorCode.NONE:
            self._refused(found.error_code, now_ms)
        elif found.diverging is not None:
            self._leave(EpochEnd(*found.diverging), found.log_start_offset, now_ms)
            self._on_progress()
        elif self._append(found, now_ms):
            self._take_fences(found)
            self._on_progress()

    def _on_progress(self) -> None:
        self._failures = 0
        if self.partition.log.failed is not None:
            self._node.on_log_failed(self.partition.log)
            return
        sent, log = self._sent, self.partition.log
        if sent is not None and (sent.fetch_offset, sent.log_start_offset) == (
            log.log_end_offset,
            log.log_start_offset,
        ):
            return
        self._go_on()

    def _append(self, found: AnsweredPartition, now_ms: int) -> bool:
        if not found.records:
            return True
        log = self.partition.log
        wall_ms = self._node.wall_ms(now_ms)
        try:
            try:
                self._write(found.records, wall_ms)
            except OffsetsOutOfOrder as bad:
                if (
                    log.log_start_offset != log.log_end_offset
                    or bad.base_offset > bad.log_end_offset
                ):
                    raise
                # The leader's first record lies in the middle of a batch, which comes as a whole.
                log.start_anew_at(bad.base_offset, wall_ms=wall_ms)
                self._write(found.records, wall_ms)
        except (CorruptBatch, OffsetsOutOfOrder) as bad:
            self._back_off(f"bad records: {bad}", now_ms)
            return False
        return True

    def _write(self, records: memoryview, wall_ms: int) -> None:
        partition = self.partition
        partition.log.append_as_follower(
            records, wall_ms=wall_ms, leader_epoch_max=partition.leader_epoch
        )

    def _take_fences(self, found: AnsweredPartition) -> None:
        """High watermark first: the log's start never passes it."""
        partition = self.partition
        log = partition.log
        if log.failed is not None:
            return
        moved = partition.follow_high_watermark(found.high_watermark)
        start_offset = min(found.log_start_offset, log.high_watermark)
        if start_offset > log.log_start_offset:
            log.delete_records_before(start_offset)
            moved = True
        if moved:
            partition.tell_watchers()

    def _leave(self, diverging: EpochEnd, leader_start_offset: int, now_ms: int) -> None:
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
            self._node.trace.emit(
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
            partition.tell_watchers()
        self._sent = None

    def _start_anew(self, offset: int, now_ms: int) -> None:
        partition = self.partition
        before = partition.log.log_end_offset
        partition.log.start_anew_at(offset, wall_ms=self._node.wall_ms(now_ms))
        self._node.trace.emit(
            events.FollowerStartedAnew(
                partition=str(partition.topic_partition),
                broker_id=partition.node_id,
                leader_epoch=partition.leader_epoch,
                from_end_offset=before,
                at_offset=offset,
            )
        )
        partition.tell_watchers()
        self._sent = None

    # Trouble

    def _refused(self, code: int, now_ms: int) -> None:
        reaction = reaction_to(code)
        if reaction is Reaction.FIND_RANGE:
            self._find_range(now_ms)
        elif reaction is Reaction.AWAIT_METADATA:
            self._stand_still(f"refused with {code}", None)
        else:
            self._back_off(f"refused with {code}", now_ms)

    def _back_off(self, reason: str, now_ms: int) -> None:
        self._failures += 1
        at_most_ms = self._node.settings.integer("replica.fetch.backoff.ms")
        wait_ms = back_off_ms(self._failures, at_most_ms=at_most_ms)
        self._stand_still(reason, wait_ms)
        self._pause = self._node.alarms.at(now_ms + wait_ms, self._resume)

    def _resume(self, now_ms: int) -> None:
        self._pause = None
        if self._state is State.PAUSED:
            self.ask()

    def _stand_still(self, reason: str, wait_ms: int | None) -> None:
        self._state = State.PAUSED
        self._cancel_pause()
        self.link.hush(self)
        self._node.trace.emit(
            events.FollowerBackedOff(
                broker_id=self._node.settings.node_id,
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
        """Ask where the leader's log begins and ends; meanwhile the others go on."""
        link = self.link.link
        assert link is not None, "it has just answered"
        self._state = State.RANGING
        self.link.hush(self)
        known: dict[int, int] = {}

        def then(asked: int, answer: Message | NoAnswer, now_ms: int) -> None:
            if self._state is not State.RANGING or not isinstance(answer, ListOffsetsResponse):
                return  # ended, or the link did; both have been dealt with
            found = answer.topics[0].partitions[0]
            if found.error_code != ErrorCode.NONE:
                self._refused_range(found.error_code, now_ms)
                return
            known[asked] = found.offset
            if len(known) == 2:
                self._restart(known[EARLIEST], known[LATEST], now_ms)

        timeout_ms = self._node.settings.integer("replica.socket.timeout.ms")
        for asked in (LATEST, EARLIEST):
            link.ask(
                self._range_question(asked),
                LIST_OFFSETS_VERSION,
                partial(then, asked),
                timeout_ms=timeout_ms,
                now_ms=now_ms,
            )

    def _range_question(self, asked: int) -> ListOffsetsRequest:
        topic_partition = self.partition.topic_partition
        question = ListOffsetsPartition(
            partition_index=topic_partition.index,
            current_leader_epoch=self.partition.leader_epoch,
            timestamp=asked,
        )
        return ListOffsetsRequest(
            replica_id=self._node.settings.node_id,
            topics=[ListOffsetsTopic(name=topic_partition.topic, partitions=[question])],
        )

    def _refused_range(self, code: int, now_ms: int) -> None:
        if reaction_to(code) is Reaction.AWAIT_METADATA:
            self._stand_still(f"refused with {code}", None)
        else:
            self._back_off(f"refused with {code}", now_ms)

    def _restart(self, leader_start_offset: int, leader_end_offset: int, now_ms: int) -> None:
        partition = self.partition
        log = partition.log
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
            self._node.on_log_failed(log)
            return
        self.ask()


def _batches_from(log: Log, start_offset: int) -> tuple[tuple[int, int, int], ...]:
    """For the trace: (first offset, end offset, leader epoch), as far as they can be read."""
    start_offset = max(start_offset, log.log_start_offset)
    if start_offset >= log.log_end_offset:
        return ()
    try:
        return tuple(
            (header.base_offset, header.end_offset, header.leader_epoch)
            for header in islice(log.batch_headers(start_offset), DROPPED_TOLD_MAX)
        )
    except (CorruptBatch, DiskError):
        return ()
