"""Clients of the brokers in a test: a request in a few words, and what matters of its answer."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from tests.unit.core.metadata.given import topic_id
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_response_header, request_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tidelog.core.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tidelog.core.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tidelog.core.wire.record_batch import batches
from tidelog.core.wire.records import NewRecord, build, iterate
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import LATEST_TIMESTAMP

if TYPE_CHECKING:
    from tests.unit.core.node.brokers import Brokers

TOPIC = "orders"
NUMBER = 7
PRODUCE_VERSION = 13
FETCH_VERSION = 18


class SentRequest:
    """One request; `answer` is None as long as it waits."""

    def __init__(self, message: Message, version: int) -> None:
        self.message = message
        self.version = version
        self.answer: Any = None

    @property
    def is_answered(self) -> bool:
        return self.answer is not None

    @property
    def partition(self) -> Any:
        """The answer for the one partition that was asked about."""
        assert self.answer is not None, "still waiting"
        topics = self.answer.responses if hasattr(self.answer, "responses") else self.answer.topics
        (of_topic,) = topics
        partitions = getattr(of_topic, "partition_responses", None)
        (found,) = of_topic.partitions if partitions is None else partitions
        return found

    @property
    def code(self) -> int:
        code: int = self.partition.error_code
        return code

    @property
    def values(self) -> list[str]:
        """The records of a fetch's answer."""
        assert self.answer is not None, "still waiting"
        found = []
        for of_topic in self.answer.responses:
            for partition in of_topic.partitions:
                view = memoryview(partition.records or b"")
                for position, _ in batches(view):
                    found += [(record.value or b"").decode() for record in iterate(view, position)]
        return found


class Client:
    """One connection to one broker."""

    def __init__(self, brokers: Brokers, broker_id: int) -> None:
        self._brokers = brokers
        self.broker_id = broker_id
        self.connection = 0
        self._asked: deque[SentRequest] = deque()

    def ask(self, message: Message, version: int) -> SentRequest:
        asked = SentRequest(message, version)
        self._asked.append(asked)
        header = request_header(message.api_key, version, correlation_id=7, client_id="test")
        self._brokers.frame(self, bytearray(header + encode(message, version)))
        return asked

    def on_answer(self, data: bytes) -> None:
        asked = self._asked.popleft()
        api_key = asked.message.api_key
        _, position = read_response_header(memoryview(data), api_key, asked.version)
        answer_type = MESSAGES[api_key][1]
        asked.answer = decode(answer_type, memoryview(data)[position:], asked.version)

    def produce(
        self,
        *values: str,
        acks: int = -1,
        producer_id: int = -1,
        sequence: int = -1,
        timeout_ms: int = 3_000,
    ) -> SentRequest:
        batch = build(
            [NewRecord(value.encode(), timestamp_ms=1_800_000_000_000) for value in values],
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=sequence,
        )
        data = PartitionProduceData(index=0, records=bytes(batch))
        of_topic = TopicProduceData(topic_id=topic_id(NUMBER), partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[of_topic])
        return self.ask(request, PRODUCE_VERSION)

    def fetch(
        self,
        offset: int,
        *,
        leader_epoch: int = -1,
        last_fetched: int = -1,
        wait_ms: int = 0,
        rack: str = "",
        version: int = FETCH_VERSION,
    ) -> SentRequest:
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_fetched,
            partition_max_bytes=1_000_000,
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            session_epoch=-1,
            topics=[FetchTopic(topic=TOPIC, topic_id=topic_id(NUMBER), partitions=[partition])],
            rack_id=rack,
        )
        return self.ask(request, version)

    def offset(self, timestamp: int = LATEST_TIMESTAMP, *, replica_id: int = -1) -> SentRequest:
        question = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        return self.ask(
            ListOffsetsRequest(
                replica_id=replica_id,
                topics=[ListOffsetsTopic(name=TOPIC, partitions=[question])],
            ),
            10,
        )

    def delete_before(self, offset: int, *, timeout_ms: int = 3_000) -> SentRequest:
        wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
        return self.ask(
            DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=TOPIC, partitions=[wanted])], timeout_ms=timeout_ms
            ),
            2,
        )
