"""What becomes of a record: ok, refused, or unknown; and the ticket that says so.

*Refused* is a promise: the record is in no log and never will be. Whatever was on the wire when the
producer stopped waiting is *unknown*, even if a later attempt was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.records import Header

# Errors of this side, beside the names of Kafka's error codes.
TIMED_OUT = "TIMED_OUT"
BUFFER_EXHAUSTED = "BUFFER_EXHAUSTED"
RECORD_TOO_LARGE = "RECORD_TOO_LARGE"
PRODUCER_CLOSED = "PRODUCER_CLOSED"


class SendOk(NamedTuple):
    """The cluster has it; with acks=0 it was sent, and its offset is unknown."""

    offset: int | None
    timestamp_ms: int | None = None


class SendRefused(NamedTuple):
    """It is certainly not in the log."""

    error: str
    reason: str


class SendUnknown(NamedTuple):
    """It may be in the log once, or not at all."""

    error: str
    reason: str


SendOutcome = SendOk | SendRefused | SendUnknown
OnOutcome = Callable[["SendTicket", int], None]


class SendTicket:
    """One record on its way; it gets its outcome once."""

    __slots__ = (
        "_then",
        "blocked_until_ms",
        "headers",
        "key",
        "outcome",
        "partition",
        "timestamp_ms",
        "topic",
        "value",
        "wanted_index",
    )

    def __init__(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None,
        wanted_index: int | None,
        headers: Sequence[Header],
        timestamp_ms: int,
        then: OnOutcome | None,
    ) -> None:
        self.topic = topic
        self.value = value
        self.key = key
        self.headers = headers
        self.timestamp_ms = timestamp_ms
        self.wanted_index = wanted_index
        self.partition: TopicPartition | None = None
        """Known as soon as it is in a batch."""
        self.outcome: SendOutcome | None = None
        self.blocked_until_ms: int | None = None
        self._then = then

    @property
    def is_blocked(self) -> bool:
        """Java's `send` would not have returned yet."""
        return self.blocked_until_ms is not None

    @property
    def is_done(self) -> bool:
        return self.outcome is not None

    def complete(self, outcome: SendOutcome, now_ms: int) -> None:
        assert self.outcome is None, "a record has one outcome"
        self.outcome = outcome
        self.blocked_until_ms = None
        if self._then is not None:
            self._then(self, now_ms)
