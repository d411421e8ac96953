"""What a storage run shares: one broker, its topics as clients know them, and the history.

Actors (writers, readers, an administrator) send requests and record the replies. Faults that may
lose records are recorded as excuses: `LossRecorder` watches every end of a broker's run for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.node import Node
from tidelog.core.replication.partition import Partition
from tidelog.judge.anomalies import Anomaly, AnomalyKind
from tidelog.judge.history import CallOutcome, MediumDamaged, Operation, PowerLost, Wrote
from tidelog.worlds.simulator.client import WireClient
from tidelog.worlds.simulator.network import Conditions, Network
from tidelog.worlds.simulator.process import SimProcess
from tidelog.worlds.simulator.requests import TopicName
from tidelog.worlds.simulator.world import SimWorld

BROKER = "broker-1"


@dataclass(slots=True, eq=False)
class TrackedTopic:
    """One topic from its creation to its deletion; a namesake is another one."""

    name: TopicName
    partitions: int
    by_id_only: bool
    """The name is used again in this run, so only the id tells the topics apart."""
    retention: bool
    is_deleted: bool = False
    ends: dict[int, int] = field(default_factory=dict)
    """Where each partition is thought to end: for choosing offsets, never for judging."""

    def key(self, index: int) -> str:
        return f"{self.name.name}.{self.name.topic_id.hex()[:8]}-{index}"


@dataclass(frozen=True, slots=True)
class TrackedPartition:
    """A partition of a tracked topic."""

    topic: TrackedTopic
    index: int

    @property
    def key(self) -> str:
        return self.topic.key(self.index)


class Actor(Protocol):
    """A client that works until the run is over."""

    name: str
    client: WireClient

    def start(self) -> None: ...


class StorageContext:
    """Everything that the actors share."""

    def __init__(
        self, world: SimWorld, process: SimProcess, network: Network, *, fsync: str
    ) -> None:
        self.world = world
        self.process = process
        self.network = network
        self.fsync = fsync
        self.topics: list[TrackedTopic] = []
        self.history: list[Operation] = []
        self.anomalies: list[Anomaly] = []
        self.is_over = False
        self.damages: dict[str, list[tuple[int, int]]] = {}
        self.operations = 0
        self.unfinished: dict[tuple[str, ...], Wrote] = {}
        """Writes whose outcome is not recorded yet, by their payloads."""
        self._payloads = 0

    def client(self, name: str) -> WireClient:
        return WireClient(world=self.world, network=self.network, name=name, server=BROKER)

    def live_topics(self) -> list[TrackedTopic]:
        return [topic for topic in self.topics if not topic.is_deleted]

    def any_partition(self, random: Random) -> TrackedPartition | None:
        topics = self.live_topics()
        if not topics:
            return None
        topic = random.choice(topics)
        return TrackedPartition(topic, random.randrange(topic.partitions))

    def new_payload(self, who: str) -> str:
        self._payloads += 1
        return f"{who}.{self._payloads}"

    def begin_write(self, topic_partition: TrackedPartition, payloads: tuple[str, ...]) -> None:
        now_us = self.world.now_us
        self.unfinished[payloads] = Wrote(
            at_us=now_us,
            invoked_us=now_us,
            partition=topic_partition.key,
            payloads=payloads,
            outcome=CallOutcome.UNKNOWN,
        )

    def record(self, operation: Operation) -> None:
        if isinstance(operation, Wrote):
            self.unfinished.pop(operation.payloads, None)
        self.history.append(operation)
        self.world.trace.emit("history", operation)
        self.operations += 1

    def close_history(self) -> None:
        """Whatever is still under way has an unknown fate."""
        for write in list(self.unfinished.values()):
            self.record(write)

    def report_anomaly(self, kind: AnomalyKind, partition: str, **evidence: object) -> None:
        """An anomaly that is found without the history."""
        self.anomalies.append(kind.found(at_us=self.world.now_us, partition=partition, **evidence))

    def was_excused(self, key: str, since_us: int) -> bool:
        """Whether records of this partition may have been lost since then."""
        return any(
            isinstance(operation, PowerLost | MediumDamaged)
            and operation.partition == key
            and operation.at_us >= since_us
            for operation in self.history
        )

    def later(self, random: Random, low_ms: int, high_ms: int, act: Callable[[], None]) -> None:
        self.world.after(random.randint(low_ms * 1_000, high_ms * 1_000), act)


class LossRecorder:
    """Records the excuses: what may be missing after the broker's run has ended so."""

    def __init__(self, context: StorageContext) -> None:
        self._context = context
        self._floors: dict[str, int] = {}
        self._dropped_pages = 0
        context.process.on_ending = self.on_ending

    def on_ending(self, how: str) -> None:
        self._note_floors()
        store = self._context.process.store
        if store.dropped_pages > self._dropped_pages:
            self._dropped_pages = store.dropped_pages
            self.record_losses("pages dropped by a failed sync")
        if how == "power lost":
            self.record_losses(how)
        if how != "stopped":
            self._repeat_damages()

    def record_losses(self, because: str) -> None:
        """Whatever the broker had not called safe may be gone, in every partition."""
        for topic in self._context.topics:
            for index in range(topic.partitions):
                key = topic.key(index)
                self._context.record(
                    PowerLost(
                        at_us=self._context.world.now_us,
                        partition=key,
                        floor_offset=self._floors.get(key, 0),
                        because=because,
                    )
                )

    def damage(self, topic_partition: TrackedPartition, start_offset: int, end_offset: int) -> None:
        self._context.damages.setdefault(topic_partition.key, []).append((start_offset, end_offset))
        self._record_damage(topic_partition.key, start_offset, end_offset, may_be_cut=False)

    def _repeat_damages(self) -> None:
        for key in sorted(self._context.damages):
            for start_offset, end_offset in self._context.damages[key]:
                self._record_damage(key, start_offset, end_offset, may_be_cut=True)

    def _record_damage(
        self, key: str, start_offset: int, end_offset: int, *, may_be_cut: bool
    ) -> None:
        self._context.record(
            MediumDamaged(
                at_us=self._context.world.now_us,
                partition=key,
                start_offset=start_offset,
                end_offset=end_offset,
                may_be_cut=may_be_cut,
            )
        )

    def _note_floors(self) -> None:
        """What was safe once stays safe, whatever a later start believes of it.

        Only where bits were flipped, a cut may lie below the floor and new records behind the cut.
        """
        for topic in self._context.live_topics():
            for index in range(topic.partitions):
                partition = find_partition(self._context.process, topic, index)
                if partition is not None:
                    key, floor = topic.key(index), partition.log.synced_end_offset
                    if key not in self._context.damages:
                        floor = max(floor, self._floors.get(key, 0))
                    self._floors[key] = floor


def find_partition(process: SimProcess, topic: TrackedTopic, index: int) -> Partition | None:
    """The broker's own object: for reading its claims, never for changing it."""
    node = process.running.node if process.running is not None else None
    return node.partition_by_id(topic.name.topic_id, index) if isinstance(node, Node) else None


DELETED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors that a client may get for a topic that is gone."""
GOOD = Conditions()
