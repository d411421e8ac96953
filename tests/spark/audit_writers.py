"""Producers that keep an acks journal, for audits of what became of their records."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tidelog.client.producer.outcome import Ticket
from tidelog.client.shells.acks_journal import AcksJournal, Told
from tidelog.client.shells.blocking import Producer, Sent

WITHIN_S = 120.0


class Writer:
    """One run: everything it sends is told in the journal, whose last line is its end."""

    def __init__(self, servers: str, journal: Path, topic: str, *, acks: str = "all") -> None:
        self._topic = topic
        self._file = journal.open("a", encoding="utf-8")
        self._journal = AcksJournal(self._file)
        self._told = Told()
        self._sent = 0
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "acks": acks,
                "enable.idempotence": acks == "all",
                "linger.ms": 0,
                "delivery.timeout.ms": int(2 * WITHIN_S * 1_000),
            }
        )
        self._journal.begin(
            run=f"acks-{acks}",
            topic=topic,
            topic_id=None,
            acks=acks,
            is_idempotent=acks == "all",
        )

    def send(self, value: str, *, partition: int = 0) -> Sent:
        number, sent_us = self._sent, _now_us()
        self._sent += 1

        def hear(ticket: Ticket) -> None:
            assert ticket.outcome is not None
            self._told.add(ticket.outcome)
            self._journal.told(number, ticket, sent_us=sent_us, told_us=_now_us())

        return self._producer.send(
            self._topic, value.encode(), key=b"k", partition=partition, on_told=hear
        )

    def send_all(self, name: str, count: int, *, partition: int = 0) -> None:
        for sent in [self.send(f"{name} {each}", partition=partition) for each in range(count)]:
            sent.result(WITHIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._producer.close()
        self._journal.end(self._told)
        self._file.close()


def _now_us() -> int:
    return time.monotonic_ns() // 1_000
