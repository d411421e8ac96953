"""One range of one partition, fetched piece by piece from whoever leads it.

The next piece is asked for as soon as the last one has been taken, so that it is on its way while
the program works on that. Leaders that move, answer nothing or fall back are followed with the
client's own pauses. What cannot be cured by asking again becomes `error`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.cluster_metadata import STALE_METADATA, Leader, leader_from_wire
from tidelog.client.ranges.config import RangeConfig
from tidelog.client.ranges.errors import Loss, RangeError, RangeLost, RangeRefused, RangeStalled
from tidelog.client.ranges.fetched_range import (
    FetchedAbortedTransaction,
    FetchedRange,
    whole_batches,
)
from tidelog.client.ranges.log_bounds import find_bounds, find_truncation
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import FINAL_SESSION_EPOCH

_TOPIC_IDS_FROM = 13
_NO_SESSION = 0
_WAIT_FOR_IT = STALE_METADATA | {
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
_SLACK_BYTES = 64 * 1024
_FIRST_GUESS_BYTES = 1024
"""Of one record, before one has been seen."""


def copied(records: memoryview) -> memoryview:
    """For hosts whose answers are valid only while they are delivered."""
    return memoryview(bytes(records))


class RangeFetch:
    """Attached to a client until it is over. Outputs: `fetched`, `error`, `is_complete`.

    Invariant: at most one piece is on its way and at most one waits to be taken.
    """

    def __init__(
        self,
        client: Client,
        config: RangeConfig,
        partition: TopicPartition,
        *,
        start_offset: int,
        end_offset: int,
        now_ms: int,
        keep: Callable[[memoryview], memoryview] = copied,
    ) -> None:
        """`keep` makes the bytes of an answer last; a host whose answers last gives them as is."""
        assert 0 <= start_offset <= end_offset, (start_offset, end_offset)
        self._client = client
        self._config = config
        self._partition = partition
        self._end_offset = end_offset
        self._keep = keep
        self.next_offset = start_offset
        self.fetched: FetchedRange | None = None
        self.error: RangeError | None = None
        self._is_sent = False
        self._retry_at_ms = 0
        self._failures = 0
        self._waits_since_ms = now_ms
        self._reason = "no broker has named its leader"
        self._topic_id: bytes | None = None
        self._read_replica: int | None = None
        self._read_epoch: int | None = None
        """The leader epoch of the last batch that was read."""
        self._trusted: Leader | None = None
        """The leader under which that batch is known to be in the log."""
        self._bytes_per_offset: float = _FIRST_GUESS_BYTES
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        client.refresh.add_topic(partition.topic)
        client.attach(self)

    @property
    def is_complete(self) -> bool:
        """Everything has come, and has been taken."""
        return self.fetched is None and self.next_offset >= self._end_offset

    def take(self, now_ms: int) -> FetchedRange | None:
        """The next piece, if it has come."""
        taken, self.fetched = self.fetched, None
        self._waits_since_ms = now_ms
        return taken

    def wait_begins(self, now_ms: int) -> None:
        """The program has nothing left to work on: from now on time counts."""
        self._waits_since_ms = now_ms

    def close(self) -> None:
        """The rest is not fetched."""
        if self._client.is_attached(self):
            self._client.detach(self)

    # What the client calls

    def run(self, now_ms: int) -> None:
        if self.error is not None or self.fetched is not None or self.is_complete:
            return
        if now_ms >= self._stalled_at_ms():
            self._fail(RangeStalled, f"nothing new for {self._stall_time()}: {self._full_reason()}")
        elif not self._is_sent and now_ms >= self._retry_at_ms:
            self._go_on(now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        return (self._stalled_at_ms(), self._retry_at_ms)

    def _stalled_at_ms(self) -> int:
        return self._waits_since_ms + self._config.stalled_ms

    def _stall_time(self) -> str:
        return f"{self._config.stalled_ms / 1_000:g} s"

    def _full_reason(self) -> str:
        failures = self._client.connections.failures()
        tried = ", ".join(f"{address} ({reason})" for address, reason in failures)
        return f"{self._reason}; not reached: {tried}" if tried else self._reason

    # Which node to ask

    def _go_on(self, now_ms: int) -> None:
        leader = self._client.metadata.leader(self._partition)
        node = self._node(leader)
        if node is None or self._is_replaced():
            return
        address = self._client.metadata.address(node)
        if address is None:
            self._await_metadata(f"the address of broker {node} is not known")
        elif not self._client.connections.make_usable(node, address, now_ms):
            self._reason = f"broker {node} at {address} cannot be reached"
        elif self._read_epoch is not None and leader != self._trusted:
            self._validate(leader, self._read_epoch, now_ms)
        else:
            self._reason = f"broker {node} at {address} does not answer"
            self._send(node, leader, now_ms)

    def _node(self, leader: Leader) -> int | None:
        metadata = self._client.metadata
        topic = metadata.topics.get(self._partition.topic)
        if topic is not None and topic.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._fail(RangeRefused, topic.error.name)
        elif topic is None or topic.error != ErrorCode.NONE:
            has_brokers = bool(metadata.brokers)
            self._await_metadata(
                "no broker knows this topic" if has_brokers else "no broker answers"
            )
        elif self._partition.index not in topic.partitions:
            self._await_metadata(f"the topic has only {len(topic.partitions)} partitions")
        elif leader.broker_id is None:
            self._await_metadata("it has no leader")
        elif self._read_replica is not None and self._read_replica in metadata.brokers:
            return self._read_replica
        else:
            return leader.broker_id
        return None

    def _is_replaced(self) -> bool:
        """A namesake has offsets of its own, which mean other records."""
        topic_id = self._client.metadata.topic_id(self._partition.topic)
        if self._topic_id is not None and topic_id is not None and topic_id != self._topic_id:
            self.error = RangeLost(self._partition, self.next_offset, kind=Loss.REPLACED)
            return True
        self._topic_id = topic_id
        return False

    def _await_metadata(self, reason: str) -> None:
        self._reason = reason
        self._client.refresh.request_update()

    def _pause(self, reason: str, now_ms: int) -> None:
        self._reason = reason
        self._retry_at_ms = now_ms + self._back_off.pause_ms(self._failures)
        self._failures += 1

    def _fail(self, kind: type[RangeStalled | RangeRefused], text: str) -> None:
        self.error = kind(self._partition, self.next_offset, text)

    # Requests

    def _send(self, node: int, leader: Leader, now_ms: int) -> None:
        newest = None if self._topic_id is not None else _TOPIC_IDS_FROM - 1
        version = self._client.connections.version(node, FetchRequest, at_most=newest)
        if version is None:
            self._fail(RangeRefused, f"broker {node} speaks no version of Fetch that we do")
            return
        self._is_sent = True
        offset = self.next_offset

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            self._is_sent = False
            if self._client.is_attached(self):
                self._answered(node, leader, offset, answer, now_ms)

        self._client.connections.send(node, self._request(leader), version, answered, now_ms=now_ms)

    def _request(self, leader: Leader) -> FetchRequest:
        config = self._config.consumer
        partition = FetchPartition(
            partition=self._partition.index,
            fetch_offset=self.next_offset,
            partition_max_bytes=self._fetch_bytes(),
        )
        if leader.leader_epoch is not None:
            partition.current_leader_epoch = leader.leader_epoch
        topic = FetchTopic(
            topic=self._partition.topic,
            topic_id=self._topic_id or ZERO_TOPIC_ID,
            partitions=[partition],
        )
        return FetchRequest(
            max_wait_ms=config.fetch_wait_ms,
            min_bytes=config.fetch_bytes_min,
            max_bytes=config.fetch_bytes_max,
            isolation_level=int(config.is_read_committed),
            session_id=_NO_SESSION,
            session_epoch=FINAL_SESSION_EPOCH,
            topics=[topic],
            rack_id=config.client.client_rack,
        )

    def _fetch_bytes(self) -> int:
        """Not much more than the rest of the range may take."""
        left = self._end_offset - self.next_offset
        size = _SLACK_BYTES + int(1.25 * left * self._bytes_per_offset)
        return min(size, self._config.consumer.partition_bytes_max)

    # Answers

    def _answered(
        self, node: int, leader: Leader, offset: int, answer: Message | NoAnswer, now_ms: int
    ) -> None:
        if not isinstance(answer, FetchResponse):
            reason = answer.reason if isinstance(answer, NoAnswer) else "another answer"
            self._client.refresh.request_update()
            self._read_replica = None
            self._pause(f"broker {node}: {reason}", now_ms)
            return
        data = _partition_data(answer, self._partition.index)
        error = ErrorCode.from_wire(answer.error_code if data is None else data.error_code)
        if data is not None and error == ErrorCode.NONE:
            self._succeeded(node, leader, offset, data, now_ms)
        else:
            if data is not None:
                self._take_hint(data, answer)
            self._refused(node, error, now_ms)

    def _succeeded(
        self, node: int, leader: Leader, offset: int, data: PartitionData, now_ms: int
    ) -> None:
        self._trusted = leader
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != node:
            self._read_replica = data.preferred_read_replica
            return
        records = memoryview(data.records or b"")
        if not records:
            self._pause(self._nothing_to_read(node, offset, data), now_ms)
            return
        try:
            whole = whole_batches(records, end_offset=self._end_offset)
        except CorruptBatch as bad:
            self._fail(RangeRefused, f"broker {node} gives damaged batches: {bad}")
            return
        if whole is None or whole.next_offset <= offset:
            self._fail(RangeRefused, f"broker {node} gives no whole batch of the range")
            return
        self._failures = 0
        self._bytes_per_offset = whole.bytes_end / (whole.next_offset - offset)
        self._read_epoch = whole.leader_epoch if whole.leader_epoch >= 0 else self._read_epoch
        self.next_offset = whole.next_offset
        self.fetched = FetchedRange(
            records=self._keep(records[: whole.bytes_end]),
            aborted=tuple(
                FetchedAbortedTransaction(each.producer_id, each.first_offset)
                for each in data.aborted_transactions or ()
            ),
            start_offset=offset,
            next_offset=whole.next_offset,
            log_start_offset=data.log_start_offset if data.log_start_offset >= 0 else None,
            last_stable_offset=data.last_stable_offset if data.last_stable_offset >= 0 else None,
            high_watermark=data.high_watermark,
            broker_id=node,
        )

    def _nothing_to_read(self, node: int, offset: int, data: PartitionData) -> str:
        bound = data.high_watermark
        what = "the high watermark"
        if self._config.consumer.is_read_committed and 0 <= data.last_stable_offset < bound:
            bound = data.last_stable_offset
            what = "an open transaction"
        return f"broker {node} has nothing to read there, only up to {what} at offset {bound}"

    def _take_hint(self, data: PartitionData, answer: FetchResponse) -> None:
        hint = data.current_leader
        leader = leader_from_wire(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
        self._client.metadata.learn_leader(self._partition, leader, answer.node_endpoints)

    def _refused(self, node: int, error: ErrorCode, now_ms: int) -> None:
        is_follower, self._read_replica = self._read_replica is not None, None
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            # A follower may lag behind: only the leader's answer counts.
            if not is_follower:
                self._find_bounds(now_ms)
        elif error in _WAIT_FOR_IT:
            self._client.refresh.request_update()
            self._pause(f"broker {node}: {error.name}", now_ms)
        else:
            self._fail(RangeRefused, f"broker {node}: {error.name}")

    # What has become of the log

    def _find_bounds(self, now_ms: int) -> None:
        self._is_sent = True

        def found(log_start_offset: int | None, high_watermark: int | None, now_ms: int) -> None:
            self._is_sent = False
            if log_start_offset is None or high_watermark is None:
                self._pause("its first and its next offset cannot be found out", now_ms)
            elif log_start_offset <= self.next_offset <= high_watermark:
                self._pause("the offset was out of range for a moment", now_ms)
            else:
                is_deleted = self.next_offset < log_start_offset
                self.error = RangeLost(
                    self._partition,
                    self.next_offset,
                    kind=Loss.DELETED if is_deleted else Loss.BEYOND_END,
                    log_start_offset=log_start_offset,
                    high_watermark=high_watermark,
                )

        find_bounds(self._client, self._partition, found, now_ms=now_ms)

    def _validate(self, leader: Leader, read_epoch: int, now_ms: int) -> None:
        self._is_sent = True
        self._reason = "the new leader does not answer where the last leader epoch ends"

        def found(end_offset: int | None, is_known: bool, now_ms: int) -> None:
            self._is_sent = False
            if not is_known:
                self._client.refresh.request_update()
                self._pause(self._reason, now_ms)
            elif end_offset is not None and end_offset < self.next_offset:
                self.error = RangeLost(
                    self._partition,
                    self.next_offset,
                    kind=Loss.TRUNCATED,
                    high_watermark=end_offset,
                )
            else:
                self._trusted = leader

        find_truncation(self._client, self._partition, leader, read_epoch, found, now_ms=now_ms)


def _partition_data(answer: FetchResponse, index: int) -> PartitionData | None:
    for topic in answer.responses:
        for data in topic.partitions:
            if data.partition_index == index:
                return data
    return None
