"""Consumers of a replication run: the client room's own, which validate what they have read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidelog.client.client import Client
from tidelog.client.consumer.config import consumer_config
from tidelog.client.consumer.consumer import ConsumerMachine
from tidelog.client.consumer.errors import (
    ConsumerError,
    CorruptRecords,
    LogTruncationError,
    OutOfRange,
)
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.events import PositionReset, PositionTruncated
from tidelog.core.model.ids import TopicPartition
from tidelog.judge.history import Moved, RecordsRead, Seen, Sequence32
from tidelog.worlds.simulator.client_host import ClientHost
from tidelog.worlds.simulator.payloads import from_value
from tidelog.worlds.simulator.profiles.replication_plan import ReaderPlan
from tidelog.worlds.simulator.profiles.replication_scene import ReplicationScene
from tidelog.worlds.simulator.profiles.replication_writers import IMPATIENT

FETCH_MS_MAX = 800
"""No answer that came now was asked for longer ago: request.timeout.ms and a little."""
SEEK_CHANCE = 0.03
FROM_THE_START_CHANCE = 0.3


class ConsumerReader:
    """Follows every partition from its start; where it cannot, it says so and goes on."""

    def __init__(self, scene: ReplicationScene, plan: ReaderPlan) -> None:
        self.scene = scene
        self.plan = plan
        self.name = plan.name
        self.random = scene.world.random_for(plan.name)
        self.host = ClientHost(world=scene.world, network=scene.network, name=plan.name)
        config = consumer_config(
            {
                **IMPATIENT,
                "bootstrap.servers": scene.cluster.bootstrap_servers,
                "auto.offset.reset": "earliest" if plan.resets else "none",
                "fetch.max.wait.ms": self.random.choice(("100", "400")),
                "max.partition.fetch.bytes": self.random.choice(("300", "1048576")),
                "client.rack": plan.rack or "",
            }
        )
        client = Client(self.host, config.client, random=self.host.random, trace=self.host.trace)
        self.host.run(client)
        self.consumer = ConsumerMachine(client, config)
        self.consumer.on_ready = self._poll
        self._places: set[TopicPartition] = set()

    def on_moved(self, event: PositionReset | PositionTruncated) -> None:
        """It went on elsewhere by its own policy, and told its trace."""
        offset = event.offset if isinstance(event, PositionReset) else event.divergence
        if offset is not None:
            self._write_down_move(event.partition, offset, type(event).__name__)

    def start(self) -> None:
        self.scene.later(self.random, 30, 90, self._go_on)

    def missing(self) -> Iterator[str]:
        """Where it has not come to the end yet."""
        model = self.scene.checker.model
        for place in self.scene.places:
            known = model.partitions.get(str(place))
            if known is None or known.leader is None:
                continue
            end_offset = model.log_copy(str(place), known.leader).end_offset
            position = self.consumer.position(place) if place in self._places else None
            if position is None or position < end_offset:
                yield f"{self.name} is at {position} of {place}: {end_offset}"

    def _go_on(self) -> None:
        self.host.do(self._tend)
        self.start()

    def _tend(self, now_ms: int) -> None:
        """Take up new partitions, give up deleted ones, seek if restless."""
        wanted = set(self.scene.places)
        if wanted != self._places:
            self.consumer.assign(self.scene.places)
            for place in self.scene.places:
                if place not in self._places:
                    self._move(place, 0, "began")
            self._places = wanted
        if self.plan.is_restless and not self.scene.is_over and self.random.random() < SEEK_CHANCE:
            place = self.random.choice(self.scene.places)
            position = self.consumer.position(place)
            if position:
                is_all = self.random.random() < FROM_THE_START_CHANCE
                offset = 0 if is_all else self.random.randint(0, position)
                self._move(place, offset, "sought")

    def _move(
        self, place: TopicPartition, offset: int, because: str, leader_epoch: int | None = None
    ) -> None:
        self.consumer.seek(place, offset, leader_epoch=leader_epoch)
        self._write_down_move(str(place), offset, because)

    def _write_down_move(self, partition: str, offset: int, because: str) -> None:
        self.scene.record(
            Moved(
                at_us=self.scene.world.now_us,
                reader=self.name,
                partition=partition,
                offset=offset,
                because=because,
            ),
            count=0,
        )

    def _poll(self, now_ms: int) -> None:
        try:
            received = self.consumer.poll(now_ms)
        except LogTruncationError as error:
            self._move(error.partition, error.divergence or 0, "truncated", error.divergence_epoch)
        except OutOfRange as error:
            self._move(error.partition, self.scene.log_start(str(error.partition)), "out of range")
        except CorruptRecords as error:
            self._read(error.partition, (), corrupt_offset=error.offset)
            self._move(error.partition, error.offset + 1, "corrupt")
        except ConsumerError as error:
            self._move(error.partition, 0, str(error))
        else:
            by_place: dict[TopicPartition, list[Seen]] = {}
            for record in received:
                by_place.setdefault(record.partition, []).append(_seen(record))
            for place, records in by_place.items():
                self._read(place, tuple(records))

    def _read(
        self, place: TopicPartition, records: tuple[Seen, ...], corrupt_offset: int | None = None
    ) -> None:
        now_us = self.scene.world.now_us
        self.scene.record(
            RecordsRead(
                at_us=now_us,
                invoked_us=now_us - FETCH_MS_MAX * 1_000,
                partition=str(place),
                start_offset=records[0].offset if records else 0,
                records=records,
                high_watermark=self.consumer.high_watermark(place) or 0,
                log_start_offset=0,
                corrupt_offset=corrupt_offset,
                reader=self.name,
            ),
            count=len(records),
        )


def _seen(record: ConsumerRecord) -> Seen:
    numbered = None
    if record.producer_id is not None and record.sequence is not None:
        numbered = Sequence32(record.producer_id, record.producer_epoch or 0, record.sequence)
    return Seen(record.offset, from_value(record.value), numbered, record.leader_epoch)


def watch_positions(scene: ReplicationScene, readers: Iterable[ConsumerReader]) -> None:
    """A consumer that resets itself says so in its trace."""
    by_name = {reader.name: reader for reader in readers}

    def on_event(source: str, event: object) -> None:
        assert isinstance(event, PositionReset | PositionTruncated)
        by_name[source].on_moved(event)

    scene.world.trace.watchers[PositionReset] = on_event
    scene.world.trace.watchers[PositionTruncated] = on_event
