"""Readers of a run: they follow every partition to its end, and seek if restless."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidelog.judge.history import Moved, RecordsRead, Seen
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.payloads import read_answer
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.plan import ReaderPlan
from tidelog.worlds.simulator.profiles.wire_clients import KnownLeader, LeaderTracker

FETCH_VERSION = 12
WAIT_MS = 200
SEEK_CHANCE = 0.02
REFRESH_MS = 600


class WireReader(LeaderTracker):
    """One fetch under way to each leader, for all partitions that it leads."""

    def __init__(self, context: RunContext, plan: ReaderPlan) -> None:
        super().__init__(context, plan.name)
        self.plan = plan
        self.positions: dict[TopicPartition, int] = {}
        self._names: dict[TopicPartition, str] = {}
        """Under which name the judges know what it reads there."""
        self._busy: set[int] = set()
        self._refreshed_us = 0

    def start(self) -> None:
        self.context.later(self.random, 20, 60, self._go_on)

    def missing(self) -> Iterator[str]:
        """Where it has not come to the end yet."""
        for topic_partition in self.context.topic_partitions:
            partition = self.context.name_of(topic_partition)
            end_offset = self.context.log_end(partition)
            if end_offset is None:
                continue
            position = self.positions.get(topic_partition)
            if (position or 0) < end_offset:
                yield f"{self.name} is at {position} of {partition}: {end_offset}"

    def _go_on(self) -> None:
        """It reads on when the others have stopped: it has to come to the end."""
        for topic_partition in self.context.topic_partitions:
            name = self.context.name_of(topic_partition)
            if self._names.get(topic_partition) != name:
                self._names[topic_partition] = name
                self._move(topic_partition, 0, "began")
        if self.plan.is_restless and not self.context.is_over:
            self._seek_perhaps()
        now_us = self.context.world.now_us
        if now_us - self._refreshed_us > REFRESH_MS * 1_000:
            self._refreshed_us = now_us
            self.refresh()
        self._fetch_all()
        self.start()

    def _fetch_all(self) -> None:
        by_leader: dict[int, list[tuple[TopicPartition, KnownLeader]]] = {}
        for topic_partition in self.context.topic_partitions:
            led = self.known.get(str(topic_partition))
            if (
                led is not None
                and led.leader not in self._busy
                and topic_partition in self.positions
            ):
                by_leader.setdefault(led.leader, []).append((topic_partition, led))
        for leader in sorted(by_leader):
            self._fetch(leader, by_leader[leader])

    def _seek_perhaps(self) -> None:
        if self.positions and self.random.random() < SEEK_CHANCE:
            topic_partition = self.random.choice(list(self.positions))
            self._move(
                topic_partition, self.random.randint(0, self.positions[topic_partition]), "sought"
            )

    def _move(self, topic_partition: TopicPartition, offset: int, because: str) -> None:
        self.positions[topic_partition] = offset
        self.context.record(
            Moved(
                at_us=self.context.world.now_us,
                reader=self.name,
                partition=self._names[topic_partition],
                offset=offset,
                because=because,
            ),
            count=0,
        )

    def _fetch(self, leader: int, wanted: list[tuple[TopicPartition, KnownLeader]]) -> None:
        requested = {
            topic_partition: (self.positions[topic_partition], led)
            for topic_partition, led in wanted
        }
        names = {topic_partition: self._names[topic_partition] for topic_partition in requested}
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[
                FetchTopic(
                    topic=topic_partition.topic,
                    partitions=[
                        FetchPartition(
                            partition=topic_partition.index,
                            current_leader_epoch=led.leader_epoch,
                            fetch_offset=offset,
                            partition_max_bytes=1 << 18,
                        )
                    ],
                )
                for topic_partition, (offset, led) in requested.items()
            ],
        )
        invoked_us = self.context.world.now_us
        self._busy.add(leader)

        def on_answer(answer: Reply) -> None:
            self._busy.discard(leader)
            if not isinstance(answer, FetchResponse):
                self.refresh()
                return
            for topic in answer.responses:
                for result in topic.partitions:
                    topic_partition = TopicPartition(topic.topic, result.partition_index)
                    if names.get(topic_partition) == self._names.get(topic_partition):
                        self._on_partition(
                            topic_partition, *requested[topic_partition], result, invoked_us
                        )

        self.ask(request, FETCH_VERSION, on_answer, broker=leader)

    def _on_partition(
        self,
        topic_partition: TopicPartition,
        offset: int,
        led: KnownLeader,
        result: PartitionData,
        invoked_us: int,
    ) -> None:
        if self.positions[topic_partition] != offset:
            return  # it has sought elsewhere meanwhile
        if result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start_offset = self.context.log_start(self._names[topic_partition])
            self._move(topic_partition, start_offset, "out of range")
            return
        if result.error_code == ErrorCode.CORRUPT_MESSAGE:
            records: tuple[Seen, ...] = ()
            corrupt_offset: int | None = offset
        elif result.error_code != ErrorCode.NONE:
            self.refresh()
            return
        else:
            seen, corrupt_offset = read_answer(result.records, next_offset=offset)
            records = tuple(record for record in seen if record.offset >= offset)
        if not records and corrupt_offset is None:
            return
        self.context.record(
            RecordsRead(
                at_us=self.context.world.now_us,
                invoked_us=invoked_us,
                partition=self._names[topic_partition],
                start_offset=offset,
                records=records,
                high_watermark=result.high_watermark,
                log_start_offset=max(result.log_start_offset, 0),
                corrupt_offset=corrupt_offset,
                reader=self.name,
                known_leader_epoch=led.leader_epoch,
            ),
            count=len(records),
        )
        if records:
            self.positions[topic_partition] = records[-1].offset + 1
        elif corrupt_offset is not None:
            self._move(topic_partition, max(offset, corrupt_offset) + 1, "corrupt")
