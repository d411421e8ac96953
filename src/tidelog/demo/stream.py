"""The order stream on its way: our own producer, a steady pace, a journal of every outcome."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path

from tidelog.client.producer.outcome import SendOk, SendTicket
from tidelog.client.shells.acks_journal import AcksJournal, word
from tidelog.client.shells.acks_journal import OutcomeCounts as Outcomes
from tidelog.client.shells.blocking_clients import Producer, RequestFailed, TimedOut
from tidelog.client.shells.closeable import Closeable
from tidelog.demo.accounts import RecordPosition, StreamedRecord
from tidelog.demo.errors import WITHIN_S, DemoFailed
from tidelog.demo.orders import OrderRecord, Orders
from tidelog.demo.pauses import AckTiming, WritePauses, write_pauses

RUN = "demo"


class OrderStream(Closeable):
    """Runs from `start` to `finish`; what is known of it may be asked at any time."""

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
        self._told: list[AckTiming] = []
        self._results: list[StreamedRecord] = []
        self._trouble: BaseException | None = None
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
        """Records whose producer was told an error, whether refused or unknown."""
        return self._outcomes.refused + self._outcomes.unknown

    def since(self, blow_s: float) -> WritePauses:
        """What acknowledgements say of a blow at that time of the monotonic clock."""
        self._check()
        with self._lock:
            return write_pauses(self._told, blow_s=blow_s)

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
        """Whatever has no outcome yet is given up."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._producer.close(timeout_s=0)
        self._file.close()

    # The other threads: the stream's own sends, the producer's hears.

    def _send_all(self) -> None:
        orders, began_s, sent = Orders(), time.monotonic(), 0
        try:
            while not self._is_over.wait(max(0.0, began_s + sent / self._rate - time.monotonic())):
                self._send(orders.next(time.time_ns() // 1_000_000))
                sent += 1
        except BaseException as error:
            self._trouble = error

    def _send(self, record: OrderRecord) -> None:
        sent_s = time.monotonic()
        self._producer.send(
            self._topic,
            record.value,
            key=record.key,
            on_told=partial(self._hear, record, sent_s),
        )

    def _hear(self, record: OrderRecord, sent_s: float, ticket: SendTicket) -> None:
        outcome = ticket.outcome
        assert outcome is not None
        told_s = time.monotonic()
        self._outcomes.add(outcome)
        self._journal.told(
            record.number, ticket, sent_us=int(sent_s * 1e6), told_us=int(told_s * 1e6)
        )
        place = None
        if (
            isinstance(outcome, SendOk)
            and ticket.partition is not None
            and outcome.offset is not None
        ):
            place = RecordPosition(ticket.partition.index, outcome.offset)
        self._results.append(
            StreamedRecord(kind=record.kind, order=record.order, outcome=word(outcome), place=place)
        )
        if place is not None:
            with self._lock:
                self._told.append(AckTiming(place.partition, sent_s, told_s))

    def _check(self) -> None:
        if self._trouble is not None:
            raise DemoFailed(f"the order stream has ended: {self._trouble}")
