"""What one event decided: the records to append, and whom to answer.

Nothing has happened yet when an outcome is returned. The runtime appends its records as one batch,
applies them, and gives its answers when the high watermark has passed the log's end, also those
that append nothing: a refusal or a read may rest on a record that is not committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NewType

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.wire.control_records import EndTransactionMarker

ReplyTo = NewType("ReplyTo", object)
"""Leads to the waiting caller; the shard only keeps it and hands it back, once."""


@dataclass(slots=True)
class Outcome:
    """An answer may be for a caller of an earlier event: a join waits for the rebalance."""

    records: list[CoordinatorRecord] = field(default_factory=list)
    replies: list[tuple[ReplyTo, object]] = field(default_factory=list)
    if_too_large: Callable[[], Outcome] | None = None
    """What is decided instead when the records do not fit into one batch.

    Without it every caller in `replies` is refused with MESSAGE_TOO_LARGE, which is right for
    operations that keep nothing in memory.
    """
    may_be_split: bool = False
    """Each record stands alone: they need not be in one batch."""
    producer: ProducerIdAndEpoch | None = None
    """Whose transaction the records belong to; they count when it commits."""
    verification: object | None = None
    """Of that transaction, for the log: its coordinator was asked, as the log keeps it in mind."""
    marker: EndTransactionMarker | None = None
    """Instead of records: the end of that producer's transaction in this partition."""
    transaction_version: int = 0
    """Of the transaction that the marker ends."""
    after_commit: list[object] = field(default_factory=list)
    """Work for others that must not begin before the high watermark has passed the records."""
    then: Callable[[int], Outcome] | None = None
    """Decides further, at this time, when the records are applied: it may rest on them."""
