"""One real broker on a memory disk, asked through wire bytes, for the APIs of coordinators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tests.golden.in_process import InProcessConnection, InProcessTidelog
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.node.node import Node
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_response_header, request_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.core.wire.messages.api_20_delete_topics import DeleteTopicsRequest
from tidelog.core.wire.schema import Message

M = TypeVar("M", bound=Message)
FAST = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}


class LoneBroker:
    """A cluster of one, and words for what its clients ask."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.broker = InProcessTidelog({**FAST, **(settings or {})})
        self.connection = self.broker.connect()

    @property
    def node(self) -> Node:
        return self.broker.node

    def ask(self, message: Message, version: int) -> Any:
        """Send it, and wait for the answer in the node's own time."""
        self.send(message, version)
        return self.receive(message, version)

    def send(self, message: Message, version: int) -> None:
        header = request_header(message.api_key, version, correlation_id=7, client_id="test")
        frame = header + encode(message, version)
        self.connection.send(len(frame).to_bytes(4, "big") + frame)

    def receive(self, message: Message, version: int) -> Any:
        data = self.connection.receive()
        assert data is not None, "the connection was closed"
        self.node.check()
        view = memoryview(data)
        _, position = read_response_header(view, message.api_key, version)
        return decode(MESSAGES[message.api_key][1], view[position:], version)

    @property
    def is_answered(self) -> bool:
        assert isinstance(self.connection, InProcessConnection)
        return bool(self.connection.answers)

    def create_topic(self, name: str, partitions: int = 2) -> bytes:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 7)
        return self.node.image.topics[name].topic_id

    def delete_topic(self, name: str) -> None:
        self.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=1_000), 5)

    def find_coordinator(self, group_id: str = "g") -> FindCoordinatorResponse:
        response: FindCoordinatorResponse = self.ask(FindCoordinatorRequest(key=group_id), 3)
        return response

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        *,
        group_id: str = "g",
        version: int = 9,
        metadata: str | None = "",
        leader_epoch: int = -1,
        retention_ms: int = -1,
    ) -> OffsetCommitResponse:
        """Without being a member."""
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=self.topic_id(topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_metadata=metadata,
                        committed_leader_epoch=leader_epoch,
                    )
                ],
            )
            for (topic, index), offset in offsets.items()
        ]
        call = OffsetCommitRequest(group_id=group_id, topics=topics, retention_time_ms=retention_ms)
        response: OffsetCommitResponse = self.ask(call, version)
        return response

    def topic_id(self, name: str) -> bytes:
        topic = self.node.image.topics.get(name)
        return b"\7" * 16 if topic is None else topic.topic_id

    def commit_codes(self, response: OffsetCommitResponse) -> list[int]:
        return [each.error_code for topic in response.topics for each in topic.partitions]

    def offset_records(self) -> int:
        """How many records the coordinators have written."""
        partitions = self.node.partitions.of_topic(OFFSETS_TOPIC)
        return sum(each.log.log_end_offset for each in partitions)


def names(topics: Sequence[Any]) -> list[str]:
    return [topic.name for topic in topics]
