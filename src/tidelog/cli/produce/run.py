"""One run of `tidelog produce`: send everything, hear what became of it, and say so."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TextIO

from tidelog.cli.exit_codes import Misused, Stop, VerbFailed
from tidelog.cli.produce.transactions import TransactionalSender
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import SendTicket
from tidelog.client.producer.transaction_errors import TransactionError
from tidelog.client.shells.acks_journal import AcksJournal, OutcomeCounts
from tidelog.client.shells.blocking_clients import Producer, SentRecord, TimedOut
from tidelog.core.model.exceptions import TidelogError

PROGRESS_EVERY_S = 1.0
PATIENCE_BEYOND_DELIVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """What is to be done with every record."""

    topic: str
    topic_id: str | None
    partition: int | None
    headers: Sequence[tuple[str, bytes | None]]
    run_name: str
    journal: TextIO | None
    pace: Pace
    shows_progress: bool
    transaction_records: int | None = None
    """So many records are one transaction; None: there are no transactions."""


def carry_out(
    order: ProduceOptions, settings: Mapping[str, str], records: Iterable[Given]
) -> ProduceRun:
    """Send the records, wait for every outcome. ConfigError if the settings are none."""
    config = producer_config(settings)
    if (config.transactional_id is None) is not (order.transaction_records is None):
        raise Misused("transactional.id and --transaction N go together")
    patience_s = config.delivery_timeout_ms / 1_000 + PATIENCE_BEYOND_DELIVERY_S
    journal = None if order.journal is None else AcksJournal(order.journal)
    if journal is not None:
        journal.begin(
            run=order.run_name,
            topic=order.topic,
            topic_id=order.topic_id,
            acks="all" if config.acks < 0 else str(config.acks),
            is_idempotent=config.is_idempotent,
            transactional_id=config.transactional_id,
        )
    with Stop() as stop:
        run = ProduceRun(Producer(settings), order, journal, patience_s=patience_s)
        run.prepare()
        run.send_all(records, stop)
        run.finish()
    return run


class ProduceRun:
    """Sends the input and counts outcomes; `outcomes` is written by the producer's thread alone."""

    def __init__(
        self,
        producer: Producer,
        order: ProduceOptions,
        journal: AcksJournal | None,
        *,
        patience_s: float,
    ) -> None:
        """`patience_s`: how long an outcome may take before it is unknown."""
        self._producer = producer
        self._order = order
        self._journal = journal
        self._patience_s = patience_s
        self._began_s = self._shown_s = time.monotonic()
        self._elapsed_s = 0.0
        self.sent = 0
        self.sent_bytes = 0
        self.outcomes = OutcomeCounts()
        self.trouble: str | None = None
        """Why not everything that was given was sent."""
        self.is_incomplete = False
        """The input was bad; an interrupted run is complete as far as it went."""
        self.transactions: TransactionalSender | None = None
        if order.transaction_records is not None:
            self.transactions = TransactionalSender(
                producer,
                records_max=order.transaction_records,
                patience_s=patience_s,
                outcomes=self.outcomes,
                journal=journal,
            )

    def prepare(self) -> None:
        """Fence whoever had the same transactional id; VerbFailed if that is refused."""
        if self.transactions is None:
            return
        try:
            self._producer.init_transactions()
        except (TransactionError, TimedOut) as error:
            self._producer.close(timeout_s=0)
            raise VerbFailed(str(error)) from None

    def send_all(self, records: Iterable[Given], stop: Stop) -> None:
        """Until there are no more, or somebody wants it to end."""
        given = iter(records)
        try:
            while True:
                with stop.waiting():
                    pause_s = self._order.pace.pause_s(self.sent, time.monotonic())
                    if pause_s > 0:
                        time.sleep(pause_s)
                    record = next(given, None)
                if record is None:
                    return
                self._send(record)
                self._progress()
        except (TransactionError, TimedOut) as error:
            self.trouble = str(error)
            self.is_incomplete = True
        except BadLine as bad:
            self.trouble = str(bad)
            self.is_incomplete = True
        except KeyboardInterrupt:
            self.trouble = "interrupted"

    def _send(self, record: Given) -> None:
        number = self.sent
        self.sent += 1
        self.sent_bytes += len(record.value or b"") + len(record.key or b"")
        if self.transactions is not None:
            self.transactions.send(number, lambda: self._give(record, None))
            return
        self._give(record, partial(self._hear, number, time.monotonic_ns() // 1_000))

    def _give(self, record: Given, on_done: Callable[[SendTicket], None] | None) -> SentRecord:
        return self._producer.send(
            self._order.topic,
            record.value,
            key=record.key,
            partition=self._order.partition,
            headers=self._order.headers,
            on_done=on_done,
        )

    def _hear(self, number: int, sent_us: int, ticket: SendTicket) -> None:
        assert ticket.outcome is not None
        self.outcomes.add(ticket.outcome)
        if self._journal is not None:
            answered_us = time.monotonic_ns() // 1_000
            self._journal.write_outcome(number, ticket, sent_us=sent_us, answered_us=answered_us)

    def finish(self) -> None:
        """Every record gets an outcome: without one in time, or at a second Ctrl-C, unknown."""
        try:
            if self.transactions is not None:
                self._end_transactions(self.transactions)
            self._producer.flush(self._patience_s)
        except (TimedOut, KeyboardInterrupt):
            self._producer.close(timeout_s=0)
        else:
            self._producer.close()
        self._elapsed_s = max(time.monotonic() - self._began_s, 1e-6)
        if self._journal is not None:
            of_transactions = self.transactions and self.transactions.journalled
            self._journal.end(of_transactions or self.outcomes)

    def _end_transactions(self, transactions: TransactionalSender) -> None:
        """Commit the last one, which may be short; abort it if not all of it was sent."""
        try:
            if self.trouble is None:
                transactions.commit()
            else:
                transactions.abort(self.trouble)
        except (TransactionError, TimedOut) as error:
            self.trouble = self.trouble or str(error)
            self.is_incomplete = True
        finally:
            transactions.give_up()

    def _progress(self) -> None:
        now_s = time.monotonic()
        if self._order.shows_progress and now_s - self._shown_s >= PROGRESS_EVERY_S:
            self._shown_s = now_s
            words = speed(self.sent, self.sent_bytes, now_s - self._began_s)
            print(f"sent {self.sent:,}, answered {self.outcomes.total:,}, {words}", file=sys.stderr)

    def summary(self) -> dict[str, Any]:
        of_transactions: dict[str, Any] = {}
        if self.transactions is not None:
            of_transactions["transactions"] = dict(self.transactions.ends)
        return {
            "topic": self._order.topic,
            "sent": self.sent,
            **self.outcomes.as_json(),
            **of_transactions,
            "bytes": self.sent_bytes,
            "elapsed_ms": round(self._elapsed_s * 1_000),
            "records_per_s": round(self.sent / self._elapsed_s, 1),
        }

    def summary_text(self) -> str:
        outcomes = self.outcomes
        words = speed(self.sent, self.sent_bytes, self._elapsed_s)
        if self.transactions is not None:
            words = f"{self.transactions.summary_text()}; {words}"
        return f"ok {outcomes.ok}, refused {outcomes.refused}, unknown {outcomes.unknown}; {words}"


def speed(records: int, size_bytes: int, elapsed_s: float) -> str:
    return f"{records / elapsed_s:,.0f} records/s, {size_bytes / elapsed_s / 1e6:.2f} MB/s"


class Given(NamedTuple):
    """One record's key and value."""

    key: bytes | None
    value: bytes | None


class BadLine(TidelogError):
    """A line that is no record; those before it were sent."""


def from_lines(
    lines: Iterable[bytes], *, separator: bytes | None = None, null_marker: bytes | None = None
) -> Iterator[Given]:
    """One record for each line, without its end; the key stands before the first separator."""
    for number, line in enumerate(lines, start=1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        key: bytes | None = None
        if separator is not None:
            key, found, text = text.partition(separator)
            if not found:
                raise BadLine(f"line {number} has no {separator.decode()!r} between key and value")
        yield Given(
            None if key is not None and key == null_marker else key,
            None if text == null_marker else text,
        )


def generated(count: int, *, size_bytes: int, run: str) -> Iterator[Given]:
    """Values that are found nowhere else: `RUN-NUMBER`, filled up to the size."""
    for number in range(count):
        yield Given(None, f"{run}-{number} ".encode().ljust(size_bytes, b"."))


class Pace:
    """Keeps a maximum number of records per second, counted from the first."""

    def __init__(self, records_per_s: float | None) -> None:
        self._records_per_s = records_per_s
        self._began_s: float | None = None

    def pause_s(self, sent: int, now_s: float) -> float:
        """How long to wait before the next record, given how many were sent."""
        if self._began_s is None:
            self._began_s = now_s
        if self._records_per_s is None:
            return 0.0
        return max(0.0, self._began_s + sent / self._records_per_s - now_s)
