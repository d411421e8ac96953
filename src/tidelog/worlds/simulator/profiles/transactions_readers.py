"""Readers of transactional records, of both isolation levels, and a last scan of every replica.

They follow every partition from 0 to its end and never seek. A read_committed reader leaves out
what the answer says is aborted, as Kafka's consumer does: the broker only stops at the last stable
offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.storage.validation import end_marker_of
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidelog.core.wire.record_batch import (
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    batches,
    crc_is_valid,
)
from tidelog.core.wire.records import iterate
from tidelog.core.wire.sentinels import NO_LEADER_EPOCH
from tidelog.judge.transactions.transaction_history import ReadRecord, TransactionalRead
from tidelog.worlds.simulator.payloads import from_value
from tidelog.worlds.simulator.profiles.transactions_context import (
    RecordsSkipped,
    TransactionsContext,
)
from tidelog.worlds.simulator.profiles.transactions_scripts import Rest, Script, ScriptedClient

FETCH_VERSION = 12
PARTITION_BYTES = 1 << 16
WAIT_MS = 100
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
REQUEST_TIMEOUT_MS = 1_500


class ReadAnswer(NamedTuple):
    """What a program is given of one answer, and where it goes on."""

    records: tuple[ReadRecord, ...]
    next_offset: int
    has_skipped: bool


class WantedPartition(NamedTuple):
    """Where to read; without a leader epoch the broker may be a follower."""

    partition: TopicPartition
    offset: int
    leader_epoch: int | None


Fetched = tuple[WantedPartition, PartitionData, ReadAnswer]


def read_records(data: PartitionData, start_offset: int, *, is_committed: bool) -> ReadAnswer:
    """The records of whole batches, without those that the answer calls aborted."""
    view = memoryview(data.records or b"")
    aborted = sorted(data.aborted_transactions or (), key=lambda each: each.first_offset)
    skipped: set[int] = set()
    records: list[ReadRecord] = []
    next_offset, has_skipped = start_offset, False
    for position, header in batches(view):
        assert crc_is_valid(view, position, header), f"corrupt at {header.base_offset}"
        while aborted and aborted[0].first_offset < header.end_offset:
            skipped.add(aborted.pop(0).producer_id)
        next_offset = header.end_offset
        if header.attributes & CONTROL_BIT:
            if _is_abort(view[position:], header):
                skipped.discard(header.producer_id)
            continue
        is_transactional = header.attributes & TRANSACTIONAL_BIT
        if is_committed and is_transactional and header.producer_id in skipped:
            has_skipped = True
            continue
        records += [
            ReadRecord(record.offset, from_value(record.value))
            for record in iterate(view, position)
            if record.offset >= start_offset
        ]
    return ReadAnswer(tuple(records), next_offset, has_skipped)


def _is_abort(view: memoryview, header: BatchHeader) -> bool:
    marker = end_marker_of(view, header)
    return marker is not None and not marker.commit


class TransactionReader(ScriptedClient):
    """One leader after the other, over and over."""

    def __init__(
        self,
        context: TransactionsContext,
        name: str,
        *,
        is_committed: bool,
        replica: int | None = None,
    ) -> None:
        super().__init__(context, name, request_timeout_ms=REQUEST_TIMEOUT_MS)
        self.is_committed = is_committed
        self.replica = replica
        """The broker that it reads from; None: the leader of each partition."""
        self.positions: dict[TopicPartition, int] = {}

    def missing(self) -> Iterator[str]:
        """Where it has not come to the end yet."""
        for partition in self.run.data_partitions:
            end_offset = self.run.log_end(self.run.name_of(partition))
            position = self.positions.get(partition, 0)
            if end_offset is None or position < end_offset:
                yield f"{self.name} is at {position} of {partition}: {end_offset}"

    def following(self) -> Script[None]:
        """Until it is killed."""
        while True:
            by_broker: dict[int, list[WantedPartition]] = {}
            for partition in self.run.data_partitions:
                led = yield from self.finding_leader(str(partition))
                if led is not None:
                    wanted = self._wanted(partition, led.leader_epoch)
                    by_broker.setdefault(led.leader, []).append(wanted)
            for broker in sorted(by_broker):
                yield from self.reading(by_broker[broker], broker)
            yield Rest(self.random.randint(20, 60))

    def scanning(self) -> Script[None]:
        """To the end of every partition, on one replica."""
        assert self.replica is not None
        while next(self.missing(), None) is not None:
            wanted = [self._wanted(each, None) for each in self.run.data_partitions]
            yield from self.reading(wanted, self.replica)
            yield Rest(10)

    def _wanted(self, partition: TopicPartition, leader_epoch: int | None) -> WantedPartition:
        return WantedPartition(partition, self.positions.get(partition, 0), leader_epoch)

    def reading(self, wanted: list[WantedPartition], broker: int) -> Script[None]:
        """One fetch of some partitions."""
        invoked_us = self.run.world.now_us
        fetched = yield from fetching(self, wanted, broker, is_committed=self.is_committed)
        for each, data, answer in fetched:
            self.positions[each.partition] = answer.next_offset
            if answer.has_skipped:
                trace = self.run.world.trace
                trace.emit("readers", RecordsSkipped(self.name, str(each.partition)))
            self.run.record_transaction(
                TransactionalRead(
                    at_us=self.run.world.now_us,
                    invoked_us=invoked_us,
                    reader=self.name,
                    partition=str(each.partition),
                    is_committed=self.is_committed,
                    start_offset=each.offset,
                    next_offset=answer.next_offset,
                    records=answer.records,
                    last_stable_offset=data.last_stable_offset,
                    high_watermark=data.high_watermark,
                    leader_epoch=each.leader_epoch,
                )
            )


def fetching(
    client: ScriptedClient, wanted: list[WantedPartition], broker: int, *, is_committed: bool
) -> Script[list[Fetched]]:
    """One fetch; what was refused is left out, and the leaders are looked up."""
    request = FetchRequest(
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=READ_COMMITTED if is_committed else READ_UNCOMMITTED,
        topics=[
            FetchTopic(
                topic=each.partition.topic,
                partitions=[
                    FetchPartition(
                        partition=each.partition.index,
                        current_leader_epoch=(
                            NO_LEADER_EPOCH if each.leader_epoch is None else each.leader_epoch
                        ),
                        fetch_offset=each.offset,
                        partition_max_bytes=PARTITION_BYTES,
                    )
                ],
            )
            for each in wanted
        ],
    )
    reply = yield from client.asking(request, FETCH_VERSION, broker)
    fetched: list[Fetched] = []
    if isinstance(reply, FetchResponse):
        by_name = {each.partition: each for each in wanted}
        for topic in reply.responses:
            for data in topic.partitions:
                each = by_name[TopicPartition(topic.topic, data.partition_index)]
                if data.error_code == ErrorCode.NONE:
                    answer = read_records(data, each.offset, is_committed=is_committed)
                    fetched.append((each, data, answer))
    if len(fetched) < len(wanted):
        client.refresh()
        yield Rest(20)
    return fetched
