"""A range on a fake cluster of three brokers, and a program that takes what comes."""

from __future__ import annotations

from typing import Any

from tests.unit.client.fake_cluster import FakeCluster, Seen
from tests.unit.client.virtual import Host
from tidelog.client.ranges.config import range_config
from tidelog.client.ranges.fetched_range import FetchedRange
from tidelog.client.ranges.range_fetch import RangeFetch
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tidelog.core.wire.record_batch import batches
from tidelog.core.wire.records import iterate

TOPIC = "orders"
P0 = TopicPartition(TOPIC, 0)
STALLED_MS = 20_000


class RangeStory:
    """One cluster, one client, any number of ranges; `pieces` are those of the first."""

    def __init__(self, **settings: Any) -> None:
        self.cluster = FakeCluster()
        self.cluster.create(TOPIC)
        self.clock = self.cluster.clock
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = range_config(
            {"bootstrap.servers": self.cluster.bootstrap, **given}, stalled_ms=STALLED_MS
        )
        self.host = Host(self.cluster, self.config.consumer.client)
        self.pieces: list[FetchedRange] = []
        self.machine: RangeFetch | None = None

    @property
    def log(self) -> Any:
        return self.cluster["orders-0"]

    @property
    def range(self) -> RangeFetch:
        assert self.machine is not None
        return self.machine

    def fill(self, records: int) -> None:
        """One batch for each record."""
        for number in range(records):
            self.log.write(f"r{number}")

    def begin(self, start: int, end: int, partition: TopicPartition = P0) -> RangeFetch:
        """Ask for it; nothing has come yet."""

        def begun(now_ms: int) -> RangeFetch:
            return RangeFetch(
                self.host.client,
                self.config,
                partition,
                start_offset=start,
                end_offset=end,
                now_ms=now_ms,
            )

        made: RangeFetch = self.host.do(begun)
        self.machine = self.machine or made
        return made

    def until_fetched(self, within_ms: int = 60_000) -> None:
        """Until the next piece, or an error, is there."""
        self.clock.run_until(
            lambda: self.range.fetched is not None or self.range.error is not None,
            within_ms=within_ms,
        )

    def take(self) -> FetchedRange:
        taken = self.host.do(self.range.take)
        assert isinstance(taken, FetchedRange)
        self.pieces.append(taken)
        return taken

    def read_all(self, within_ms: int = 60_000) -> None:
        while not self.range.is_complete:
            self.until_fetched(within_ms)
            assert self.range.error is None, self.range.error
            self.take()

    def offsets(self) -> list[int]:
        """Of all records in the pieces, also those outside of the range."""
        return [
            record.offset
            for piece in self.pieces
            for at, _ in batches(piece.records)
            for record in iterate(piece.records, at)
        ]

    def fetches(self, broker_id: int | None = None) -> list[Seen]:
        return self.cluster.requests(FetchRequest, broker_id)

    def asked_offsets(self, broker_id: int | None = None) -> list[int]:
        return [
            seen.request.topics[0].partitions[0].fetch_offset for seen in self.fetches(broker_id)
        ]


def answers(**fields: Any) -> Any:
    """A rule: fetches are answered with this."""

    def rule(broker_id: int, request: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return None
        data = PartitionData(**{"partition_index": 0, "high_watermark": -1, **fields})
        topic = FetchableTopicResponse(topic=TOPIC, topic_id=bytes(15) + b"\x0a", partitions=[data])
        return FetchResponse(responses=[topic])

    return rule


def refused(error: ErrorCode) -> Any:
    return answers(error_code=error)


def in_pieces(*sizes: int) -> Any:
    """A rule: each answer has so many batches, as if the broker had no room for more."""
    left = list(sizes)

    def rule(story: RangeStory) -> Any:
        def limit(broker_id: int, request: Any) -> Any:
            if not isinstance(request, FetchRequest) or not left:
                return None
            offset = request.topics[0].partitions[0].fetch_offset
            count = left.pop(0)
            records = b"".join(story.log.log[offset : offset + count])
            return answers(records=records, high_watermark=story.log.high_watermark)(
                broker_id, request
            )

        return limit

    return rule
