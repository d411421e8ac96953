"""What deciding returns: records to be written, and what to tell whoever asked.

Deciding changes nothing. The answer may be given only when the records are committed; a refusal,
too, waits until everything that it was decided on is committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from tidelog.core.metadata.records import MetadataRecord
from tidelog.core.model.errors import ErrorCode

T = TypeVar("T")

RECORDS_PER_DECISION_MAX = 10_000
"""As in Kafka: what one request may write to the metadata log, all of it or nothing."""


class Refusal(NamedTuple):
    """A foreseen no: the code for programs, the words for people."""

    error: ErrorCode
    message: str | None = None


TOO_LARGE = Refusal(
    ErrorCode.POLICY_VIOLATION,
    f"one request may not change more than {RECORDS_PER_DECISION_MAX} things",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[T]):
    """Records for one atomic batch, and one outcome per thing that was asked for."""

    records: list[MetadataRecord]
    outcomes: list[T]
