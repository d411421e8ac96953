"""The demo's story: a leader dies with records that only it holds; each one is accounted for.

Three broker processes, Tidelog's own clients, real files. Orders are written with acks=all and are
on three disks. Then both followers are given nothing more: five orders with acks=1 are acknowledged
by the leader alone, three with acks=all wait. `kill -9` strikes. What one broker acknowledged is
lost, what waited is sent again to the next leader, and the dead one, when it returns, cuts off
what the others never had. The judge then holds what the producers were told against what is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tidelog.client.admin.offsets import high_watermark, log_end_offset
from tidelog.client.admin.topics import create_topic, describe_topic
from tidelog.client.consumer.errors import ConsumerError
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.producer.outcome import SendOk, SendOutcome, SendRefused
from tidelog.client.shells.blocking_clients import (
    Admin,
    Consumer,
    Producer,
    RequestFailed,
    SentRecord,
    TimedOut,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import TopicPartition
from tidelog.judge import history
from tidelog.judge.anomalies import LOST, Anomaly
from tidelog.judge.history import FinalLog, Seen, WriteAcks, Wrote
from tidelog.judge.history_checks import judge
from tidelog.lab.evidence import Entry, entries, segments

PARTITION = TopicPartition("orders", 0)
REPLICATED = 20
ONE_COPY = 5
WAITING = 3
AFTERWARDS = 5
WITHIN_S = 60.0
_PAUSE_S = 0.02

Say = Callable[[str], None]


class DemoFailed(TidelogError):
    """The demo itself could not go on: not a verdict, an accident."""


class NodeOnDisk(Protocol):
    """Where a broker keeps what it has."""

    @property
    def data_path(self) -> Path: ...


class Undoable(Protocol):
    """Something that was done to a cluster."""

    def undo(self) -> object: ...


class DemoCluster(Protocol):
    """What the story does to a cluster: see tidelog.cluster."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def nodes(self) -> Mapping[int, NodeOnDisk]: ...

    def hold_replica(self, broker: int, topic: str, partition: int) -> Undoable: ...

    def kill(self, broker: int) -> object: ...

    def restart(self, broker: int) -> object: ...

    def wait_isr(
        self, topic: str, partition: int, isr: set[int], *, timeout_s: float
    ) -> object: ...


@dataclass(frozen=True, slots=True)
class Order:
    """One record, what its producer was told, and what became of it."""

    payload: str
    acks: str
    told: str
    kept_at: tuple[int, ...]
    """Its offsets in the final log."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """The fences of the partition at one moment, as brokers tell them."""

    high_watermark: int | None
    log_end_offsets: dict[int, int | None]


@dataclass(slots=True)
class Accounts:
    """What the story found."""

    dead: int = 0
    """The leader that was killed, and comes back."""
    next_leader: int = 0
    at_the_kill: Offsets = field(default_factory=lambda: Offsets(None, {}))
    tail_before: tuple[Entry, ...] = ()
    """What the dead leader's disk held above the high watermark."""
    tail_after: tuple[Entry, ...] = ()
    """The same part of its disk after its return."""
    orders: list[Order] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)

    @property
    def lost(self) -> list[Order]:
        return [order for order in self.orders if order.told == "ok" and not order.kept_at]

    @property
    def surprises(self) -> list[str]:
        """What acks=all promises, or acks=1 makes certain here, and did not come true."""
        found = [f"{each.name}: {each.text}" for each in self.anomalies if each.kind != LOST]
        for order in self.orders:
            is_lost = order.told == "ok" and not order.kept_at
            if is_lost and order.acks != "1":
                found.append(f"lost: {order.payload!r}, acknowledged with acks={order.acks}")
            elif order.told != "ok":
                found.append(f"not acknowledged: {order.payload!r}, told {order.told}")
            elif order.acks == "1" and not is_lost:
                found.append(f"kept: {order.payload!r}, though one broker alone had it")
        if len(self.lost) != sum(each.kind == LOST for each in self.anomalies):
            found.append("the judge and the final log do not agree on what is lost")
        return found


def run(cluster: DemoCluster, say: Say) -> Accounts:
    """The whole story on a running cluster of three brokers."""
    try:
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            return _Story(cluster, admin, say).tell()
    except (TimedOut, RequestFailed, ConsumerError) as error:
        raise DemoFailed(str(error)) from error


class _Story:
    def __init__(self, cluster: DemoCluster, admin: Admin, say: Say) -> None:
        self._cluster = cluster
        self._admin = admin
        self._say = say
        self._wrote: list[Wrote] = []
        self._accounts = Accounts()
        self._holds: list[Undoable] = []

    def tell(self) -> Accounts:
        accounts = self._accounts
        self._create_topic()
        accounts.dead, epoch_before = self._next_leader()
        self._say(
            f"topic {PARTITION.topic}: three replicas, broker {accounts.dead} leads "
            f"in leader epoch {epoch_before}"
        )
        with self._producer(WriteAcks.ALL) as careful, self._producer(WriteAcks.LEADER) as hasty:
            self._write(careful, "order", REPLICATED, WriteAcks.ALL)
            self._say(f"{REPLICATED} orders are acknowledged with acks=all: on all three disks")
            waiting = self._write_to_one(careful, hasty)
            self._fail_over(epoch_before)
            for sent in waiting:
                sent.wait(WITHIN_S)
            self._say(f"the {WAITING} orders that waited were sent again, and are acknowledged")
            self._write(careful, "later order", AFTERWARDS, WriteAcks.ALL)
            self._say(f"{AFTERWARDS} more are acknowledged with acks=all")
            careful.close()
            hasty.close()
        self._return_of_the_dead()
        self._judge()
        return accounts

    def _write_to_one(self, careful: Producer, hasty: Producer) -> list[SentRecord]:
        """Until the leader has what nobody else has."""
        dead = self._accounts.dead
        self._holds = [
            self._cluster.hold_replica(follower, PARTITION.topic, PARTITION.index)
            for follower in self._cluster.nodes
            if follower != dead
        ]
        self._say(f"from now on broker {dead} gives its followers nothing more of {PARTITION}")
        self._write(hasty, "hasty order", ONE_COPY, WriteAcks.LEADER)
        self._say(f"{ONE_COPY} orders are acknowledged with acks=1: on the disk of broker {dead}")
        waiting = self._send(careful, "waiting order", WAITING, WriteAcks.ALL)
        self._until(
            lambda: self._end_of(dead) == REPLICATED + ONE_COPY + WAITING, "the waiting orders"
        )
        if any(sent.outcome is not None for sent in waiting):
            raise DemoFailed("acks=all was answered while two followers were held back")
        self._say(f"{WAITING} orders with acks=all are written there too, and NOT acknowledged")
        self._accounts.at_the_kill = self._offsets()
        return waiting

    def _fail_over(self, epoch_before: int) -> None:
        accounts = self._accounts
        self._cluster.kill(accounts.dead)
        killed_s = time.monotonic()
        self._say(f"kill -9 of broker {accounts.dead}")
        for hold in self._holds:
            hold.undo()
        accounts.next_leader, leader_epoch = self._next_leader(after=accounts.dead)
        gap_ms = (time.monotonic() - killed_s) * 1_000
        self._say(
            f"broker {accounts.next_leader} leads in leader epoch {leader_epoch} "
            f"(it was {epoch_before}), {gap_ms:.0f} ms after the kill"
        )
        accounts.tail_before = self._tail_on_disk()

    def _return_of_the_dead(self) -> None:
        accounts = self._accounts
        self._cluster.restart(accounts.dead)
        self._wait_until_in_sync()
        accounts.tail_after = self._tail_on_disk()
        self._say(
            f"broker {accounts.dead} is back: it cut {len(accounts.tail_before)} records that "
            f"broker {accounts.next_leader} never had, copied {len(accounts.tail_after)} others, "
            "and is in sync"
        )

    # Writing.

    def _producer(self, acks: WriteAcks) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap_servers,
                "acks": acks.value,
                "enable.idempotence": acks is WriteAcks.ALL,
                "linger.ms": 0,
                "delivery.timeout.ms": int(2 * WITHIN_S * 1_000),
            }
        )

    def _write(self, producer: Producer, name: str, count: int, acks: WriteAcks) -> None:
        for sent in self._send(producer, name, count, acks):
            sent.wait(WITHIN_S)

    def _send(self, producer: Producer, name: str, count: int, acks: WriteAcks) -> list[SentRecord]:
        return [self._send_one(producer, f"{name} {number + 1}", acks) for number in range(count)]

    def _send_one(self, producer: Producer, payload: str, acks: WriteAcks) -> SentRecord:
        invoked_us = _now_us()

        def told(outcome: SendOutcome) -> None:
            self._wrote.append(_wrote(payload, outcome, acks, invoked_us=invoked_us))

        return producer.send(PARTITION.topic, payload.encode(), partition=0, on_outcome=told)

    # Looking.

    def _create_topic(self) -> None:
        question = create_topic(
            PARTITION.topic,
            partitions=1,
            replication_factor=len(self._cluster.nodes),
            configs={"min.insync.replicas": "2"},
        )
        made = self._admin.ask(question, timeout_s=WITHIN_S)
        if made.error != ErrorCode.NONE:
            raise DemoFailed(f"the topic could not be made: {made.error.name} {made.message or ''}")
        self._wait_until_in_sync()

    def _next_leader(self, *, after: int = 0) -> tuple[int, int]:
        """Who leads, and in which leader epoch. One answer counts: the next may be another's, who
        does not know it yet."""
        found = (0, 0)

        def is_led() -> bool:
            nonlocal found
            found = self._leader()
            return found[0] not in (after, 0)

        self._until(is_led, "a leader" if after == 0 else "another leader")
        return found

    def _leader(self) -> tuple[int, int]:
        """Who leads, or 0, and in which leader epoch, as anybody says."""
        told = self._admin.ask(describe_topic(PARTITION.topic), timeout_s=WITHIN_S)
        found = told.partitions.get(PARTITION.index)
        return (0, 0) if found is None else (found.leader_id or 0, found.leader_epoch or 0)

    def _end_of(self, broker_id: int) -> int | None:
        return self._admin.ask(
            log_end_offset(PARTITION, broker_id=broker_id), timeout_s=WITHIN_S
        ).offset

    def _offsets(self) -> Offsets:
        return Offsets(
            self._admin.ask(high_watermark(PARTITION), timeout_s=WITHIN_S).offset,
            {broker_id: self._end_of(broker_id) for broker_id in self._cluster.nodes},
        )

    def _tail_on_disk(self) -> tuple[Entry, ...]:
        """What lies on the old leader's disk above what was committed when it died."""
        directory = self._cluster.nodes[self._accounts.dead].data_path / str(PARTITION)
        files = {path.name: path.read_bytes() for path in directory.glob("*.log")}
        return tuple(each for each in entries(segments(files)) if each.offset >= REPLICATED)

    def _wait_until_in_sync(self) -> None:
        everyone = set(self._cluster.nodes)
        self._cluster.wait_isr(PARTITION.topic, PARTITION.index, everyone, timeout_s=WITHIN_S)

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + WITHIN_S
        while not reached():
            if time.monotonic() > deadline_s:
                raise DemoFailed(f"{what} did not come within {WITHIN_S:.0f} s")
            time.sleep(_PAUSE_S)

    # The verdict.

    def _judge(self) -> None:
        final = _read_all(self._cluster.bootstrap_servers)
        places: dict[str, list[int]] = {}
        for seen in final.records:
            places.setdefault(seen.payload, []).append(seen.offset)
        self._accounts.orders = [
            Order(
                each.payloads[0],
                each.acks.value,
                each.outcome.value,
                tuple(places.get(each.payloads[0], ())),
            )
            for each in self._wrote
        ]
        self._accounts.anomalies = judge([*self._wrote, final])


def _read_all(bootstrap_servers: str) -> FinalLog:
    """The whole log as a consumer gets it."""
    seen: list[Seen] = []
    settings = {"bootstrap.servers": bootstrap_servers, "auto.offset.reset": "earliest"}
    with Consumer(settings) as consumer:
        start = consumer.beginning_offsets([PARTITION])[PARTITION]
        end = consumer.end_offsets([PARTITION])[PARTITION]
        consumer.assign([PARTITION])
        while consumer.position(PARTITION) < end:
            records = consumer.poll(WITHIN_S)
            if not records:
                raise DemoFailed(f"nothing to read at {consumer.position(PARTITION)} of {end}")
            seen += map(_seen, records)
    return FinalLog(
        at_us=_now_us(),
        partition=str(PARTITION),
        log_start_offset=start,
        end_offset=end,
        records=tuple(seen),
    )


def _seen(record: ConsumerRecord) -> Seen:
    payload = (record.value or b"").decode()
    return Seen(record.offset, payload, leader_epoch=record.leader_epoch)


def _wrote(payload: str, outcome: SendOutcome, acks: WriteAcks, *, invoked_us: int) -> Wrote:
    what, base_offset, error = history.CallOutcome.UNKNOWN, None, None
    if isinstance(outcome, SendOk):
        what, base_offset = history.CallOutcome.OK, outcome.offset
    else:
        error = f"{outcome.error}: {outcome.reason}"
        if isinstance(outcome, SendRefused):
            what = history.CallOutcome.REFUSED
    return Wrote(
        at_us=_now_us(),
        invoked_us=invoked_us,
        partition=str(PARTITION),
        payloads=(payload,),
        outcome=what,
        base_offset=base_offset,
        error=error,
        writer=f"acks={acks.value}",
        acks=acks,
    )


def _now_us() -> int:
    return time.monotonic_ns() // 1_000
