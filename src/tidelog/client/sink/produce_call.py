"""One Produce request of a task: batches for one leader, and what it said about each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidelog.client.client import Client
from tidelog.client.sink.lane import Lane, Leaf
from tidelog.client.sink.steps import SPOKEN, Step
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_00_produce import (
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import ACKS_ALL


class Parcel(NamedTuple):
    """A batch and the lane it belongs to."""

    lane: Lane
    leaf: Leaf


class Said(NamedTuple):
    """What became of one batch: an offset, or a code."""

    code: int
    reason: str = ""
    base_offset: int | None = None
    leader: tuple[int, int] | None = None


Answered = Callable[[list[tuple[Parcel, Said]], list[NodeEndpoint], int], None]


class ProduceCall:
    """Sent once; every parcel hears something, whatever happens."""

    def __init__(
        self, client: Client, node: int, transactional_id: str, parcels: Sequence[Parcel]
    ) -> None:
        self._client = client
        self._node = node
        self._parcels = parcels
        topics: dict[str, TopicProduceData] = {}
        for lane, leaf in parcels:
            name = lane.partition.topic
            topic = topics.setdefault(name, TopicProduceData(name=name))
            topic.partition_data.append(
                PartitionProduceData(index=lane.partition.index, records=memoryview(leaf.data))
            )
        self._request = ProduceRequest(
            transactional_id=transactional_id,
            acks=ACKS_ALL,
            timeout_ms=client.config.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    def send(self, answered: Answered, now_ms: int) -> None:
        spoken = SPOKEN[Step.PRODUCE]
        connections = self._client.connections
        version = connections.version(self._node, ProduceRequest, at_most=spoken.version_max)
        if version is None or version < spoken.version_min:
            answered(self._all(Said(ErrorCode.UNSUPPORTED_VERSION)), [], now_ms)
            return

        def told(answer: Message | NoAnswer, now_ms: int) -> None:
            if isinstance(answer, NoAnswer):
                timed_out = answer.reason == "timed out"
                code = ErrorCode.REQUEST_TIMED_OUT if timed_out else ErrorCode.NETWORK_EXCEPTION
                answered(self._all(Said(code, f"no answer ({answer.reason})")), [], now_ms)
                return
            assert isinstance(answer, ProduceResponse)
            answered(self._read(answer), answer.node_endpoints, now_ms)

        connections.ask(self._node, self._request, version, told, now_ms=now_ms)

    def _all(self, said: Said) -> list[tuple[Parcel, Said]]:
        return [(parcel, said) for parcel in self._parcels]

    def _read(self, answer: ProduceResponse) -> list[tuple[Parcel, Said]]:
        said = {
            TopicPartition(topic.name, each.index): _said(each)
            for topic in answer.responses
            for each in topic.partition_responses
        }
        missing = Said(ErrorCode.UNKNOWN_SERVER_ERROR, "left out of the answer")
        return [(parcel, said.get(parcel.lane.partition, missing)) for parcel in self._parcels]


def _said(told: PartitionProduceResponse) -> Said:
    leader = told.current_leader
    return Said(
        code=told.error_code,
        reason=told.error_message or "",
        base_offset=told.base_offset if told.error_code == ErrorCode.NONE else None,
        leader=None if leader.leader_id < 0 else (leader.leader_id, leader.leader_epoch),
    )
