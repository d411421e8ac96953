"""What came of a call: an answer to proceed with, or the error that stands for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

from tidelog.client.sink.decisions import ErrorDecision, code_name
from tidelog.client.sink.errors import (
    BatchLost,
    Fenced,
    GuardFailed,
    OutOfTime,
    SinkError,
    SinkRefused,
    TransactionTimedOut,
)
from tidelog.client.sink.requests import SinkStep
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_02_list_offsets import ListOffsetsResponse
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchResponse
from tidelog.core.wire.messages.api_10_find_coordinator import FindCoordinatorResponse
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsResponse
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnResponse
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnResponse
from tidelog.core.wire.messages.api_26_end_txn import EndTxnResponse
from tidelog.core.wire.messages.api_28_txn_offset_commit import TxnOffsetCommitResponse
from tidelog.core.wire.messages.api_32_describe_configs import DescribeConfigsResponse
from tidelog.core.wire.messages.api_61_describe_producers import DescribeProducersResponse
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsResponse
from tidelog.core.wire.schema import Message

_ADVICE: dict[int, str] = {
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (
        "transaction.timeout.ms is above the brokers' transaction.max.timeout.ms"
    ),
    ErrorCode.MESSAGE_TOO_LARGE: (
        "a record batch is larger than the topic's max.message.bytes: make batches smaller"
    ),
    ErrorCode.UNKNOWN_MEMBER_ID: "consumers use the sink's group: it must be the sink's alone",
    ErrorCode.ILLEGAL_GENERATION: "consumers use the sink's group: it must be the sink's alone",
}
_NEWER_OWNER = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
_SECOND_WRITER = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}
)


class CallStatus(Enum):
    """How a call ended."""

    ANSWERED = "answered"
    OUT_OF_TIME = "out of time"
    TOO_LATE = "too late to be sent"


class SinkReply(NamedTuple):
    """What came of a call."""

    step: SinkStep
    status: CallStatus
    decision: ErrorDecision
    code: int
    reason: str
    answer: Message | None
    sent_ms: int
    now_ms: int

    @property
    def is_success(self) -> bool:
        return self.status == CallStatus.ANSWERED and self.decision == ErrorDecision.GO_ON


def require_answer(reply: SinkReply) -> Message:
    """The answer; raises a SinkError if it is not one to proceed with."""
    if reply.is_success:
        assert reply.answer is not None
        return reply.answer
    raise error_for(reply)


def error_for(reply: SinkReply) -> SinkError:
    """The error that stands for a reply."""
    if reply.status != CallStatus.ANSWERED:
        return OutOfTime(f"could not {reply.step.value} in time: {reply.reason}")
    what = f"could not {reply.step.value}: {reply.reason}"
    if reply.decision == ErrorDecision.STOP:
        return _refused(what, reply.code)
    is_fenced = reply.decision in (ErrorDecision.FENCED, ErrorDecision.CHECK_MARKER)
    if is_fenced and reply.code in _NEWER_OWNER:
        return _fenced(what)
    return BatchLost(what)


def produce_error_for(
    partition: TopicPartition, code: int, reason: str, decision: ErrorDecision
) -> SinkError:
    """The error that stands for a batch that a leader refused for good."""
    name = code_name(code)
    detail = f": {reason}" if reason and reason != name else ""
    what = f"{partition} refused a batch: {name}{detail}"
    if decision == ErrorDecision.FENCED:
        return _fenced(what)
    if decision == ErrorDecision.STOP:
        return _refused(what, code)
    if code in _SECOND_WRITER:
        return GuardFailed(f"{what}; another attempt has written to it under the same identity")
    return BatchLost(what)


def _refused(what: str, code: int) -> SinkRefused:
    advice = _ADVICE.get(code)
    return SinkRefused(f"{what} ({advice})" if advice else what)


def _fenced(what: str) -> Fenced:
    return Fenced(f"{what}; another driver took the sink over, or the batch took too long")


def as_timeout(error: SinkError, *, open_for_ms: int, timeout_ms: int) -> SinkError:
    """The same error, or TransactionTimedOut if the transaction was open for too long."""
    if open_for_ms < timeout_ms:
        return error
    return TransactionTimedOut(
        f"{error}; the batch was open for {open_for_ms} ms, and transaction.timeout.ms is"
        f" {timeout_ms}: make batches smaller, or give them more time (the brokers'"
        f" transaction.max.timeout.ms is the limit)"
    )


# Where answers keep their error codes: one line per message.


def codes_in(answer: Message) -> Iterable[int]:
    """Every error code of an answer; none if it has none."""
    return _CODES_OF[type(answer)](answer)


def _alone(answer: Any) -> Iterable[int]:
    return (answer.error_code,)


def _by_partition(answer: Any) -> Iterable[int]:
    return (each.error_code for topic in answer.topics for each in topic.partitions)


def _offsets(answer: Any) -> Iterable[int]:
    for group in answer.groups:
        yield group.error_code
        for topic in group.topics:
            yield from (each.error_code for each in topic.partitions)


def _added(answer: Any) -> Iterable[int]:
    for topic in answer.results_by_topic_v3_and_below:
        yield from (each.partition_error_code for each in topic.results_by_partition)


_CODES_OF: dict[type[Message], Callable[[Any], Iterable[int]]] = {
    ListOffsetsResponse: _by_partition,
    MetadataResponse: lambda answer: (each.error_code for each in answer.topics),
    OffsetFetchResponse: _offsets,
    FindCoordinatorResponse: lambda answer: (each.error_code for each in answer.coordinators),
    ApiVersionsResponse: _alone,
    InitProducerIdResponse: _alone,
    AddPartitionsToTxnResponse: _added,
    AddOffsetsToTxnResponse: _alone,
    EndTxnResponse: _alone,
    TxnOffsetCommitResponse: _by_partition,
    DescribeConfigsResponse: lambda answer: (each.error_code for each in answer.results),
    DescribeProducersResponse: _by_partition,
    DescribeTransactionsResponse: lambda answer: (
        each.error_code for each in answer.transaction_states
    ),
}
