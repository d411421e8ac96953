"""From what was told to what it means: an answer to go on with, or the error that ends it all."""

from __future__ import annotations

from tidelog.client.sink.asking import Ending, Told
from tidelog.client.sink.decisions import Decision, name_of_code
from tidelog.client.sink.errors import (
    BatchLost,
    Fenced,
    GuardFailed,
    OutOfTime,
    SinkError,
    SinkRefused,
    TransactionTimedOut,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
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


def must(told: Told) -> Message:
    """The answer; a SinkError if it is not one to go on with."""
    if told.ending == Ending.ANSWERED and told.decision == Decision.GO_ON:
        assert told.answer is not None
        return told.answer
    raise trouble(told)


def trouble(told: Told) -> SinkError:
    """The error that stands for what was told."""
    if told.ending != Ending.ANSWERED:
        return OutOfTime(f"could not {told.step.value} in time: {told.reason}")
    what = f"could not {told.step.value}: {told.reason}"
    if told.decision == Decision.STOP:
        advice = _ADVICE.get(told.code)
        return SinkRefused(f"{what} ({advice})" if advice else what)
    if told.decision in (Decision.FENCED, Decision.LOOK) and told.code in _NEWER_OWNER:
        return Fenced(f"{what}; another driver took the sink over, or the batch took too long")
    return BatchLost(what)


def too_old(error: SinkError, *, open_for_ms: int, timeout_ms: int) -> SinkError:
    """The same error, or a better word for it if the transaction was open for too long."""
    if open_for_ms < timeout_ms:
        return error
    return TransactionTimedOut(
        f"{error}; the batch was open for {open_for_ms} ms, and transaction.timeout.ms is"
        f" {timeout_ms}: make batches smaller, or give them more time (the brokers'"
        f" transaction.max.timeout.ms is the limit)"
    )


def produce_trouble(
    partition: TopicPartition, code: int, reason: str, decision: Decision
) -> SinkError:
    """The error that stands for a batch that a leader refused for good."""
    name = name_of_code(code)
    told = f": {reason}" if reason and reason != name else ""
    what = f"{partition} refused a batch: {name}{told}"
    if decision == Decision.FENCED:
        return Fenced(f"{what}; another driver took the sink over, or the batch took too long")
    if decision == Decision.STOP:
        advice = _ADVICE.get(code)
        return SinkRefused(f"{what} ({advice})" if advice else what)
    if code in _SECOND_WRITER:
        return GuardFailed(f"{what}; another attempt has written to it under the same identity")
    return BatchLost(what)
