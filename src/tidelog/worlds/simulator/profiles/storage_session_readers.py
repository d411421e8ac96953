"""Followers of the tail: readers with an incremental fetch session over many partitions."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from tidelog.judge.anomalies import UNEXPECTED_ANSWER
from tidelog.judge.history import OffsetRefused, RecordsRead
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.payloads import read_answer
from tidelog.worlds.simulator.profiles.storage_context import (
    DELETED,
    StorageContext,
    TrackedPartition,
)
from tidelog.worlds.simulator.profiles.storage_readers import damage_reported

VERSIONS = (13, 15, 18)
NEW_SESSION = (0, 0)
SESSION_LOST = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class SessionReader:
    """Reads every partition from its start to its end, telling the broker only what changed."""

    def __init__(self, context: StorageContext, name: str) -> None:
        self.context = context
        self.name = name
        self.random = context.world.random_for(name)
        self.client = context.client(name)
        self._version = self.random.choice(VERSIONS)
        self._session = NEW_SESSION
        self._positions: dict[TrackedPartition, int] = {}
        self._session_offsets: dict[TrackedPartition, int] = {}
        """The positions that the session knows."""

    def start(self) -> None:
        self.context.later(self.random, 1, 60, self._go_on)

    def _go_on(self) -> None:
        if self.context.is_over:
            return
        if self.client.in_flight == 0:
            self._ask()
        self.start()

    def _ask(self) -> None:
        self._track_partitions()
        session_id, session_epoch = self._session
        if self._session == NEW_SESSION:
            self._session_offsets = {}
        changed = [
            topic_partition
            for topic_partition, offset in self._positions.items()
            if self._session_offsets.get(topic_partition) != offset or self.random.random() < 0.05
        ]
        forgotten = [
            topic_partition
            for topic_partition in self._session_offsets
            if topic_partition not in self._positions
        ]
        request = FetchRequest(
            max_wait_ms=self.random.choice((0, 30, 300)),
            min_bytes=1,
            max_bytes=self.random.choice((1, 5_000, 1 << 20)),
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[self._wanted(topic_partition) for topic_partition in changed],
            forgotten_topics_data=[
                ForgottenTopic(
                    topic_id=topic_partition.topic.name.topic_id, partitions=[topic_partition.index]
                )
                for topic_partition in forgotten
            ],
        )
        for topic_partition in changed:
            self._session_offsets[topic_partition] = self._positions[topic_partition]
        for topic_partition in forgotten:
            del self._session_offsets[topic_partition]
        invoked_us = self.context.world.now_us
        self.client.call(request, self._version, lambda answer: self._on_answer(invoked_us, answer))

    def _wanted(self, topic_partition: TrackedPartition) -> FetchTopic:
        partition = FetchPartition(
            partition=topic_partition.index,
            fetch_offset=self._positions[topic_partition],
            partition_max_bytes=self.random.choice((1, 1_000, 1 << 20)),
        )
        return FetchTopic(topic_id=topic_partition.topic.name.topic_id, partitions=[partition])

    def _track_partitions(self) -> None:
        for topic_partition in [
            topic_partition
            for topic_partition in self._positions
            if topic_partition.topic.is_deleted
        ]:
            del self._positions[topic_partition]
        for topic in self.context.live_topics():
            for index in range(topic.partitions):
                self._positions.setdefault(TrackedPartition(topic, index), 0)

    def _on_answer(self, invoked_us: int, answer: Reply) -> None:
        if not isinstance(answer, FetchResponse):
            self._session = NEW_SESSION
            return
        if answer.error_code != ErrorCode.NONE:
            self._session = NEW_SESSION
            if answer.error_code not in SESSION_LOST:
                self.context.report_anomaly(
                    UNEXPECTED_ANSWER,
                    "-",
                    request=f"session of {self.name}",
                    answer=answer.error_code,
                )
            return
        session_id, session_epoch = self._session
        self._session = (answer.session_id, session_epoch + 1) if answer.session_id else NEW_SESSION
        if answer.session_id not in (0, session_id) and session_id != 0:
            self.context.report_anomaly(
                UNEXPECTED_ANSWER,
                "-",
                request=f"session of {self.name}",
                answer="another session answered",
            )
        topic_partitions = {
            (topic_partition.topic.name.topic_id, topic_partition.index): topic_partition
            for topic_partition in self._positions
        }
        for topic in answer.responses:
            for result in topic.partitions:
                topic_partition = topic_partitions.get((topic.topic_id, result.partition_index))
                if topic_partition is not None:
                    self._on_partition(topic_partition, result, invoked_us)

    def _on_partition(
        self, topic_partition: TrackedPartition, result: PartitionData, invoked_us: int
    ) -> None:
        now_us = self.context.world.now_us
        offset = self._positions[topic_partition]
        if result.error_code == ErrorCode.NONE:
            records, corrupt_offset = read_answer(result.records, next_offset=offset)
            if not records and corrupt_offset is None:
                return  # its share of the answer's bytes was given to other partitions
            self.context.record(
                RecordsRead(
                    at_us=now_us,
                    invoked_us=invoked_us,
                    partition=topic_partition.key,
                    start_offset=offset,
                    records=records,
                    high_watermark=result.high_watermark,
                    log_start_offset=result.log_start_offset,
                    corrupt_offset=corrupt_offset,
                )
            )
            if records:
                self._positions[topic_partition] = max(offset, records[-1].offset + 1)
            if corrupt_offset is not None:
                self._positions[topic_partition] = corrupt_offset + self.random.randint(1, 6)
        elif result.error_code == ErrorCode.CORRUPT_MESSAGE:
            self.context.record(damage_reported(topic_partition, offset, invoked_us, now_us))
            self._positions[topic_partition] = offset + self.random.randint(1, 6)
        elif result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[topic_partition] = self.random.randint(0, offset + 4)
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
                request=f"session of {self.name}",
                answer=result.error_code,
            )
