"""What is asked of a transaction coordinator, and what it answers, without versions of the wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.transactions.transaction_metadata import Partition

PartitionErrors = dict[Partition, ErrorCode]


def _as_it_is(answer: object) -> object:
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerCall:
    """A producer with a transactional id begins."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None
    """Who it believes to be; None: whoever had the id before is fenced."""
    fresh_producer_id: int | None = None
    """An id that nobody has, for a caller that was answered NEEDS_PRODUCER_ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsCall:
    """Let these partitions belong to the producer's transaction; the first one begins it."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: frozenset[Partition]
    client_version: int
    answer: Callable[[ErrorCode], object] = _as_it_is
    """How the caller wants to hear it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPartitionsCall:
    """A partition's leader asks whether it belongs to an open transaction."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: frozenset[Partition]
    answer: Callable[[PartitionErrors], object] = _as_it_is


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionCall:
    """Commit or abort."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    is_commit: bool
    client_version: int
    fresh_producer_id: int | None = None


class ProducerAnswer(NamedTuple):
    """To InitProducerId and EndTxn: the identity with which the producer goes on, or the error."""

    error: ErrorCode
    producer: ProducerIdAndEpoch | None = None
    needs_producer_id: bool = False
    """Nothing was decided: ask again with a fresh producer id."""


NEEDS_PRODUCER_ID = ProducerAnswer(ErrorCode.NONE, None, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkersDue:
    """A transaction is decided, durably: its partitions must be told."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    is_commit: bool
    partitions: frozenset[Partition]
    transaction_version: int
