"""Producers that keep an acks journal, for audits of what became of their records."""

from __future__ import annotations

from pathlib import Path

from tidelog.client.shells.blocking_clients import SentRecord
from tidelog.client.shells.journalled_producer import JournalledProducer

WITHIN_S = 120.0


class Writer(JournalledProducer):
    """One run, of texts under one key."""

    def __init__(self, servers: str, journal: Path, topic: str, *, acks: str = "all") -> None:
        settings = {
            "bootstrap.servers": servers,
            "acks": acks,
            "enable.idempotence": acks == "all",
            "linger.ms": 0,
            "delivery.timeout.ms": int(2 * WITHIN_S * 1_000),
        }
        super().__init__(settings, topic=topic, journal=journal, run=f"acks-{acks}")

    def send_text(self, text: str, *, partition: int = 0) -> SentRecord:
        return self.send(text.encode(), key=b"k", partition=partition)

    def send_all(self, name: str, count: int, *, partition: int = 0) -> None:
        for sent in [
            self.send_text(f"{name} {each}", partition=partition) for each in range(count)
        ]:
            sent.result(WITHIN_S)
