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
from tidelog.worlds.simulator.client import Outcome as Answer
from tidelog.worlds.simulator.payloads import read_answer
from tidelog.worlds.simulator.profiles.readers import damage_reported
from tidelog.worlds.simulator.profiles.scene import DELETED, Place, Scene

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


class Follower:
    """Reads every partition from its start to its end, telling the broker only what changed."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = scene.world.random_for(name)
        self.client = scene.client(name)
        self._version = self.random.choice(VERSIONS)
        self._session = NEW_SESSION
        self._positions: dict[Place, int] = {}
        self._told: dict[Place, int] = {}
        """The positions that the session knows."""

    def start(self) -> None:
        self.scene.later(self.random, 1, 60, self._go_on)

    def _go_on(self) -> None:
        if self.scene.is_over:
            return
        if self.client.in_flight == 0:
            self._ask()
        self.start()

    def _ask(self) -> None:
        self._choose_places()
        session_id, session_epoch = self._session
        if self._session == NEW_SESSION:
            self._told = {}
        changed = [
            place
            for place, offset in self._positions.items()
            if self._told.get(place) != offset or self.random.random() < 0.05
        ]
        forgotten = [place for place in self._told if place not in self._positions]
        request = FetchRequest(
            max_wait_ms=self.random.choice((0, 30, 300)),
            min_bytes=1,
            max_bytes=self.random.choice((1, 5_000, 1 << 20)),
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[self._wanted(place) for place in changed],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=place.topic.name.topic_id, partitions=[place.index])
                for place in forgotten
            ],
        )
        for place in changed:
            self._told[place] = self._positions[place]
        for place in forgotten:
            del self._told[place]
        invoked_us = self.scene.world.now_us
        self.client.call(request, self._version, lambda answer: self._on_answer(invoked_us, answer))

    def _wanted(self, place: Place) -> FetchTopic:
        partition = FetchPartition(
            partition=place.index,
            fetch_offset=self._positions[place],
            partition_max_bytes=self.random.choice((1, 1_000, 1 << 20)),
        )
        return FetchTopic(topic_id=place.topic.name.topic_id, partitions=[partition])

    def _choose_places(self) -> None:
        for place in [place for place in self._positions if place.topic.is_deleted]:
            del self._positions[place]
        for topic in self.scene.live_topics():
            for index in range(topic.partitions):
                self._positions.setdefault(Place(topic, index), 0)

    def _on_answer(self, invoked_us: int, answer: Answer) -> None:
        if not isinstance(answer, FetchResponse):
            self._session = NEW_SESSION
            return
        if answer.error_code != ErrorCode.NONE:
            self._session = NEW_SESSION
            if answer.error_code not in SESSION_LOST:
                self.scene.complain(
                    UNEXPECTED_ANSWER,
                    "-",
                    request=f"session of {self.name}",
                    answer=answer.error_code,
                )
            return
        session_id, session_epoch = self._session
        self._session = (answer.session_id, session_epoch + 1) if answer.session_id else NEW_SESSION
        if answer.session_id not in (0, session_id) and session_id != 0:
            self.scene.complain(
                UNEXPECTED_ANSWER,
                "-",
                request=f"session of {self.name}",
                answer="another session answered",
            )
        places = {(place.topic.name.topic_id, place.index): place for place in self._positions}
        for topic in answer.responses:
            for told in topic.partitions:
                place = places.get((topic.topic_id, told.partition_index))
                if place is not None:
                    self._on_partition(place, told, invoked_us)

    def _on_partition(self, place: Place, told: PartitionData, invoked_us: int) -> None:
        now_us = self.scene.world.now_us
        offset = self._positions[place]
        if told.error_code == ErrorCode.NONE:
            records, corrupt_offset = read_answer(told.records, next_offset=offset)
            if not records and corrupt_offset is None:
                return  # its share of the answer's bytes was given to other partitions
            self.scene.record(
                RecordsRead(
                    at_us=now_us,
                    invoked_us=invoked_us,
                    partition=place.key,
                    start_offset=offset,
                    records=records,
                    high_watermark=told.high_watermark,
                    log_start_offset=told.log_start_offset,
                    corrupt_offset=corrupt_offset,
                )
            )
            if records:
                self._positions[place] = max(offset, records[-1].offset + 1)
            if corrupt_offset is not None:
                self._positions[place] = corrupt_offset + self.random.randint(1, 6)
        elif told.error_code == ErrorCode.CORRUPT_MESSAGE:
            self.scene.record(damage_reported(place, offset, invoked_us, now_us))
            self._positions[place] = offset + self.random.randint(1, 6)
        elif told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[place] = self.random.randint(0, offset + 4)
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
                request=f"session of {self.name}",
                answer=told.error_code,
            )
