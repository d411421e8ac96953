"""The acks journal: the outcome of each record that was sent, as JSON lines that an audit reads.

The first line names the run, then there is one line for each outcome in the order in which they
came, and at the end a line with the counts. A journal without that last line was cut: what the
topic holds beyond it may be the run's own. A run with transactions names them in its lines, and
has a line for the end of each.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any, TextIO

from tidelog.client.producer.outcome import SendOk, SendOutcome, SendRefused, SendTicket

FORMAT = "tidelog-acks"
VERSION = 1
TRANSACTION_OUTCOMES = ("committed", "aborted", "unknown")


class OutcomeCounts:
    """Counts of outcomes and of errors; one reason is kept for each error."""

    def __init__(self) -> None:
        self.ok = 0
        self.refused = 0
        self.unknown = 0
        self.errors: dict[str, int] = {}
        self.reasons: dict[str, str] = {}

    @property
    def total(self) -> int:
        return self.ok + self.refused + self.unknown

    def add(self, outcome: SendOutcome) -> None:
        if isinstance(outcome, SendOk):
            self.ok += 1
            return
        if isinstance(outcome, SendRefused):
            self.refused += 1
        else:
            self.unknown += 1
        self.errors[outcome.error] = self.errors.get(outcome.error, 0) + 1
        self.reasons.setdefault(outcome.error, outcome.reason)

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "refused": self.refused,
            "unknown": self.unknown,
            "errors": dict(self.errors),
        }


class AcksJournal:
    """Written line by line, each flushed at once."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def begin(
        self,
        *,
        run: str,
        topic: str,
        topic_id: str | None,
        acks: str,
        is_idempotent: bool,
        transactional_id: str | None = None,
    ) -> None:
        """`began_us` is the clock of the entries at `began_ms`, so that each has a date."""
        line: dict[str, Any] = {
            "journal": FORMAT,
            "version": VERSION,
            "run": run,
            "topic": topic,
            "topic_id": topic_id,
            "acks": acks,
            "idempotence": is_idempotent,
            "began_ms": time.time_ns() // 1_000_000,
            "began_us": time.monotonic_ns() // 1_000,
        }
        if transactional_id is not None:
            line["transactional_id"] = transactional_id
        self._write(line)

    def write_outcome(
        self,
        number: int,
        ticket: SendTicket,
        *,
        sent_us: int,
        answered_us: int,
        transaction: str | None = None,
    ) -> None:
        """`transaction` is any name that the run gives only to this one."""
        line = entry(number, ticket, sent_us=sent_us, answered_us=answered_us)
        if transaction is not None:
            line["transaction"] = transaction
        self._write(line)

    def transaction_ended(self, transaction: str, outcome: str, *, answered_us: int) -> None:
        """Committed, aborted or unknown; without this line it is unknown."""
        assert outcome in TRANSACTION_OUTCOMES, outcome
        self._write({"transaction": transaction, "outcome": outcome, "answered_us": answered_us})

    def end(self, counts: OutcomeCounts) -> None:
        self._write({"end": counts.as_json(), "ended_ms": time.time_ns() // 1_000_000})

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()


def entry(number: int, ticket: SendTicket, *, sent_us: int, answered_us: int) -> dict[str, Any]:
    """One record's line. Times are on the monotonic clock that all processes of a machine share."""
    outcome = ticket.outcome
    assert outcome is not None
    partition = ticket.partition
    return {
        "number": number,
        "key": text_of(ticket.key),
        "value_sha256": None if ticket.value is None else hashlib.sha256(ticket.value).hexdigest(),
        "partition": partition.index if partition is not None else ticket.wanted_index,
        "offset": outcome.offset if isinstance(outcome, SendOk) else None,
        "outcome": outcome_name(outcome),
        "error": None if isinstance(outcome, SendOk) else outcome.error,
        "reason": None if isinstance(outcome, SendOk) else outcome.reason,
        "timestamp_ms": ticket.timestamp_ms,
        "sent_us": sent_us,
        "answered_us": answered_us,
    }


def outcome_name(outcome: SendOutcome) -> str:
    if isinstance(outcome, SendOk):
        return "ok"
    return "refused" if isinstance(outcome, SendRefused) else "unknown"


def text_of(data: bytes | None) -> str | dict[str, str] | None:
    """Bytes in JSON: text where they are UTF-8, otherwise base64 that says so."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
