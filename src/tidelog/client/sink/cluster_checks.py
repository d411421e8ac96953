"""What a sink asks of its cluster before it writes: is it fit, which partitions, where they end.

Whether it is fit is asked once, when a driver starts. It needs transactions, and brokers that
verify that a partition was added to a transaction before they write to it (Tidelog, and Kafka 3.6
and newer; switched on): without that a late record of an aborted transaction could be committed
with the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.client.sink.conversation import Steps, call, pause_until, require
from tidelog.client.sink.decisions import ErrorDecision
from tidelog.client.sink.errors import ClusterUnfit, SinkRefused
from tidelog.client.sink.replies import CallStatus, SinkReply, require_answer
from tidelog.client.sink.requests import (
    STEP_APIS,
    SinkStep,
    configs_call,
    end_offset_call,
    read_end_offset,
    topics_call,
    versions_call,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsResponse
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnRequest
from tidelog.core.wire.messages.api_32_describe_configs import DescribeConfigsResponse

VERIFICATION = "transaction.partition.verification.enable"
TIMEOUT_MAX = "transaction.max.timeout.ms"
RETENTION = "offsets.retention.minutes"
TIMEOUT_DEFAULT_MS = 600_000
"""A micro-batch may take minutes; Kafka's own default for its maximum is 15 of them."""
UNKNOWN_FOR_MS = 5_000
"""How long a topic that was just created may be unknown to some broker."""
PAUSE_MS = 100
_MINUTE_MS = 60_000
_NEEDS = "the exactly-once sink needs brokers of Tidelog, or Apache Kafka 3.6 or newer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What of the cluster's settings matters to a sink."""

    transaction_timeout_ms: int
    offsets_retention_ms: int


def check_cluster(transaction_timeout_ms: int | None) -> Steps[ClusterFacts]:
    """The settings that matter; ClusterUnfit, in one line, if the cluster cannot carry a sink."""
    versions = yield from require(versions_call())
    assert isinstance(versions, ApiVersionsResponse)
    check_versions(
        {each.api_key: (each.min_version, each.max_version) for each in versions.api_keys}
    )
    metadata = yield from require(topics_call(()))
    assert isinstance(metadata, MetadataResponse)
    keys = (VERIFICATION, TIMEOUT_MAX, RETENTION)
    replies = yield tuple(configs_call(each.node_id, keys) for each in metadata.brokers)
    return judge_configs(replies, transaction_timeout_ms=transaction_timeout_ms)


def check_versions(offered: dict[int, tuple[int, int]]) -> None:
    """Every step of the protocol must have a version that both sides speak."""
    if AddPartitionsToTxnRequest.api_key not in offered:
        raise ClusterUnfit(f"this cluster has no transactions: {_NEEDS}")
    for step in SinkStep:
        wanted = STEP_APIS[step]
        lowest, highest = offered.get(wanted.request.api_key, (0, -1))
        if max(lowest, wanted.version_min) > min(highest, wanted.version_max):
            name = wanted.request.__name__.removesuffix("Request")
            raise ClusterUnfit(
                f"this cluster speaks no version {wanted.version_min} to {wanted.version_max} of"
                f" {name}: {_NEEDS}"
            )


def judge_configs(replies: list[SinkReply], *, transaction_timeout_ms: int | None) -> ClusterFacts:
    """The settings of all brokers that answered; one that is away cannot be asked."""
    answered = [each for each in replies if each.status != CallStatus.OUT_OF_TIME]
    timeouts_max, retentions = [], []
    for each in answered or replies:
        values = _values(each)
        if values.get(VERIFICATION) != "true":
            raise ClusterUnfit(
                f"{VERIFICATION} is not true on every broker, and the exactly-once sink needs it"
            )
        timeouts_max.append(int(values[TIMEOUT_MAX]))
        retentions.append(int(values[RETENTION]))
    timeout_max_ms = min(timeouts_max)
    if transaction_timeout_ms is not None and transaction_timeout_ms > timeout_max_ms:
        raise SinkRefused(
            f"transaction.timeout.ms={transaction_timeout_ms} is above the brokers'"
            f" {TIMEOUT_MAX}={timeout_max_ms}: lower the one or raise the other"
        )
    return ClusterFacts(
        transaction_timeout_ms=transaction_timeout_ms or min(TIMEOUT_DEFAULT_MS, timeout_max_ms),
        offsets_retention_ms=min(retentions) * _MINUTE_MS,
    )


def _values(reply: SinkReply) -> dict[str, str]:
    if reply.status == CallStatus.ANSWERED and reply.decision != ErrorDecision.GO_ON:
        raise ClusterUnfit(f"the brokers' settings cannot be read ({reply.reason}): {_NEEDS}")
    answer = require_answer(reply)
    assert isinstance(answer, DescribeConfigsResponse)
    found = {each.name: each.value or "" for each in answer.results[0].configs}
    missing = [name for name in (VERIFICATION, TIMEOUT_MAX, RETENTION) if name not in found]
    if missing:
        raise ClusterUnfit(f"the brokers have no setting {missing[0]}: {_NEEDS}")
    return found


def end_offsets(topics: Sequence[str]) -> Steps[tuple[dict[TopicPartition, int], int]]:
    """Where every partition ends before anybody writes, and when all of them were known."""
    partitions = yield from partitions_of(topics)
    replies = yield tuple(end_offset_call(each) for each in partitions)
    offsets = [read_end_offset(require_answer(each)) for each in replies]
    return dict(zip(partitions, offsets, strict=True)), max(each.now_ms for each in replies)


def partitions_of(topics: Sequence[str]) -> Steps[list[TopicPartition]]:
    """All partitions of these topics, as they are now; SinkRefused if a topic does not exist."""
    first_ms: int | None = None
    while True:
        reply = yield from call(topics_call(topics))
        if reply.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            answer = require_answer(reply)
            assert isinstance(answer, MetadataResponse)
            return [
                TopicPartition(str(topic.name), each.partition_index)
                for topic in answer.topics
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            ]
        first_ms = reply.now_ms if first_ms is None else first_ms
        if reply.now_ms - first_ms >= UNKNOWN_FOR_MS:
            assert isinstance(reply.answer, MetadataResponse)
            unknown = [str(topic.name) for topic in reply.answer.topics if topic.error_code]
            raise SinkRefused(
                f"topic {', '.join(unknown)} does not exist: the sink creates no topics"
            )
        yield from pause_until(reply.now_ms + PAUSE_MS)
