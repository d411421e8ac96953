"""The order stream: our own producer, a steady rate, a journal of every outcome.

The times of its acknowledgements also show how long clients could not write around a failure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tidelog.client.producer.outcome import SendOk, SendTicket
from tidelog.client.shells.acks_journal import AcksJournal, outcome_name
from tidelog.client.shells.acks_journal import OutcomeCounts as Outcomes
from tidelog.client.shells.blocking_clients import Producer, RequestFailed, TimedOut
from tidelog.client.shells.closeable import Closeable
from tidelog.demo.accounts import RecordPosition, StreamedRecord
from tidelog.demo.errors import WITHIN_S, DemoFailed
from tidelog.demo.orders import OrderRecord, Orders

RUN = "demo"


class AckTiming(NamedTuple):
    """When a record of a partition was sent and acknowledged, on the monotonic clock."""

    partition: int
    sent_s: float
    acked_s: float


class WritePauses(NamedTuple):
    """What the acknowledgements since a failure show."""

    paused_s: Mapping[int, float]
    """The longest pause of each partition that ended after the failure."""
    resumed: frozenset[int]
    """Partitions that have acknowledged a record that was sent after the failure."""

    @property
    def worst_s(self) -> float:
        return max(self.paused_s.values(), default=0.0)


class OrderStream(Closeable):
    """Sends from `start` to `finish`; its numbers may be read at any time."""

    def __init__(self, servers: str, topic: str, journal: Path, *, rate: int) -> None:
        self._topic = topic
        self._rate = rate
        self._file = journal.open("w", encoding="utf-8")
        self._journal = AcksJournal(self._file)
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "client.id": "tidelog-demo",
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 10,
                "delivery.timeout.ms": int(2 * WITHIN_S * 1_000),
            }
        )
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._outcomes = Outcomes()
        self._timings: list[AckTiming] = []
        self._results: list[StreamedRecord] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._send_all, name="order-stream", daemon=True)

    def start(self) -> None:
        self._journal.begin(
            run=RUN, topic=self._topic, topic_id=None, acks="all", is_idempotent=True
        )
        self._thread.start()

    @property
    def acknowledged(self) -> int:
        self._check()
        return self._outcomes.ok

    @property
    def failed(self) -> int:
        """Records that ended with an error, whether refused or unknown."""
        return self._outcomes.refused + self._outcomes.unknown

    def pauses_since(self, failed_s: float) -> WritePauses:
        """How writes paused around a failure at that time of the monotonic clock."""
        self._check()
        with self._lock:
            return write_pauses(self._timings, failed_s=failed_s)

    def finish(self) -> list[StreamedRecord]:
        """Send no more, and wait until every record has an outcome."""
        self._is_over.set()
        self._thread.join()
        self._check()
        try:
            self._producer.flush(2 * WITHIN_S)
        except (TimedOut, RequestFailed) as error:
            raise DemoFailed(f"the order stream: {error}") from None
        self._producer.close()
        self._journal.end(self._outcomes)
        self._file.close()
        return list(self._results)

    def close(self) -> None:
        """Stop at once; records without an outcome are given up."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._producer.close(timeout_s=0)
        self._file.close()

    # On other threads: the stream's own sends, the producer's calls back.

    def _send_all(self) -> None:
        orders, began_s, sent = Orders(), time.monotonic(), 0
        try:
            while not self._is_over.wait(max(0.0, began_s + sent / self._rate - time.monotonic())):
                self._send(orders.next(time.time_ns() // 1_000_000))
                sent += 1
        except BaseException as error:
            self._error = error

    def _send(self, record: OrderRecord) -> None:
        sent_s = time.monotonic()
        self._producer.send(
            self._topic,
            record.value,
            key=record.key,
            on_done=partial(self._on_outcome, record, sent_s),
        )

    def _on_outcome(self, record: OrderRecord, sent_s: float, ticket: SendTicket) -> None:
        outcome = ticket.outcome
        assert outcome is not None
        acked_s = time.monotonic()
        self._outcomes.add(outcome)
        self._journal.write_outcome(
            record.number, ticket, sent_us=int(sent_s * 1e6), answered_us=int(acked_s * 1e6)
        )
        position = None
        if (
            isinstance(outcome, SendOk)
            and ticket.partition is not None
            and outcome.offset is not None
        ):
            position = RecordPosition(ticket.partition.index, outcome.offset)
        self._results.append(
            StreamedRecord(
                kind=record.kind,
                order=record.order,
                outcome=outcome_name(outcome),
                position=position,
            )
        )
        if position is not None:
            with self._lock:
                self._timings.append(AckTiming(position.partition, sent_s, acked_s))

    def _check(self) -> None:
        if self._error is not None:
            raise DemoFailed(f"the order stream has ended: {self._error}")


def write_pauses(timings: Iterable[AckTiming], *, failed_s: float) -> WritePauses:
    """A pause reaches from one acknowledgement of a partition to its next one."""
    previous: dict[int, float] = {}
    paused: dict[int, float] = {}
    resumed: set[int] = set()
    for each in sorted(timings, key=lambda one: one.acked_s):
        before_s = previous.get(each.partition, each.sent_s)
        if each.acked_s > failed_s:
            pause_s = each.acked_s - before_s
            paused[each.partition] = max(paused.get(each.partition, 0.0), pause_s)
        if each.sent_s > failed_s:
            resumed.add(each.partition)
        previous[each.partition] = each.acked_s
    return WritePauses(paused, frozenset(resumed))
