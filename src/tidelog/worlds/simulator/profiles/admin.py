"""The administrator: makes topics and removes them, deletes records, lists, asks for ids."""

from __future__ import annotations

from random import Random

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse
from tidelog.core.wire.messages.api_19_create_topics import CreateTopicsResponse
from tidelog.core.wire.messages.api_20_delete_topics import DeleteTopicsResponse
from tidelog.core.wire.messages.api_21_delete_records import DeleteRecordsResponse
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP
from tidelog.judge.anomalies import UNEXPECTED_ANSWER
from tidelog.judge.history import (
    CallOutcome,
    HeadDeleted,
    ProducerIdGiven,
    TopicAsked,
    TopicsListed,
)
from tidelog.worlds.simulator.client import Outcome as Answer
from tidelog.worlds.simulator.client import Trouble
from tidelog.worlds.simulator.profiles.scene import DELETED, Scene, TopicLife
from tidelog.worlds.simulator.requests import (
    DELETE_BY_ID,
    TopicName,
    create_topic,
    delete_records,
    delete_topic,
    init_producer,
    list_offset,
    list_offset_answer,
    list_topics,
)

CREATE_VERSION = 7
METADATA_VERSION = 12


class Admin:
    """Does one thing after another."""

    def __init__(self, scene: Scene, *, topics_max: int) -> None:
        self.scene = scene
        self.name = "admin"
        self.random = scene.world.random_for(self.name)
        self.client = scene.client(self.name)
        self._topics_max = topics_max
        self._names = 0
        self._deeds = (
            (self.create, 2),
            (self._delete, 1),
            (self._delete_records, 3),
            (self.list_all, 3),
            (self._list_offset, 3),
            (self._ask_for_id, 2),
        )

    def start(self) -> None:
        self.scene.later(self.random, 20, 400, self._go_on)

    def _go_on(self) -> None:
        if self.scene.is_over:
            return
        if self.client.in_flight < 2:
            deeds = [deed for deed, _ in self._deeds]
            self.random.choices(deeds, [weight for _, weight in self._deeds])[0]()
        self.start()

    # Topics.

    def create(self) -> None:
        """A new topic with settings by chance; some take the name of a deleted one."""
        if len(self.scene.live_topics()) >= self._topics_max:
            return
        random = self.random
        reborn = random.random() < 0.3
        self._names += 1
        name = "reborn" if reborn else f"topic-{self._names}"
        partitions = random.randint(1, 3)
        configs = topic_settings(random)
        request = create_topic(name, partitions=partitions, configs=configs)
        invoked_us = self.scene.world.now_us
        has_retention = "retention.ms" in configs or "retention.bytes" in configs

        def on_answer(answer: Answer) -> None:
            topic_id: bytes | None = None
            outcome = CallOutcome.UNKNOWN
            if isinstance(answer, CreateTopicsResponse):
                result = answer.topics[0]
                outcome = CallOutcome.REFUSED
                if result.error_code == ErrorCode.NONE:
                    outcome, topic_id = CallOutcome.OK, result.topic_id
                    self._begin_life(TopicName(name, topic_id), partitions, reborn, has_retention)
                elif result.error_code == ErrorCode.REQUEST_TIMED_OUT:
                    outcome = CallOutcome.UNKNOWN
                elif result.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    self.scene.complain(
                        UNEXPECTED_ANSWER,
                        name,
                        request=f"create {configs}",
                        answer=result.error_code,
                    )
            self._asked(name, True, outcome, topic_id, invoked_us)

        self.client.call(request, CREATE_VERSION, on_answer)

    def _begin_life(
        self, name: TopicName, partitions: int, by_id_only: bool, retention: bool
    ) -> None:
        life = TopicLife(name, partitions, by_id_only, retention)
        self.scene.topics.append(life)
        if retention:
            for index in range(partitions):
                self.scene.record(
                    HeadDeleted(
                        at_us=self.scene.world.now_us,
                        partition=life.key(index),
                        below_offset=None,
                    )
                )

    def _delete(self) -> None:
        topics = self.scene.live_topics()
        if len(topics) < 2:
            return
        life = self.random.choice(topics)
        life.is_deleted = True
        invoked_us = self.scene.world.now_us

        def on_answer(answer: Answer) -> None:
            outcome = CallOutcome.UNKNOWN
            if isinstance(answer, DeleteTopicsResponse):
                code = answer.responses[0].error_code
                outcome = CallOutcome.OK if code == ErrorCode.NONE else CallOutcome.REFUSED
                if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID):
                    self.scene.complain(
                        UNEXPECTED_ANSWER, life.name.name, request="delete", answer=code
                    )
            self._asked(life.name.name, False, outcome, life.name.topic_id, invoked_us)

        self.client.call(delete_topic(life.name), DELETE_BY_ID, on_answer)

    def _asked(
        self,
        name: str,
        creation: bool,
        outcome: CallOutcome,
        topic_id: bytes | None,
        invoked_us: int,
    ) -> None:
        self.scene.record(
            TopicAsked(
                at_us=self.scene.world.now_us,
                invoked_us=invoked_us,
                topic=name,
                is_creation=creation,
                outcome=outcome,
                topic_id=topic_id.hex() if topic_id is not None else None,
            )
        )

    def list_all(self) -> None:
        invoked_us = self.scene.world.now_us

        def on_answer(answer: Answer) -> None:
            if isinstance(answer, MetadataResponse):
                self.scene.record(
                    TopicsListed(
                        at_us=self.scene.world.now_us,
                        invoked_us=invoked_us,
                        topics=tuple((str(t.name), t.topic_id.hex()) for t in answer.topics),
                    )
                )

        self.client.call(list_topics(), METADATA_VERSION, on_answer)

    # Records.

    def _delete_records(self) -> None:
        place = self.scene.any_place(self.random)
        if place is None or place.topic.by_id_only:
            return
        offset = self.random.randint(0, place.topic.ends.get(place.index, 0))
        self.scene.record(
            HeadDeleted(at_us=self.scene.world.now_us, partition=place.key, below_offset=offset)
        )

        def on_answer(answer: Answer) -> None:
            if isinstance(answer, DeleteRecordsResponse):
                code = answer.topics[0].partitions[0].error_code
                foreseen = (
                    ErrorCode.NONE,
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    ErrorCode.KAFKA_STORAGE_ERROR,
                )
                if code not in foreseen and not (code in DELETED and place.topic.is_deleted):
                    self.scene.complain(
                        UNEXPECTED_ANSWER, place.key, request="delete records", answer=code
                    )

        self.client.call(delete_records(place.topic.name, place.index, offset), 2, on_answer)

    def _list_offset(self) -> None:
        place = self.scene.any_place(self.random)
        if place is None or place.topic.by_id_only:
            return
        wall_ms = self.scene.process.wall_ms(self.scene.world.now_ms)
        timestamp_ms = self.random.choice(
            (
                EARLIEST_TIMESTAMP,
                LATEST_TIMESTAMP,
                MAX_TIMESTAMP,
                wall_ms - self.random.randint(0, 2_000),
            )
        )

        def on_answer(answer: Answer) -> None:
            if isinstance(answer, Trouble):
                return
            code = list_offset_answer(answer).error_code
            foreseen = (
                ErrorCode.NONE,
                ErrorCode.KAFKA_STORAGE_ERROR,
                ErrorCode.OFFSET_NOT_AVAILABLE,
            )
            if code not in foreseen and not (code in DELETED and place.topic.is_deleted):
                self.scene.complain(
                    UNEXPECTED_ANSWER, place.key, request="list offsets", answer=code
                )

        self.client.call(list_offset(place.topic.name, place.index, timestamp_ms), 7, on_answer)

    def _ask_for_id(self) -> None:
        def on_answer(answer: Answer) -> None:
            if isinstance(answer, InitProducerIdResponse) and answer.error_code == ErrorCode.NONE:
                self.scene.record(
                    ProducerIdGiven(
                        at_us=self.scene.world.now_us,
                        producer_id=answer.producer_id,
                        producer_epoch=answer.producer_epoch,
                    )
                )

        self.client.call(init_producer(), 4, on_answer)


def topic_settings(random: Random) -> dict[str, str]:
    """Small segments and odd settings, so that a short run meets every branch."""
    settings = {
        "internal.segment.bytes": str(random.choice((1_600, 3_000, 8_000, 30_000))),
        "index.interval.bytes": str(random.choice((0, 200, 1_000, 4_096))),
        "file.delete.delay.ms": str(random.choice((0, 100, 1_000))),
    }
    if random.random() < 0.3:
        settings["segment.ms"] = str(random.choice((200, 1_000)))
    if random.random() < 0.2:
        settings["segment.index.bytes"] = str(random.choice((24, 60, 240)))
    if random.random() < 0.15:
        settings["retention.ms"] = str(random.choice((500, 3_000)))
    if random.random() < 0.15:
        settings["retention.bytes"] = str(random.choice((1_000, 8_000)))
    if random.random() < 0.2:
        settings["message.timestamp.type"] = "LogAppendTime"
    if random.random() < 0.2:
        settings["compression.type"] = random.choice(("gzip", "lz4", "zstd", "snappy"))
    if random.random() < 0.2:
        settings["flush.messages"] = str(random.choice((1, 5)))
    return settings
