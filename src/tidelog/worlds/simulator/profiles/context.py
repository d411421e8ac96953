"""What a run shares: the cluster, the clients' history, and the observers of both."""

from __future__ import annotations

from collections.abc import Callable
from heapq import merge
from random import Random

from tidelog.core.model.ids import TopicPartition
from tidelog.judge.anomalies import Anomaly, AnomalyKind
from tidelog.judge.history import CallOutcome, Operation, Wrote
from tidelog.worlds.simulator.cluster import SimCluster, host_of
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.durable_store import DurableStore
from tidelog.worlds.simulator.network import Conditions, Network
from tidelog.worlds.simulator.observation import Observation
from tidelog.worlds.simulator.profiles.plan import RunPlan
from tidelog.worlds.simulator.world import SimWorld

CHECK_EVERY_TICKS = 1
USUAL = Conditions(chop_chance=0.03)
"""A network in which nothing is wrong; frames come in pieces now and then."""


class RunContext:
    """Everything that actors, faults and judges share."""

    def __init__(self, plan: RunPlan, *, disk_type: type[SimDisk]) -> None:
        self.plan = plan
        self.world = SimWorld(seed=plan.seed)
        self.network = Network(self.world, conditions=USUAL)
        self.cluster = SimCluster(
            self.world,
            self.network,
            nodes=plan.nodes,
            settings=plan.settings,
            disk_type=disk_type,
            sync_us_max=plan.sync_us_max,
            check_every=CHECK_EVERY_TICKS,
        )
        for process in self.cluster.processes.values():
            random = self.world.random_for(f"{process.name}/platter")
            process.store = DurableStore(random, page_bytes=plan.page_bytes)
        self.observation = self._observe()
        self.checker = self.observation.checker
        self.history: list[Operation] = []
        self.anomalies: list[Anomaly] = []
        self.topic_partitions: list[TopicPartition] = []
        """Partitions that clients may use: created, and not about to be deleted."""
        self._names: dict[TopicPartition, str] = {}
        self.deleted: set[str] = set()
        """Topics whose deletion was requested."""
        self.is_over = False
        """No actor begins anything new."""
        self.is_healed = False
        """The faults are over."""
        self.operations = 0
        self._open: dict[str, Wrote] = {}
        self._payloads = 0

    def _observe(self) -> Observation:
        return Observation(self.cluster)

    # Partitions.

    def add_topic(self, name: str, topic_id: bytes, partitions: int) -> None:
        self.deleted.discard(name)
        for index in range(partitions):
            self.add_partition(TopicPartition(name, index), topic_id)

    def add_partition(self, topic_partition: TopicPartition, topic_id: bytes) -> None:
        topic, index = topic_partition.topic, topic_partition.index
        self._names[topic_partition] = self.observation.metadata.name(topic, topic_id, index)
        self.topic_partitions.append(topic_partition)

    def name_of(self, topic_partition: TopicPartition) -> str:
        """As judges know it: a topic that is created again is another one."""
        return self._names[topic_partition]

    def knows(self, name: str) -> bool:
        """Whether the history has all that clients did with this partition."""
        return name in self._names.values()

    def has_open_writes(self, topic: str) -> bool:
        """Whether a producer may still send a record to a topic of this name."""
        written = {write.partition for write in self._open.values()}
        return any(each.topic == topic and self._names[each] in written for each in self._names)

    def forget_topic(self, name: str) -> None:
        self.deleted.add(name)
        self.topic_partitions = [
            topic_partition
            for topic_partition in self.topic_partitions
            if topic_partition.topic != name
        ]

    def leader_of(self, partition: str) -> int | None:
        """As the newest metadata says."""
        known = self.checker.model.partitions.get(partition)
        return known.leader if known is not None else None

    def log_start(self, partition: str) -> int:
        """Where a reader that lost its position may begin again."""
        leader = self.leader_of(partition)
        return 0 if leader is None else self.checker.model.log_copy(partition, leader).start_offset

    def log_end(self, partition: str) -> int | None:
        """Where a reader that follows a partition arrives; None: nobody leads it."""
        leader = self.leader_of(partition)
        return None if leader is None else self.checker.model.log_copy(partition, leader).end_offset

    def active_controller(self) -> int | None:
        """The quorum leader of the newest epoch, of those that run."""
        leaders = [
            (node.quorum.quorum_epoch, node_id)
            for node_id, node in self.cluster.running.items()
            if node.quorum.is_leader
        ]
        return max(leaders)[1] if leaders else None

    def node_of(self, host: str) -> int:
        return next(node_id for node_id in self.cluster.node_ids if host_of(node_id) == host)

    # The history.

    def new_payload(self, who: str) -> str:
        self._payloads += 1
        return f"{who}.{self._payloads}"

    def begin_write(self, write: Wrote) -> None:
        """Until its outcome is recorded, it is unknown."""
        assert write.outcome is CallOutcome.UNKNOWN
        self._open[write.payloads[0]] = write

    def begun_write(self, payload: str) -> Wrote:
        return self._open[payload]

    def record(self, operation: Operation, *, count: int = 1) -> None:
        """Write an operation down; `count` says how many answers to clients are in it."""
        if isinstance(operation, Wrote):
            self._open.pop(operation.payloads[0], None)
        self.history.append(operation)
        self.world.trace.emit("history", operation)
        self.operations += count

    def judged_history(self) -> list[Operation]:
        """With what leaders had committed: what they answer in one tick is committed in it."""
        seen = self.observation.high_watermarks.seen
        return list(merge(seen, self.history, key=lambda operation: operation.at_us))

    def close_history(self) -> None:
        for write in list(self._open.values()):
            self.record(write)

    def report_anomaly(self, kind: AnomalyKind, partition: str, **evidence: object) -> None:
        """An anomaly that is found without the history."""
        self.anomalies.append(kind.found(at_us=self.world.now_us, partition=partition, **evidence))

    def later(self, random: Random, low_ms: int, high_ms: int, act: Callable[[], None]) -> None:
        self.world.after(random.randint(low_ms * 1_000, high_ms * 1_000), act)
