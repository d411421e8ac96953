"""The demo's story: a broker is killed in the middle of writes, and every record is accounted for.

A real process, real files, real sockets, and Tidelog's own clients. An idempotent producer writes
orders with acks=all, and the broker answers when they are safe on its disk. `kill -9` strikes when
it has written some of them and not yet said so. The producer goes on: it takes more orders, and
sends again, with the same sequences, whatever it has no answer for. Then a consumer reads the log,
and the judge holds what the producer was told against what is there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tidelog.client.admin.topics import create_topic
from tidelog.client.consumer.errors import ConsumerError
from tidelog.client.consumer.fetched import Received
from tidelog.client.events import BatchRetried
from tidelog.client.producer.outcome import Ok, Outcome, Refused
from tidelog.client.shells.blocking import (
    Admin,
    Consumer,
    Producer,
    RequestFailed,
    Sent,
    TimedOut,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.judge import history
from tidelog.judge.history import Anomaly, FinalLog, Seen, Sequence32, Wrote
from tidelog.judge.verdict import judge
from tidelog.worlds.runtime.demo_broker import BrokerFailed, DemoBroker

PARTITION = TopicPartition("orders", 0)
WITHIN_S = 60.0
FREEZES_MAX = 100
_ORDERS_BETWEEN_FREEZES = 100
_LOOKS = 25
_BETWEEN_LOOKS_S = 0.02

Say = Callable[[str], None]


class DemoFailed(Exception):
    """The demo itself could not go on: not a verdict, an accident."""


@dataclass(slots=True)
class Accounts:
    """What became of every order, and what the judge says about it."""

    ok_before_kill: int = 0
    written_untold: int = 0
    """In the dead broker's files, but the producer had no answer."""
    batches_sent_again: int = 0
    recognised: int = 0
    """Orders that were sent again and answered with the place that they already had."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """What the producer was told in the end: ok, refused, unknown."""
    read: int = 0
    anomalies: list[Anomaly] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.anomalies


class Writer:
    """An idempotent producer of numbered orders, and what it was told about each."""

    def __init__(self, address: str) -> None:
        self.orders: list[Sent] = []
        self.told: list[Wrote] = []
        self.batches_sent_again = 0
        self._answered_at_loss: int | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 5,
                "batch.size": 512,  # small, so that much is on its way when the broker dies
                "linger.ms": 0,
                # The only broker is away for a while: a producer that went back to its first list
                # would forget the topic, and take no orders until it heard of it again.
                "metadata.recovery.strategy": "none",
                "max.block.ms": int(WITHIN_S * 1_000),
                "retry.backoff.max.ms": 100,
                "reconnect.backoff.max.ms": 100,
                "request.timeout.ms": int(WITHIN_S * 1_000),
                "delivery.timeout.ms": int(WITHIN_S * 1_000),
            },
            trace=self,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._producer.close(timeout_s=0)

    def write(self, count: int) -> None:
        """Hand so many new orders to the producer, which sends them when it can."""
        for _ in range(count):
            self._write_one(len(self.orders))

    def answered(self) -> int:
        return sum(isinstance(sent.outcome, Ok) for sent in self.orders)

    def answered_by_the_dead(self) -> int:
        """How many orders were answered ok when the producer saw that its connection is gone."""
        self._producer.wait_until(
            lambda: self._answered_at_loss is not None or self._producer.pending == 0,
            WITHIN_S,
            "the end of the connection",
        )
        return self.answered() if self._answered_at_loss is None else self._answered_at_loss

    def finish(self) -> None:
        """Until every order has its outcome and that is written down."""
        self._producer.flush(2 * WITHIN_S)
        self._producer.close()

    def emit(self, event: object) -> None:
        """The producer's trace. By the first loss, all answers of that connection were heard."""
        if isinstance(event, BatchRetried) and event.error == ErrorCode.NETWORK_EXCEPTION.name:
            self.batches_sent_again += 1
            if self._answered_at_loss is None:
                self._answered_at_loss = self.answered()

    def _write_one(self, number: int) -> None:
        payload = f"order {number}"
        invoked_us = _now_us()

        def told(outcome: Outcome) -> None:
            self.told.append(_wrote(number, payload, outcome, invoked_us=invoked_us))

        sent = self._producer.send(PARTITION.topic, payload.encode(), partition=0, on_outcome=told)
        self.orders.append(sent)


def run(broker: DemoBroker, say: Say, *, orders: int = 4_000) -> Accounts:
    """The whole story; some more orders may be needed until the broker is caught in mid-write."""
    try:
        broker.start()
        say(f"broker 1 listens on {broker.address} (its log: broker.log)")
        _create_topic(broker)
        with Writer(broker.address) as writer:
            return _tell(broker, writer, say, orders)
    except (BrokerFailed, TimedOut, RequestFailed, ConsumerError) as error:
        raise DemoFailed(str(error)) from error
    finally:
        broker.stop()


def _tell(broker: DemoBroker, writer: Writer, say: Say, orders: int) -> Accounts:
    accounts = Accounts()
    say(f"topic {PARTITION.topic} is there; an idempotent producer writes with acks=all")
    writer.write(orders)
    writer.orders[orders // 4].wait(WITHIN_S)
    _kill_in_mid_write(broker, writer)
    written_end = broker.written_end_offset(PARTITION)
    accounts.ok_before_kill = writer.answered_by_the_dead()
    accounts.written_untold = max(0, written_end - accounts.ok_before_kill)
    say(
        f"kill -9 after {accounts.ok_before_kill} acknowledged orders; "
        f"{accounts.written_untold} more are in the dead broker's files, and nobody was told"
    )
    writer.write(orders // 4)
    say(f"meanwhile the producer takes {orders // 4} more orders and keeps trying")
    broker.start()
    say("the broker is back on the same files; the log's tail was checked batch by batch")
    writer.finish()
    accounts.batches_sent_again = writer.batches_sent_again
    accounts.recognised = sum(
        isinstance(sent.outcome, Ok) and (sent.outcome.offset or 0) < written_end
        for sent in writer.orders[accounts.ok_before_kill :]
    )
    say(
        f"{accounts.batches_sent_again} batches were sent again with the same sequences; "
        f"{accounts.recognised} orders in them recognised as already written"
    )
    _judge(broker, writer, accounts)
    return accounts


def _create_topic(broker: DemoBroker) -> None:
    with Admin({"bootstrap.servers": broker.address}) as admin:
        question = create_topic(PARTITION.topic, partitions=1, replication_factor=1)
        made = admin.ask(question, timeout_s=WITHIN_S)
    if made.error != ErrorCode.NONE:
        raise DemoFailed(f"the topic could not be made: {made.error.name} {made.message or ''}")


def _kill_in_mid_write(broker: DemoBroker, writer: Writer) -> None:
    """Kill it between a write and its answer: the moment that duplicates come from.

    That moment is as short as a sync. So the broker is frozen again and again, and killed where
    its files hold more than it has answered.
    """
    for _ in range(FREEZES_MAX):
        broker.freeze()
        if _has_more_than_it_said(broker, writer):
            break
        broker.thaw()
        writer.write(_ORDERS_BETWEEN_FREEZES)
    broker.kill()


def _has_more_than_it_said(broker: DemoBroker, writer: Writer) -> bool:
    """Of a frozen broker. Answers that have left it get some time to arrive."""
    for _ in range(_LOOKS):
        time.sleep(_BETWEEN_LOOKS_S)
        if broker.written_end_offset(PARTITION) <= writer.answered():
            return False
    return True


def _judge(broker: DemoBroker, writer: Writer, accounts: Accounts) -> None:
    final = _read_all(broker)
    accounts.read = len(final.records)
    accounts.outcomes = Counter(write.outcome.value for write in writer.told)
    accounts.anomalies = judge([*writer.told, final])


def _read_all(broker: DemoBroker) -> FinalLog:
    """The whole log as a consumer gets it."""
    seen: list[Seen] = []
    settings = {"bootstrap.servers": broker.address, "auto.offset.reset": "earliest"}
    with Consumer(settings) as consumer:
        start = consumer.beginning_offsets([PARTITION])[PARTITION]
        end = consumer.end_offsets([PARTITION])[PARTITION]
        consumer.assign([PARTITION])
        while consumer.position(PARTITION) < end:
            records = consumer.poll(WITHIN_S)
            if not records:
                raise DemoFailed(f"nothing to read at {consumer.position(PARTITION)} of {end}")
            seen += [_seen(record) for record in records]
    return FinalLog(
        at_us=_now_us(),
        partition=str(PARTITION),
        log_start_offset=start,
        end_offset=end,
        records=tuple(seen),
    )


def _seen(record: Received) -> Seen:
    numbered = None
    if record.producer_id is not None:
        assert record.producer_epoch is not None and record.sequence is not None
        numbered = Sequence32(record.producer_id, record.producer_epoch, record.sequence)
    return Seen(record.offset, (record.value or b"").decode(), numbered)


def _wrote(number: int, payload: str, outcome: Outcome, *, invoked_us: int) -> Wrote:
    what, base_offset, error = history.Outcome.UNKNOWN, None, None
    if isinstance(outcome, Ok):
        what, base_offset = history.Outcome.OK, outcome.offset
    else:
        error = f"{outcome.error}: {outcome.reason}"
        if isinstance(outcome, Refused):
            what = history.Outcome.REFUSED
    return Wrote(
        at_us=_now_us(),
        invoked_us=invoked_us,
        partition=str(PARTITION),
        payloads=(payload,),
        outcome=what,
        base_offset=base_offset,
        error=error,
        writer="producer",
        order=number,
    )


def _now_us() -> int:
    return time.monotonic_ns() // 1_000
