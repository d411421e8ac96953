"""Kafka's own clients in a story: they buffer, retry and refresh for themselves.

The machines are those of the client room; the engine hosts them. A story gives them records, waits
for what becomes of each, and reads the outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidelog.client.producer.outcome import SendOk, SendRefused
from tidelog.judge.history import CallOutcome, WriteAcks, Wrote
from tidelog.lab.engine import Consumed, Ticket

if TYPE_CHECKING:
    from tidelog.lab.lab import Lab

ACKS = {"0": WriteAcks.NONE, "1": WriteAcks.LEADER, "all": WriteAcks.ALL, "-1": WriteAcks.ALL}


class Sent:
    """One record that a producer was given."""

    def __init__(self, payload: str, index: int, ticket: Ticket, sent_us: int) -> None:
        self.payload = payload
        self.index = index
        self.ticket = ticket
        self.sent_us = sent_us

    @property
    def outcome(self) -> object:
        """Ok, Refused or Unknown of the client room; None while it is open."""
        return self.ticket.outcome

    @property
    def offset(self) -> int | None:
        return self.outcome.offset if isinstance(self.outcome, SendOk) else None

    @property
    def is_ok(self) -> bool:
        return isinstance(self.outcome, SendOk)

    def as_operation(self, partition: str, producer: LabProducer) -> Wrote:
        """For the judge."""
        outcome = self.outcome
        word = CallOutcome.UNKNOWN
        if isinstance(outcome, SendOk):
            word = CallOutcome.OK
        elif isinstance(outcome, SendRefused):
            word = CallOutcome.REFUSED
        over_us = self.ticket.over_us
        return Wrote(
            at_us=self.sent_us if over_us is None else over_us,
            invoked_us=self.sent_us,
            partition=partition,
            payloads=(self.payload,),
            outcome=word,
            base_offset=self.offset,
            writer=producer.name,
            acks=ACKS[producer.config.get("acks", "all")],
        )


class LabProducer:
    """A producer that a story can wait for."""

    def __init__(self, lab: Lab, name: str, config: Mapping[str, str]) -> None:
        self._lab = lab
        self.name = name
        self.config = dict(config)
        self.handle = lab.engine.producer(name, config)
        self.sent: list[Sent] = []

    def begin(self, payload: str, *, index: int = 0) -> Sent:
        """Give it a record, don't wait."""
        ticket = self.handle.send(self._lab.topic.name, index, payload.encode())
        self.sent.append(Sent(payload, index, ticket, self._lab.engine.now_us))
        return self.sent[-1]

    def send(self, payload: str, *, index: int = 0, within_ms: int = 130_000) -> Sent:
        """Give it a record and wait for its fate."""
        sent = self.begin(payload, index=index)
        self.wait(sent, within_ms=within_ms)
        return sent

    def wait(self, *some: Sent, within_ms: int = 130_000) -> None:
        """Until the fate of these records is known, or of all that it was ever given."""
        waited = some or tuple(self.sent)
        is_over = self._lab.engine.wait(
            lambda: all(each.ticket.is_over for each in waited), within_ms=within_ms
        )
        assert is_over, f"{self.name} still waits for an answer"


class LabConsumer:
    """A consumer that a story can wait for."""

    def __init__(self, lab: Lab, name: str, config: Mapping[str, str], *, index: int = 0) -> None:
        self._lab = lab
        self._index = index
        self.name = name
        self.config = {"auto.offset.reset": "earliest", **config}
        self.handle = lab.engine.consumer(name, self.config)
        self.handle.assign([(lab.topic.name, index)])
        self.got: list[Consumed] = []

    @property
    def payloads(self) -> list[str]:
        return [(each.value or b"").decode() for each in self.got]

    @property
    def position(self) -> int | None:
        return self.handle.position(self._lab.topic.name, self._index)

    def reads(self) -> Iterator[tuple[str, Consumed]]:
        """What it was given, each with the name by which the audit knows the reader."""
        return ((self.name, got) for got in self.got)

    def seek(self, offset: int, *, leader_epoch: int | None = None) -> None:
        self.handle.seek(self._lab.topic.name, self._index, offset, leader_epoch=leader_epoch)

    def read_for(self, duration_ms: int) -> list[Consumed]:
        """Poll for the given time, and return what came."""
        before = len(self.got)
        end_us = self._lab.engine.now_us + duration_ms * 1_000
        while self._lab.engine.now_us < end_us:
            self.got += self.handle.poll()
            self._lab.engine.pass_ms(10)
        self.got += self.handle.poll()
        return self.got[before:]

    def read_to(self, offset: int, *, within_ms: int = 60_000) -> list[Consumed]:
        """Poll until its position is this offset."""
        before = len(self.got)

        def is_there() -> bool:
            self.got += self.handle.poll()
            return self.position == offset

        self._lab.until(f"{self.name} is at {offset}", is_there, within_ms=within_ms)
        return self.got[before:]
