"""The administrator: creates and deletes topics, deletes records, lists, requests producer ids."""

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
    TopicRequested,
    TopicsListed,
)
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.profiles.storage_context import DELETED, StorageContext, TrackedTopic
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


class StorageAdmin:
    """Sends one random request after another."""

    def __init__(self, context: StorageContext, *, topics_max: int) -> None:
        self.context = context
        self.name = "admin"
        self.random = context.world.random_for(self.name)
        self.client = context.client(self.name)
        self._topics_max = topics_max
        self._names = 0
        self._actions = (
            (self.create, 2),
            (self._delete, 1),
            (self._delete_records, 3),
            (self.list_all, 3),
            (self._list_offset, 3),
            (self._ask_for_id, 2),
        )

    def start(self) -> None:
        self.context.later(self.random, 20, 400, self._go_on)

    def _go_on(self) -> None:
        if self.context.is_over:
            return
        if self.client.in_flight < 2:
            actions = [action for action, _ in self._actions]
            self.random.choices(actions, [weight for _, weight in self._actions])[0]()
        self.start()

    # Topics.

    def create(self) -> None:
        """A new topic with settings by chance; some take the name of a deleted one."""
        if len(self.context.live_topics()) >= self._topics_max:
            return
        random = self.random
        reborn = random.random() < 0.3
        self._names += 1
        name = "reborn" if reborn else f"topic-{self._names}"
        partitions = random.randint(1, 3)
        configs = topic_settings(random)
        request = create_topic(name, partitions=partitions, configs=configs)
        invoked_us = self.context.world.now_us
        has_retention = "retention.ms" in configs or "retention.bytes" in configs

        def on_answer(answer: Reply) -> None:
            topic_id: bytes | None = None
            outcome = CallOutcome.UNKNOWN
            if isinstance(answer, CreateTopicsResponse):
                result = answer.topics[0]
                outcome = CallOutcome.REFUSED
                if result.error_code == ErrorCode.NONE:
                    outcome, topic_id = CallOutcome.OK, result.topic_id
                    self._track_topic(TopicName(name, topic_id), partitions, reborn, has_retention)
                elif result.error_code == ErrorCode.REQUEST_TIMED_OUT:
                    outcome = CallOutcome.UNKNOWN
                elif result.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    self.context.report_anomaly(
                        UNEXPECTED_ANSWER,
                        name,
                        request=f"create {configs}",
                        answer=result.error_code,
                    )
            self._record_topic_call(name, True, outcome, topic_id, invoked_us)

        self.client.call(request, CREATE_VERSION, on_answer)

    def _track_topic(
        self, name: TopicName, partitions: int, by_id_only: bool, retention: bool
    ) -> None:
        topic = TrackedTopic(name, partitions, by_id_only, retention)
        self.context.topics.append(topic)
        if retention:
            for index in range(partitions):
                self.context.record(
                    HeadDeleted(
                        at_us=self.context.world.now_us,
                        partition=topic.key(index),
                        below_offset=None,
                    )
                )

    def _delete(self) -> None:
        topics = self.context.live_topics()
        if len(topics) < 2:
            return
        topic = self.random.choice(topics)
        topic.is_deleted = True
        invoked_us = self.context.world.now_us

        def on_answer(answer: Reply) -> None:
            outcome = CallOutcome.UNKNOWN
            if isinstance(answer, DeleteTopicsResponse):
                code = answer.responses[0].error_code
                outcome = CallOutcome.OK if code == ErrorCode.NONE else CallOutcome.REFUSED
                if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID):
                    self.context.report_anomaly(
                        UNEXPECTED_ANSWER, topic.name.name, request="delete", answer=code
                    )
            self._record_topic_call(
                topic.name.name, False, outcome, topic.name.topic_id, invoked_us
            )

        self.client.call(delete_topic(topic.name), DELETE_BY_ID, on_answer)

    def _record_topic_call(
        self,
        name: str,
        creation: bool,
        outcome: CallOutcome,
        topic_id: bytes | None,
        invoked_us: int,
    ) -> None:
        self.context.record(
            TopicRequested(
                at_us=self.context.world.now_us,
                invoked_us=invoked_us,
                topic=name,
                is_creation=creation,
                outcome=outcome,
                topic_id=topic_id.hex() if topic_id is not None else None,
            )
        )

    def list_all(self) -> None:
        invoked_us = self.context.world.now_us

        def on_answer(answer: Reply) -> None:
            if isinstance(answer, MetadataResponse):
                self.context.record(
                    TopicsListed(
                        at_us=self.context.world.now_us,
                        invoked_us=invoked_us,
                        topics=tuple((str(t.name), t.topic_id.hex()) for t in answer.topics),
                    )
                )

        self.client.call(list_topics(), METADATA_VERSION, on_answer)

    # Records.

    def _delete_records(self) -> None:
        topic_partition = self.context.any_partition(self.random)
        if topic_partition is None or topic_partition.topic.by_id_only:
            return
        offset = self.random.randint(0, topic_partition.topic.ends.get(topic_partition.index, 0))
        self.context.record(
            HeadDeleted(
                at_us=self.context.world.now_us, partition=topic_partition.key, below_offset=offset
            )
        )

        def on_answer(answer: Reply) -> None:
            if isinstance(answer, DeleteRecordsResponse):
                code = answer.topics[0].partitions[0].error_code
                foreseen = (
                    ErrorCode.NONE,
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    ErrorCode.KAFKA_STORAGE_ERROR,
                )
                if code not in foreseen and not (
                    code in DELETED and topic_partition.topic.is_deleted
                ):
                    self.context.report_anomaly(
                        UNEXPECTED_ANSWER,
                        topic_partition.key,
                        request="delete records",
                        answer=code,
                    )

        self.client.call(
            delete_records(topic_partition.topic.name, topic_partition.index, offset), 2, on_answer
        )

    def _list_offset(self) -> None:
        topic_partition = self.context.any_partition(self.random)
        if topic_partition is None or topic_partition.topic.by_id_only:
            return
        wall_ms = self.context.process.wall_ms(self.context.world.now_ms)
        timestamp_ms = self.random.choice(
            (
                EARLIEST_TIMESTAMP,
                LATEST_TIMESTAMP,
                MAX_TIMESTAMP,
                wall_ms - self.random.randint(0, 2_000),
            )
        )

        def on_answer(answer: Reply) -> None:
            if isinstance(answer, CallFailed):
                return
            code = list_offset_answer(answer).error_code
            foreseen = [
                ErrorCode.NONE,
                ErrorCode.KAFKA_STORAGE_ERROR,
                ErrorCode.OFFSET_NOT_AVAILABLE,
            ]
            by_time = timestamp_ms not in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
            if by_time and topic_partition.key in self.context.damages:
                foreseen.append(ErrorCode.CORRUPT_MESSAGE)  # the record may be in that batch
            if code not in foreseen and not (code in DELETED and topic_partition.topic.is_deleted):
                self.context.report_anomaly(
                    UNEXPECTED_ANSWER, topic_partition.key, request="list offsets", answer=code
                )

        self.client.call(
            list_offset(topic_partition.topic.name, topic_partition.index, timestamp_ms),
            7,
            on_answer,
        )

    def _ask_for_id(self) -> None:
        def on_answer(answer: Reply) -> None:
            if isinstance(answer, InitProducerIdResponse) and answer.error_code == ErrorCode.NONE:
                self.context.record(
                    ProducerIdGiven(
                        at_us=self.context.world.now_us,
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
