"""A producer that keeps an acks journal of everything it sends, for tests and programs of any kind.

    with JournalledProducer(
        {"bootstrap.servers": "localhost:9092"}, topic="orders", journal="acks.jsonl"
    ) as producer:
        producer.send(b"paid", key=b"order-1")

One producer is one run of the journal: a first line, a line for each outcome, and a last line when
it is closed. Threads may share it; the journal's order is the order in which they got their turn.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import SendTicket
from tidelog.client.shells.acks_journal import AcksJournal, OutcomeCounts
from tidelog.client.shells.blocking_clients import CLOSE_TIMEOUT_S, Producer, SentRecord
from tidelog.client.shells.closeable import Closeable
from tidelog.core.wire.records import Header


class JournalledProducer(Closeable):
    """For one topic. A journal that is there already is continued with another run."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        topic: str,
        journal: str | os.PathLike[str],
        run: str | None = None,
    ) -> None:
        config = producer_config(settings)
        self._topic = topic
        path = Path(journal)
        self._file = path.open("a", encoding="utf-8")
        self._journal = AcksJournal(self._file)
        self._turn = threading.Lock()
        self._producer = Producer(settings)
        self.sent = 0
        self.counts = OutcomeCounts()
        """Counts; complete when the producer is closed."""
        self._journal.begin(
            run=run or secrets.token_hex(4),
            topic=topic,
            topic_id=None,
            acks="all" if config.acks < 0 else str(config.acks),
            is_idempotent=config.is_idempotent,
        )

    def send(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
    ) -> SentRecord:
        """As the producer's own."""
        with self._turn:
            number = self.sent
            self.sent += 1
            return self._producer.send(
                self._topic,
                value,
                key=key,
                partition=partition,
                headers=headers,
                timestamp_ms=timestamp_ms,
                on_done=partial(self._on_done, number, _now_us()),
            )

    def flush(self, timeout_s: float | None = None) -> None:
        """Until everything sent so far has an outcome."""
        self._producer.flush(timeout_s)

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Send the rest; what has no outcome in time is unknown, and the journal says so."""
        if self._file.closed:
            return
        self._producer.close(timeout_s)
        self._journal.end(self.counts)
        self._file.close()

    def _on_done(self, number: int, sent_us: int, ticket: SendTicket) -> None:
        assert ticket.outcome is not None
        self.counts.add(ticket.outcome)
        self._journal.write_outcome(number, ticket, sent_us=sent_us, answered_us=_now_us())


def _now_us() -> int:
    return time.monotonic_ns() // 1_000
