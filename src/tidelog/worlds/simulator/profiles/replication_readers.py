"""Readers of a replication run: they follow every partition to its end, and seek if restless."""

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
from tidelog.judge.history import Moved, RecordsRead
from tidelog.worlds.simulator.client import Outcome as Answer
from tidelog.worlds.simulator.payloads import read_answer
from tidelog.worlds.simulator.profiles.replication_asking import Knower, Led
from tidelog.worlds.simulator.profiles.replication_plan import ReaderPlan
from tidelog.worlds.simulator.profiles.replication_scene import ReplicationScene

FETCH_VERSION = 12
WAIT_MS = 200
SEEK_CHANCE = 0.02
REFRESH_MS = 600


class Reader(Knower):
    """One fetch under way to each leader, for all partitions that it leads."""

    def __init__(self, scene: ReplicationScene, plan: ReaderPlan) -> None:
        super().__init__(scene, plan.name)
        self.plan = plan
        self.positions: dict[TopicPartition, int] = {}
        self._busy: set[int] = set()
        self._refreshed_us = 0

    def start(self) -> None:
        self.scene.later(self.random, 20, 60, self._go_on)

    def missing(self) -> Iterator[str]:
        """Where it has not come to the end yet."""
        for place in self.scene.places:
            partition = str(place)
            known = self.scene.checker.model.partitions.get(partition)
            if known is None or known.leader is None:
                continue
            end_offset = self.scene.checker.model.log_copy(partition, known.leader).end_offset
            if self.positions.get(place, 0) < end_offset:
                yield f"{self.name} is at {self.positions.get(place)} of {place}: {end_offset}"

    def _go_on(self) -> None:
        """It reads on when the others have stopped: it has to come to the end."""
        for place in self.scene.places:
            if place not in self.positions:
                self._move(place, 0, "began")
        if self.plan.is_restless and not self.scene.is_over:
            self._seek_perhaps()
        now_us = self.scene.world.now_us
        if now_us - self._refreshed_us > REFRESH_MS * 1_000:
            self._refreshed_us = now_us
            self.refresh()
        self._fetch_all()
        self.start()

    def _fetch_all(self) -> None:
        by_leader: dict[int, list[tuple[TopicPartition, Led]]] = {}
        for place in self.scene.places:
            led = self.known.get(str(place))
            if led is not None and led.leader not in self._busy and place in self.positions:
                by_leader.setdefault(led.leader, []).append((place, led))
        for leader in sorted(by_leader):
            self._fetch(leader, by_leader[leader])

    def _seek_perhaps(self) -> None:
        if self.positions and self.random.random() < SEEK_CHANCE:
            place = self.random.choice(list(self.positions))
            self._move(place, self.random.randint(0, self.positions[place]), "sought")

    def _move(self, place: TopicPartition, offset: int, because: str) -> None:
        self.positions[place] = offset
        self.scene.record(
            Moved(
                at_us=self.scene.world.now_us,
                reader=self.name,
                partition=str(place),
                offset=offset,
                because=because,
            ),
            count=0,
        )

    def _fetch(self, leader: int, wanted: list[tuple[TopicPartition, Led]]) -> None:
        asked = {place: (self.positions[place], led) for place, led in wanted}
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[
                FetchTopic(
                    topic=place.topic,
                    partitions=[
                        FetchPartition(
                            partition=place.index,
                            current_leader_epoch=led.leader_epoch,
                            fetch_offset=offset,
                            partition_max_bytes=1 << 18,
                        )
                    ],
                )
                for place, (offset, led) in asked.items()
            ],
        )
        invoked_us = self.scene.world.now_us
        self._busy.add(leader)

        def on_answer(answer: Answer) -> None:
            self._busy.discard(leader)
            if not isinstance(answer, FetchResponse):
                self.refresh()
                return
            for topic in answer.responses:
                for told in topic.partitions:
                    place = TopicPartition(topic.topic, told.partition_index)
                    if place in asked:
                        self._on_partition(place, *asked[place], told, invoked_us)

        self.ask(request, FETCH_VERSION, on_answer, broker=leader)

    def _on_partition(
        self, place: TopicPartition, offset: int, led: Led, told: PartitionData, invoked_us: int
    ) -> None:
        if self.positions[place] != offset:
            return  # it has sought elsewhere meanwhile
        if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._move(place, self.scene.log_start(str(place)), "out of range")
        elif told.error_code != ErrorCode.NONE:
            self.refresh()
        else:
            seen, corrupt_offset = read_answer(told.records, next_offset=offset)
            records = tuple(record for record in seen if record.offset >= offset)
            if not records and corrupt_offset is None:
                return
            self.scene.record(
                RecordsRead(
                    at_us=self.scene.world.now_us,
                    invoked_us=invoked_us,
                    partition=str(place),
                    start_offset=offset,
                    records=records,
                    high_watermark=told.high_watermark,
                    log_start_offset=max(told.log_start_offset, 0),
                    corrupt_offset=corrupt_offset,
                    reader=self.name,
                    known_leader_epoch=led.leader_epoch,
                ),
                count=len(records),
            )
            if records:
                self.positions[place] = records[-1].offset + 1
            elif corrupt_offset is not None:
                self._move(place, max(offset, corrupt_offset) + 1, "corrupt")
