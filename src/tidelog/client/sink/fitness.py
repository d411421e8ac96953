"""Whether a cluster can carry the sink at all: asked once, when a driver starts.

It needs transactions, and brokers that verify that a partition was added to a transaction before
they write to it (Kafka 3.6 and newer, switched on): without that a late record of an aborted
transaction could be committed with the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.client.sink.asking import Ending, Told
from tidelog.client.sink.conversation import Steps, asked
from tidelog.client.sink.decisions import Decision
from tidelog.client.sink.errors import ClusterUnfit, SinkRefused
from tidelog.client.sink.requests import ask_configs, ask_topics, ask_versions
from tidelog.client.sink.steps import SPOKEN, Step
from tidelog.client.sink.telling import must
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsResponse
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnRequest
from tidelog.core.wire.messages.api_32_describe_configs import DescribeConfigsResponse

VERIFICATION = "transaction.partition.verification.enable"
TIMEOUT_MAX = "transaction.max.timeout.ms"
RETENTION = "offsets.retention.minutes"
TIMEOUT_DEFAULT_MS = 600_000
"""A micro-batch may take minutes; Kafka's own default for its maximum is 15 of them."""
_MINUTE_MS = 60_000
_NEEDS = "the exactly-once sink needs Apache Kafka 3.6 or newer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What of the cluster's settings matters to a sink."""

    transaction_timeout_ms: int
    offsets_retention_ms: int


def check_cluster(transaction_timeout_ms: int | None) -> Steps[ClusterFacts]:
    """ClusterUnfit, in one line, if it cannot be."""
    versions = must((yield from asked(ask_versions())))
    assert isinstance(versions, ApiVersionsResponse)
    spoken = versions.api_keys
    check_versions({each.api_key: (each.min_version, each.max_version) for each in spoken})
    picture = must((yield from asked(ask_topics(()))))
    assert isinstance(picture, MetadataResponse)
    keys = (VERIFICATION, TIMEOUT_MAX, RETENTION)
    told = yield tuple(ask_configs(each.node_id, keys) for each in picture.brokers)
    return judge_configs(told, transaction_timeout_ms=transaction_timeout_ms)


def check_versions(spoken: dict[int, tuple[int, int]]) -> None:
    """Every step of the protocol must have a version that both sides speak."""
    if AddPartitionsToTxnRequest.api_key not in spoken:
        raise ClusterUnfit(f"this cluster has no transactions: {_NEEDS}")
    for step in Step:
        wanted = SPOKEN[step]
        lowest, highest = spoken.get(wanted.request.api_key, (0, -1))
        if max(lowest, wanted.version_min) > min(highest, wanted.version_max):
            name = wanted.request.__name__.removesuffix("Request")
            raise ClusterUnfit(
                f"this cluster speaks no version {wanted.version_min} to {wanted.version_max} of"
                f" {name}: {_NEEDS}"
            )


def judge_configs(told: list[Told], *, transaction_timeout_ms: int | None) -> ClusterFacts:
    """A broker that is away cannot be asked; the others speak for it."""
    answered = [each for each in told if each.ending != Ending.OUT_OF_TIME]
    timeouts_max, retentions = [], []
    for each in answered or told:
        values = _values(each)
        if values.get(VERIFICATION) != "true":
            raise ClusterUnfit(f"{VERIFICATION} is not true on every broker: {_NEEDS}, and that")
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


def _values(told: Told) -> dict[str, str]:
    if told.ending == Ending.ANSWERED and told.decision != Decision.GO_ON:
        raise ClusterUnfit(f"the brokers' settings cannot be read ({told.reason}): {_NEEDS}")
    answer = must(told)
    assert isinstance(answer, DescribeConfigsResponse)
    found = {each.name: each.value or "" for each in answer.results[0].configs}
    missing = [name for name in (VERIFICATION, TIMEOUT_MAX, RETENTION) if name not in found]
    if missing:
        raise ClusterUnfit(f"the brokers have no setting {missing[0]}: {_NEEDS}")
    return found
