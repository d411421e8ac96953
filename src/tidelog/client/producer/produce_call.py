"""One Produce request: batches for one node, and the result of each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidelog.client.client import Client
from tidelog.client.producer.batch import ProducerBatch
from tidelog.client.producer.config import ProducerConfig
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, TopicPartition
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

TOPIC_IDS_FROM = 13
UNANSWERED_ACKS = 0


class PartitionProduceResult(NamedTuple):
    """What became of one batch, as far as this request knows."""

    error: ErrorCode
    reason: str = ""
    base_offset: int | None = None
    append_time_ms: int | None = None
    log_start_offset: int | None = None
    leader: tuple[int, int] | None = None
    reasons: dict[int, str] | None = None


OnProduced = Callable[["BatchProduceCall", dict[TopicPartition, PartitionProduceResult], int], None]


def produce_call(
    client: Client,
    node: int,
    config: ProducerConfig,
    batches: Sequence[ProducerBatch],
    *,
    versions: range = ProduceRequest.versions,
) -> BatchProduceCall:
    """Topics are named by id where that is possible. `versions` are those of its transaction."""
    names = dict.fromkeys(batch.partition.topic for batch in batches)
    ids = {name: client.metadata.topic_id(name) for name in names}
    newest = versions[-1] if all(ids.values()) else min(versions[-1], TOPIC_IDS_FROM - 1)
    version = client.connections.version(node, ProduceRequest, at_most=newest)
    if version is not None and version < versions[0]:
        version = None
    topics = {
        name: TopicProduceData(name=name, topic_id=ids[name] or ZERO_TOPIC_ID) for name in names
    }
    for batch in batches:
        topics[batch.partition.topic].partition_data.append(
            PartitionProduceData(
                index=batch.partition.index, records=batch.encoded(config.compression)
            )
        )
    request = ProduceRequest(
        transactional_id=config.transactional_id,
        acks=config.acks,
        timeout_ms=config.client.request_timeout_ms,
        topic_data=list(topics.values()),
    )
    names_by_id = {id_: name for name, id_ in ids.items() if id_ is not None}
    return BatchProduceCall(client, node, request, version, batches, names_by_id)


class BatchProduceCall:
    """Sent once; every batch in it gets a result, whatever happens."""

    def __init__(
        self,
        client: Client,
        node: int,
        request: ProduceRequest,
        version: int | None,
        batches: Sequence[ProducerBatch],
        names_by_id: dict[bytes, str],
    ) -> None:
        self.batches = batches
        self.endpoints: list[NodeEndpoint] = []
        """Addresses of the leaders that the answer names."""
        self._client = client
        self._node = node
        self._request = request
        self._version = version
        self._names_by_id = names_by_id

    def send(self, answered: OnProduced, now_ms: int) -> None:
        if self._version is None:
            reason = f"broker {self._node} speaks no version of Produce that we do"
            answered(
                self,
                self._all(PartitionProduceResult(ErrorCode.UNSUPPORTED_VERSION, reason)),
                now_ms,
            )
        elif self._request.acks == UNANSWERED_ACKS:
            self._client.connections.send_unanswered(self._node, self._request, self._version)
            answered(self, self._all(PartitionProduceResult(ErrorCode.NONE)), now_ms)
        else:
            self._client.connections.send(
                self._node,
                self._request,
                self._version,
                lambda answer, now_ms: answered(self, self._read(answer), now_ms),
                now_ms=now_ms,
            )

    def _all(self, result: PartitionProduceResult) -> dict[TopicPartition, PartitionProduceResult]:
        return {batch.partition: result for batch in self.batches}

    def _read(self, answer: Message | NoAnswer) -> dict[TopicPartition, PartitionProduceResult]:
        if isinstance(answer, NoAnswer):
            timed_out = answer.reason == "timed out"
            error = ErrorCode.REQUEST_TIMED_OUT if timed_out else ErrorCode.NETWORK_EXCEPTION
            return self._all(
                PartitionProduceResult(
                    error, f"no answer from broker {self._node}: {answer.reason}"
                )
            )
        assert isinstance(answer, ProduceResponse)
        results = self._all(
            PartitionProduceResult(ErrorCode.UNKNOWN_SERVER_ERROR, "left out of the answer")
        )
        self.endpoints = answer.node_endpoints
        for topic in answer.responses:
            name = self._names_by_id.get(bytes(topic.topic_id), topic.name)
            for each in topic.partition_responses:
                partition = TopicPartition(name, each.index)
                if partition in results:
                    results[partition] = _result(each)
        return results


def _result(partition: PartitionProduceResponse) -> PartitionProduceResult:
    error = ErrorCode.from_wire(partition.error_code)
    leader = partition.current_leader
    reasons = {
        each.batch_index: each.batch_index_error_message or partition.error_message or error.name
        for each in partition.record_errors
    }
    return PartitionProduceResult(
        error=error,
        reason=partition.error_message or error.name,
        base_offset=None if partition.base_offset < 0 else partition.base_offset,
        append_time_ms=None if partition.log_append_time_ms < 0 else partition.log_append_time_ms,
        log_start_offset=None if partition.log_start_offset < 0 else partition.log_start_offset,
        leader=None if leader.leader_id < 0 else (leader.leader_id, leader.leader_epoch),
        reasons=reasons,
    )
