"""So many records in each transaction, and the right word for each of them at its end."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import pytest

from tidelog.cli.produce.transactions import TransactionalSender
from tidelog.client.producer.outcome import SendOk, SendTicket
from tidelog.client.producer.transaction_errors import TransactionError, exception_for
from tidelog.client.producer.transaction_outcome import FailureKind, TransactionFailed
from tidelog.client.shells.acks_journal import AcksJournal, OutcomeCounts
from tidelog.client.shells.blocking_clients import Producer, SentRecord, TimedOut

ABORTABLE = exception_for(TransactionFailed("TIMED_OUT", "late", FailureKind.ABORTABLE))
FENCED = exception_for(TransactionFailed("PRODUCER_FENCED", "newer", FailureKind.FATAL))
LOST = exception_for(TransactionFailed("PRODUCER_FENCED", "newer", FailureKind.FATAL, True))


class ScriptedProducer:
    """Acknowledges every record; ends of transactions are what the script says."""

    def __init__(self, *script: Exception | None) -> None:
        self._script = list(script)
        self.calls: list[str] = []

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def commit_transaction(self) -> None:
        self.calls.append("commit")
        error = self._script.pop(0) if self._script else None
        if error is not None:
            raise error

    def abort_transaction(self) -> None:
        self.calls.append("abort")

    def send(self) -> SentRecord:
        self.calls.append("send")
        sent = SentRecord(cast(Producer, self))
        sent.ticket = SendTicket(
            "orders", b"v", key=None, wanted_index=0, headers=(), timestamp_ms=1, then=None
        )
        sent.ticket.complete(SendOk(len(self.calls)), 0)
        return sent


class Case:
    """One run over a scripted producer."""

    def __init__(self, *script: Exception | None, patience_s: float = 0.0) -> None:
        self.producer = ScriptedProducer(*script)
        self.outcomes = OutcomeCounts()
        self.file = io.StringIO()
        self.sender = TransactionalSender(
            cast(Producer, self.producer),
            records_max=2,
            patience_s=patience_s,
            outcomes=self.outcomes,
            journal=AcksJournal(self.file),
        )

    def send(self, count: int) -> None:
        for number in range(count):
            self.sender.send(number, self.producer.send)

    def counts(self) -> tuple[int, int, int]:
        return self.outcomes.ok, self.outcomes.refused, self.outcomes.unknown

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.getvalue().splitlines()]


def test_every_n_records_are_one_transaction_and_the_last_is_short() -> None:
    case = Case()
    case.send(3)
    case.sender.commit()
    case.sender.commit()

    whole = ["begin", "send", "send", "commit"]
    assert case.producer.calls == [*whole, "begin", "send", "commit"]
    assert case.sender.ends == {"committed": 2, "aborted": 0, "unknown": 0}
    assert case.sender.summary_text() == "2 transactions committed"
    assert case.counts() == (3, 0, 0)


def test_a_transaction_that_cannot_be_committed_is_aborted_and_the_next_one_begins() -> None:
    case = Case(ABORTABLE, None)
    case.send(4)

    assert case.producer.calls[3:6] == ["commit", "abort", "begin"]
    assert case.sender.summary_text() == "1 transaction committed, 1 aborted"
    assert case.counts() == (2, 2, 0) and case.outcomes.errors == {"TRANSACTION_ABORTED": 2}


@pytest.mark.parametrize(
    ("error", "counts"), [(FENCED, (0, 2, 0)), (LOST, (0, 0, 2)), (TimedOut("late"), (0, 0, 2))]
)
def test_a_commit_that_is_not_answered_is_unknown_and_a_fenced_one_is_refused(
    error: Exception, counts: tuple[int, int, int]
) -> None:
    case = Case(error)
    with pytest.raises((TransactionError, TimedOut)):
        case.send(2)
    assert case.counts() == counts
    assert case.producer.calls.count("commit") == 1


def test_a_commit_that_takes_long_is_waited_for_again() -> None:
    case = Case(TimedOut("late"), None, patience_s=60.0)
    case.send(2)
    assert case.producer.calls == ["begin", "send", "send", "commit", "commit"]
    assert case.counts() == (2, 0, 0)


def test_an_interrupted_transaction_is_aborted() -> None:
    case = Case()
    case.send(3)
    case.sender.abort("interrupted")
    assert case.counts() == (2, 1, 0)
    assert case.outcomes.reasons == {"TRANSACTION_ABORTED": "interrupted"}


def test_the_journal_has_what_leaders_answered_and_how_each_transaction_ended() -> None:
    case = Case(None, ABORTABLE)
    case.send(4)
    told = [(each.get("number"), each["transaction"], each["outcome"]) for each in case.lines()]
    assert told == [
        (0, "1", "ok"),
        (1, "1", "ok"),
        (None, "1", "committed"),
        (2, "2", "ok"),
        (3, "2", "ok"),
        (None, "2", "aborted"),
    ]
    assert case.sender.journalled.ok == 4
