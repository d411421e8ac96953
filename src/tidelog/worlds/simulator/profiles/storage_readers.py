"""Readers: fetch anywhere in any version, and write down every record that they are given."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.judge.anomalies import UNEXPECTED_ANSWER
from tidelog.judge.history import OffsetRefused, RecordsRead
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.payloads import read_answer
from tidelog.worlds.simulator.profiles.storage_context import (
    DELETED,
    StorageContext,
    TrackedPartition,
)
from tidelog.worlds.simulator.requests import fetch, fetch_answer

VERSIONS_BY_NAME = (4, 6, 9, 11, 12)
VERSIONS_BY_ID = (13, 15, 17, 18)
BYTES_MAX = (1, 300, 2_000, 20_000, 1 << 20)


def damage_reported(
    topic_partition: TrackedPartition, offset: int, invoked_us: int, now_us: int
) -> RecordsRead:
    """A refusal because of damage: the judges ask whether the batch at that very offset has any."""
    return RecordsRead(
        at_us=now_us,
        invoked_us=invoked_us,
        partition=topic_partition.key,
        start_offset=offset,
        records=(),
        high_watermark=offset,
        log_start_offset=0,
        corrupt_offset=offset,
    )


class StorageReader:
    """Reads at the tail, at the head and in between."""

    def __init__(self, context: StorageContext, name: str) -> None:
        self.context = context
        self.name = name
        self.random = context.world.random_for(name)
        self.client = context.client(name)

    def start(self) -> None:
        self.context.later(self.random, 0, 50, self._go_on)

    def _go_on(self) -> None:
        if self.context.is_over:
            return
        topic_partition = self.context.any_partition(self.random)
        if topic_partition is not None and self.client.in_flight < 3:
            self._read(topic_partition, self._choose_offset(topic_partition))
        self.start()

    def _choose_offset(self, topic_partition: TrackedPartition) -> int:
        random = self.random
        end_offset = topic_partition.topic.ends.get(topic_partition.index, 0)
        near = max(0, end_offset - random.randint(0, 4))
        return random.choice((0, near, near, end_offset, random.randint(0, end_offset + 1)))

    def _read(self, topic_partition: TrackedPartition, offset: int) -> None:
        random = self.random
        by_name = () if topic_partition.topic.by_id_only else VERSIONS_BY_NAME
        invoked_us = self.context.world.now_us
        self.client.call(
            fetch(
                topic_partition.topic.name,
                topic_partition.index,
                offset,
                bytes_max=random.choice(BYTES_MAX),
                wait_ms=random.choice((0, 0, 20, 200)),
                bytes_min=random.choice((0, 1, 1, 1_000)),
                isolation_level=random.choice((0, 1)),
            ),
            random.choice(VERSIONS_BY_ID + by_name),
            lambda answer: self._on_answer(topic_partition, offset, invoked_us, answer),
        )

    def _on_answer(
        self, topic_partition: TrackedPartition, offset: int, invoked_us: int, answer: Reply
    ) -> None:
        if isinstance(answer, CallFailed):
            return
        result = fetch_answer(answer)
        now_us = self.context.world.now_us
        if result.error_code == ErrorCode.NONE:
            records, corrupt_offset = read_answer(result.records, next_offset=offset)
            if records:
                ends = topic_partition.topic.ends
                ends[topic_partition.index] = max(
                    ends.get(topic_partition.index, 0), records[-1].offset + 1
                )
            self.context.record(
                RecordsRead(
                    at_us=now_us,
                    invoked_us=invoked_us,
                    partition=topic_partition.key,
                    start_offset=offset,
                    records=records,
                    high_watermark=result.high_watermark,
                    log_start_offset=result.log_start_offset if result.log_start_offset >= 0 else 0,
                    corrupt_offset=corrupt_offset,
                )
            )
        elif result.error_code == ErrorCode.CORRUPT_MESSAGE:
            self.context.record(damage_reported(topic_partition, offset, invoked_us, now_us))
        elif result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            topic_partition.topic.ends.pop(topic_partition.index, None)
            self.context.record(
                OffsetRefused(
                    at_us=now_us,
                    invoked_us=invoked_us,
                    partition=topic_partition.key,
                    start_offset=offset,
                )
            )
        elif result.error_code != ErrorCode.KAFKA_STORAGE_ERROR and not (
            result.error_code in DELETED and topic_partition.topic.is_deleted
        ):
            self.context.report_anomaly(
                UNEXPECTED_ANSWER,
                topic_partition.key,
                request=f"fetch by {self.name}",
                answer=f"error {result.error_code}",
            )
