"""Readers: fetch anywhere in any version, and write down every record that they are given."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.judge.anomalies import UNEXPECTED_ANSWER
from tidelog.judge.history import OffsetRefused, RecordsRead
from tidelog.worlds.simulator.client import Outcome as Answer
from tidelog.worlds.simulator.client import Trouble
from tidelog.worlds.simulator.payloads import read_answer
from tidelog.worlds.simulator.profiles.scene import DELETED, Place, Scene
from tidelog.worlds.simulator.requests import fetch, fetch_answer

VERSIONS_BY_NAME = (4, 6, 9, 11, 12)
VERSIONS_BY_ID = (13, 15, 17, 18)
BYTES_MAX = (1, 300, 2_000, 20_000, 1 << 20)


def damage_reported(place: Place, offset: int, invoked_us: int, now_us: int) -> RecordsRead:
    """A refusal because of damage: the judges ask whether the batch at that very offset has any."""
    return RecordsRead(
        at_us=now_us,
        invoked_us=invoked_us,
        partition=place.key,
        start_offset=offset,
        records=(),
        high_watermark=offset,
        log_start_offset=0,
        corrupt_offset=offset,
    )


class Reader:
    """Reads at the tail, at the head and in between."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = scene.world.random_for(name)
        self.client = scene.client(name)

    def start(self) -> None:
        self.scene.later(self.random, 0, 50, self._go_on)

    def _go_on(self) -> None:
        if self.scene.is_over:
            return
        place = self.scene.any_place(self.random)
        if place is not None and self.client.in_flight < 3:
            self._read(place, self._choose_offset(place))
        self.start()

    def _choose_offset(self, place: Place) -> int:
        random = self.random
        end_offset = place.topic.ends.get(place.index, 0)
        near = max(0, end_offset - random.randint(0, 4))
        return random.choice((0, near, near, end_offset, random.randint(0, end_offset + 1)))

    def _read(self, place: Place, offset: int) -> None:
        random = self.random
        by_name = () if place.topic.by_id_only else VERSIONS_BY_NAME
        invoked_us = self.scene.world.now_us
        self.client.call(
            fetch(
                place.topic.name,
                place.index,
                offset,
                bytes_max=random.choice(BYTES_MAX),
                wait_ms=random.choice((0, 0, 20, 200)),
                bytes_min=random.choice((0, 1, 1, 1_000)),
                isolation_level=random.choice((0, 1)),
            ),
            random.choice(VERSIONS_BY_ID + by_name),
            lambda answer: self._on_answer(place, offset, invoked_us, answer),
        )

    def _on_answer(self, place: Place, offset: int, invoked_us: int, answer: Answer) -> None:
        if isinstance(answer, Trouble):
            return
        told = fetch_answer(answer)
        now_us = self.scene.world.now_us
        if told.error_code == ErrorCode.NONE:
            records, corrupt_offset = read_answer(told.records, next_offset=offset)
            if records:
                ends = place.topic.ends
                ends[place.index] = max(ends.get(place.index, 0), records[-1].offset + 1)
            self.scene.record(
                RecordsRead(
                    at_us=now_us,
                    invoked_us=invoked_us,
                    partition=place.key,
                    start_offset=offset,
                    records=records,
                    high_watermark=told.high_watermark,
                    log_start_offset=told.log_start_offset if told.log_start_offset >= 0 else 0,
                    corrupt_offset=corrupt_offset,
                )
            )
        elif told.error_code == ErrorCode.CORRUPT_MESSAGE:
            self.scene.record(damage_reported(place, offset, invoked_us, now_us))
        elif told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            place.topic.ends.pop(place.index, None)
            self.scene.record(
                OffsetRefused(
                    at_us=now_us, invoked_us=invoked_us, partition=place.key, start_offset=offset
                )
            )
        elif told.error_code != ErrorCode.KAFKA_STORAGE_ERROR and not (
            told.error_code in DELETED and place.topic.is_deleted
        ):
            self.scene.complain(
                UNEXPECTED_ANSWER,
                place.key,
                request=f"fetch by {self.name}",
                answer=f"error {told.error_code}",
            )
