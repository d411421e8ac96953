"""Records of `tidelog produce` in transactions: so many in each, and an account of each end.

A record of a transaction that is not committed is refused, even if a leader has acknowledged it:
no reader of committed records gets it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tidelog.client.producer.outcome import SendOk, SendRefused, SendUnknown
from tidelog.client.producer.transaction_errors import (
    TRANSACTION_ABORTED,
    TransactionAbortable,
    TransactionFatal,
)
from tidelog.client.shells.acks_journal import AcksJournal, OutcomeCounts
from tidelog.client.shells.blocking_clients import Producer, SentRecord, TimedOut

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


class _Sent(NamedTuple):
    """One record of the open transaction."""

    number: int
    sent_us: int
    record: SentRecord


class TransactionalSender:
    """Begins a transaction with the first of its records, and commits it with the last."""

    def __init__(
        self,
        producer: Producer,
        *,
        records_max: int,
        patience_s: float,
        outcomes: OutcomeCounts,
        journal: AcksJournal | None,
    ) -> None:
        """`patience_s`: how long an end may take before it is unknown."""
        self._producer = producer
        self._records_max = records_max
        self._patience_s = patience_s
        self._outcomes = outcomes
        self._journal = journal
        self._open: list[_Sent] | None = None
        self._count = 0
        self.ends = {COMMITTED: 0, ABORTED: 0, UNKNOWN: 0}
        self.journalled = OutcomeCounts()
        """What leaders answered, as the journal has it."""

    def send(self, number: int, send: Callable[[], SentRecord]) -> None:
        """TransactionFatal or TimedOut: no record can be sent any more."""
        sent_us = _now_us()
        try:
            sent = self._send(send)
        except TransactionAbortable as error:
            # An earlier record has failed; this one begins the next transaction.
            self.abort(str(error))
            sent = self._send(send)
        assert self._open is not None
        self._open.append(_Sent(number, sent_us, sent))
        if len(self._open) == self._records_max:
            self.commit()

    def _send(self, send: Callable[[], SentRecord]) -> SentRecord:
        if self._open is None:
            self._producer.begin_transaction()
            self._open = []
        return send()

    def commit(self) -> None:
        """The open transaction, if there is one."""
        if self._open is None:
            return
        try:
            self._wait_for(self._producer.commit_transaction)
        except TransactionAbortable as error:
            self.abort(str(error))
        except TransactionFatal as error:
            self._end(UNKNOWN if error.failure.is_unknown else ABORTED, str(error))
            raise
        except TimedOut as error:
            self._end(UNKNOWN, str(error))
            raise
        else:
            self._end(COMMITTED, "")

    def abort(self, reason: str) -> None:
        """Whatever becomes of the abort, the transaction is not committed."""
        if self._open is None:
            return
        try:
            self._wait_for(self._producer.abort_transaction)
        finally:
            self._end(ABORTED, reason)

    def give_up(self) -> None:
        """Nobody waits any more: a transaction that is being committed may be."""
        if self._open is not None:
            self._end(UNKNOWN, "its commit was not waited for")

    def _wait_for(self, call: Callable[[], None]) -> None:
        deadline_s = time.monotonic() + self._patience_s
        while True:
            try:
                return call()
            except TimedOut:
                if time.monotonic() >= deadline_s:
                    raise

    def _end(self, end: str, reason: str) -> None:
        sent, self._open = self._open or [], None
        self._count += 1
        self.ends[end] += 1
        now_us = _now_us()
        for each in sent:
            self._account(each, end, reason, now_us)
        if self._journal is not None:
            self._journal.transaction_ended(str(self._count), end, answered_us=now_us)

    def _account(self, sent: _Sent, end: str, reason: str, now_us: int) -> None:
        ticket = sent.record.ticket
        assert ticket is not None
        outcome = ticket.outcome or SendUnknown(TRANSACTION_ABORTED, reason)
        if self._journal is not None and ticket.outcome is not None:
            self.journalled.add(ticket.outcome)
            self._journal.write_outcome(
                sent.number,
                ticket,
                sent_us=sent.sent_us,
                answered_us=now_us,
                transaction=str(self._count),
            )
        if end == UNKNOWN and isinstance(outcome, SendOk):
            outcome = SendUnknown(TRANSACTION_ABORTED, reason)
        elif end == ABORTED and not isinstance(outcome, SendRefused):
            outcome = SendRefused(TRANSACTION_ABORTED, reason)
        self._outcomes.add(outcome)

    def summary_text(self) -> str:
        count = self.ends[COMMITTED]
        words = f"{count} transaction{'' if count == 1 else 's'} committed"
        for end in (ABORTED, UNKNOWN):
            if self.ends[end]:
                words += f", {self.ends[end]} {end}"
        return words


def _now_us() -> int:
    return time.monotonic_ns() // 1_000
