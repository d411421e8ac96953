"""Consumers of a run: the client room's own, which validate what they have read."""

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
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.plan import ReaderPlan
from tidelog.worlds.simulator.profiles.writers import IMPATIENT

FETCH_MS_MAX = 800
"""Maximum age of the request behind any reply: request.timeout.ms and a little."""
SEEK_CHANCE = 0.03
FROM_THE_START_CHANCE = 0.3


class ConsumerReader:
    """Follows every partition from its start; where it cannot, it records that and goes on."""

    def __init__(self, context: RunContext, plan: ReaderPlan) -> None:
        self.context = context
        self.plan = plan
        self.name = plan.name
        self.random = context.world.random_for(plan.name)
        self.host = ClientHost(world=context.world, network=context.network, name=plan.name)
        config = consumer_config(
            {
                **IMPATIENT,
                "bootstrap.servers": context.cluster.bootstrap_servers,
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
        self._assigned: dict[TopicPartition, str] = {}
        """With the names under which the judges know them."""

    def on_moved(self, event: PositionReset | PositionTruncated) -> None:
        """It moved by its own policy, and emitted an event."""
        offset = event.offset if isinstance(event, PositionReset) else event.divergence
        names = {str(each): name for each, name in self._assigned.items()}
        if offset is not None:
            self._record_move(names[event.partition], offset, type(event).__name__)

    def start(self) -> None:
        self.context.later(self.random, 30, 90, self._go_on)

    def missing(self) -> Iterator[str]:
        """Where it has not come to the end yet."""
        for topic_partition in self.context.topic_partitions:
            end_offset = self.context.log_end(self.context.name_of(topic_partition))
            if end_offset is None:
                continue
            position = (
                self.consumer.position(topic_partition)
                if topic_partition in self._assigned
                else None
            )
            if position is None or position < end_offset:
                yield f"{self.name} is at {position} of {topic_partition}: {end_offset}"

    def _go_on(self) -> None:
        self.host.do(self._tend)
        self.start()

    def _tend(self, now_ms: int) -> None:
        """Take up new partitions, give up deleted ones, seek if restless."""
        wanted = {each: self.context.name_of(each) for each in self.context.topic_partitions}
        if wanted != self._assigned:
            known, self._assigned = self._assigned, wanted
            kept = [each for each, name in wanted.items() if known.get(each, name) == name]
            if len(kept) < len(wanted):
                self.consumer.assign(kept)  # what was read of a deleted namesake is dropped
            self.consumer.assign(self.context.topic_partitions)
            for topic_partition in self.context.topic_partitions:
                if known.get(topic_partition) != wanted[topic_partition]:
                    self._move(topic_partition, 0, "began")
        if (
            self.plan.is_restless
            and not self.context.is_over
            and self.random.random() < SEEK_CHANCE
        ):
            topic_partition = self.random.choice(self.context.topic_partitions)
            position = self.consumer.position(topic_partition)
            if position:
                is_all = self.random.random() < FROM_THE_START_CHANCE
                offset = 0 if is_all else self.random.randint(0, position)
                self._move(topic_partition, offset, "sought")

    def _move(
        self,
        topic_partition: TopicPartition,
        offset: int,
        because: str,
        leader_epoch: int | None = None,
    ) -> None:
        self.consumer.seek(topic_partition, offset, leader_epoch=leader_epoch)
        self._record_move(self._assigned[topic_partition], offset, because)

    def _record_move(self, partition: str, offset: int, because: str) -> None:
        self.context.record(
            Moved(
                at_us=self.context.world.now_us,
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
            name = self._assigned[error.partition]
            self._move(error.partition, self.context.log_start(name), "out of range")
        except CorruptRecords as error:
            self._read(error.partition, (), corrupt_offset=error.offset)
            self._move(error.partition, error.offset + 1, "corrupt")
        except ConsumerError as error:
            self._move(error.partition, 0, str(error))
        else:
            by_partition: dict[TopicPartition, list[Seen]] = {}
            for record in received:
                by_partition.setdefault(record.partition, []).append(_seen(record))
            for topic_partition, records in by_partition.items():
                self._read(topic_partition, tuple(records))

    def _read(
        self,
        topic_partition: TopicPartition,
        records: tuple[Seen, ...],
        corrupt_offset: int | None = None,
    ) -> None:
        now_us = self.context.world.now_us
        self.context.record(
            RecordsRead(
                at_us=now_us,
                invoked_us=now_us - FETCH_MS_MAX * 1_000,
                partition=self._assigned[topic_partition],
                start_offset=records[0].offset if records else 0,
                records=records,
                high_watermark=records[-1].offset + 1 if records else 0,
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


def watch_positions(context: RunContext, readers: Iterable[ConsumerReader]) -> None:
    """A consumer that resets itself emits an event."""
    by_name = {reader.name: reader for reader in readers}

    def on_event(source: str, event: object) -> None:
        assert isinstance(event, PositionReset | PositionTruncated)
        by_name[source].on_moved(event)

    context.world.trace.watchers[PositionReset] = on_event
    context.world.trace.watchers[PositionTruncated] = on_event
