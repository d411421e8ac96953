"""One simulated broker with one client, for stories: requests, restarts and faults as methods.

Every request runs the world until the reply is there. Only what a client knows is used, except
where files are read from the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidelog.client.partition_requests import fetch_answer, list_offsets_answer, produce_answer
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.node.node import Node
from tidelog.core.node.settings import NodeSettings
from tidelog.core.wire.messages.api_01_fetch import PartitionData
from tidelog.core.wire.messages.api_19_create_topics import CreateTopicsResponse
from tidelog.core.wire.messages.api_20_delete_topics import DeleteTopicsResponse
from tidelog.core.wire.messages.api_21_delete_records import DeleteRecordsResponse
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersResponse,
    ProducerState,
)
from tidelog.core.wire.records import NewRecord, build
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import LATEST_TIMESTAMP
from tidelog.judge.history import Seen
from tidelog.worlds.simulator import requests
from tidelog.worlds.simulator.client import CallFailed, Outcome, WireClient
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.node_process import NodeFactory, Ports
from tidelog.worlds.simulator.payloads import read_answer, to_value
from tidelog.worlds.simulator.process import SimProcess
from tidelog.worlds.simulator.requests import TopicName
from tidelog.worlds.simulator.world import SimWorld

BROKER = "broker-1"
CLIENT = "client"
INT32_VALUES = 2**31


class ProduceOutcome(NamedTuple):
    """The answer to a produce request."""

    error: ErrorCode
    base_offset: int


class ReadResult(NamedTuple):
    """What a reader got: records, and where a checksum was wrong."""

    records: tuple[Seen, ...]
    corrupt_offset: int | None

    @property
    def payloads(self) -> list[str]:
        return [record.payload for record in self.records]

    @property
    def offsets(self) -> list[int]:
        return [record.offset for record in self.records]


class SingleBroker:
    """One broker that runs from the beginning."""

    def __init__(self, *, seed: int = 1, fsync: str = "none", **settings: str) -> None:
        self.world = SimWorld(seed=seed)
        self.network = Network(self.world)
        self.broker = SimProcess(
            world=self.world,
            network=self.network,
            name=BROKER,
            make_node=node_factory(broker_settings(fsync, **settings)),
        )
        self.client = WireClient(world=self.world, network=self.network, name=CLIENT, server=BROKER)
        self.broker.start()

    # Requests.

    def ask(self, request: Message, version: int) -> Outcome:
        """Send and wait for the outcome, whatever it is."""
        outcomes: list[Outcome] = []
        self.client.call(request, version, outcomes.append)
        self.world.run_until(lambda: bool(outcomes), within_ms=60_000)
        return outcomes[0]

    def answer(self, request: Message, version: int) -> Message:
        outcome = self.ask(request, version)
        assert not isinstance(outcome, CallFailed), outcome
        return outcome

    def create_topic(self, name: str, *, partitions: int = 1, **configs: str) -> TopicName:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        answer = self.answer(requests.create_topic(name, partitions=partitions, configs=named), 7)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.NONE, answer.topics[0]
        return TopicName(name, answer.topics[0].topic_id)

    def delete_topic(self, topic: TopicName) -> None:
        answer = self.answer(requests.delete_topic(topic), requests.DELETE_BY_ID)
        assert isinstance(answer, DeleteTopicsResponse)
        assert answer.responses[0].error_code == ErrorCode.NONE

    def new_producer(self) -> ProducerIdAndEpoch:
        answer = self.answer(requests.init_producer(), 4)
        assert isinstance(answer, InitProducerIdResponse)
        assert answer.error_code == ErrorCode.NONE
        return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)

    def batch(
        self,
        *payloads: str,
        producer: ProducerIdAndEpoch | None = None,
        sequence: int = -1,
        size_bytes: int = 0,
    ) -> bytes:
        return bytes(
            build(
                [
                    NewRecord(value=to_value(payload, size_bytes), timestamp_ms=self.wall_ms())
                    for payload in payloads
                ],
                producer_id=producer.producer_id if producer else -1,
                producer_epoch=producer.producer_epoch if producer else -1,
                base_sequence=sequence,
            )
        )

    def produce(
        self,
        topic: TopicName,
        *payloads: str,
        index: int = 0,
        acks: int = -1,
        producer: ProducerIdAndEpoch | None = None,
        sequence: int = -1,
        size_bytes: int = 0,
    ) -> ProduceOutcome:
        """Write one batch and return the outcome; the connection must hold."""
        batch = self.batch(*payloads, producer=producer, sequence=sequence, size_bytes=size_bytes)
        answer = self.answer(requests.produce(topic, index, batch, acks=acks), 11)
        result = produce_answer(answer)
        return ProduceOutcome(ErrorCode(result.error_code), result.base_offset)

    def fetch(self, topic: TopicName, *, index: int = 0, offset: int = 0) -> PartitionData:
        return fetch_answer(self.answer(requests.fetch(topic, index, offset), 13))

    def read(self, topic: TopicName, *, index: int = 0, offset: int = 0) -> ReadResult:
        """Everything from an offset to the end, or to the first damage."""
        records: list[Seen] = []
        while True:
            result = self.fetch(topic, index=index, offset=offset)
            if result.error_code == ErrorCode.CORRUPT_MESSAGE:
                return ReadResult(tuple(records), offset)
            assert result.error_code == ErrorCode.NONE, ErrorCode(result.error_code)
            seen, corrupt_offset = read_answer(result.records, next_offset=offset)
            records.extend(record for record in seen if record.offset >= offset)
            if corrupt_offset is not None or not seen:
                return ReadResult(tuple(records), corrupt_offset)
            offset = seen[-1].offset + 1

    def end_offset(self, topic: TopicName, *, index: int = 0) -> int:
        answer = self.answer(requests.list_offset(topic, index, LATEST_TIMESTAMP), 5)
        return list_offsets_answer(answer).offset

    def delete_records(self, topic: TopicName, before_offset: int, *, index: int = 0) -> None:
        answer = self.answer(requests.delete_records(topic, index, before_offset), 2)
        assert isinstance(answer, DeleteRecordsResponse)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    def producers(self, topic: TopicName, *, index: int = 0) -> list[ProducerState]:
        answer = self.answer(requests.describe_producers(topic, [index]), 0)
        assert isinstance(answer, DescribeProducersResponse)
        return answer.topics[0].partitions[0].active_producers

    # Restarts and time.

    def restart(self) -> None:
        """Whatever state it is in: it runs again afterwards, over what its store holds."""
        self.broker.kill()
        self.broker.store.heal()
        self.start()

    def restart_cleanly(self) -> None:
        self.broker.stop()
        self.start()

    def lose_power_and_restart(self) -> None:
        self.broker.lose_power()
        self.start()

    def start(self) -> None:
        """Give it a moment: what it found must be durable before it may be read."""
        self.client.disconnect()
        self.broker.start()
        self.world.run_for(100)

    def run_until(self, condition: Callable[[], bool], *, within_ms: int) -> None:
        self.world.run_until(condition, within_ms=within_ms)

    def wall_ms(self) -> int:
        return self.broker.wall_ms(self.world.now_ms)

    def segments(self, topic: TopicName, *, index: int = 0) -> list[str]:
        """Paths of the segment files, oldest first."""
        directory = f"/{topic.name}-{index}/"
        return [
            path
            for path, _ in self.broker.store.files()
            if directory in f"/{path}" and path.endswith(".log")
        ]

    def events(self, kind: type[object]) -> list[object]:
        """The broker's trace events of one kind."""
        return [entry.event for entry in self.world.trace.entries if isinstance(entry.event, kind)]


def broker_settings(fsync: str, **more: str) -> NodeSettings:
    """One broker that does its chores often, as short runs need it."""
    texts = {
        "node.id": "1",
        "log.dirs": "data",
        "tidelog.fsync": fsync,
        "log.retention.check.interval.ms": "400",
        "log.flush.offset.checkpoint.interval.ms": "700",
        "log.flush.scheduler.interval.ms": "300",
        "log.segment.delete.delay.ms": "200",
        "producer.id.expiration.check.interval.ms": "500",
    }
    return NodeSettings.of({**texts, **{k.replace("_", "."): v for k, v in more.items()}})


def node_factory(settings: NodeSettings) -> NodeFactory:
    def make(ports: Ports) -> Node:
        return Node(
            settings=settings,
            disk=ports.disk,
            outbox=ports.outbox,
            trace=ports.trace,
            random=ports.random,
            wall_ms=ports.wall_ms,
        )

    return make
