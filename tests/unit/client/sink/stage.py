"""A stage for sinks: a fake cluster with coordinators, drivers and tasks in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from tests.unit.client.fake_cluster import FakeCluster
from tests.unit.client.sink.fake_coordinator import FakeCoordinator
from tests.unit.client.virtual import Host
from tidelog.client.config import ClientConfig, client_config
from tidelog.client.sink.call_runner import CallRunner
from tidelog.client.sink.conversation import Conversation, Steps
from tidelog.client.sink.driver import SinkDriverMachine
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.options import SinkOptions
from tidelog.client.sink.task import SinkTaskMachine
from tidelog.client.sink.values import AlreadyPublished, BatchTicket, Receipt
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.wire.records import NewRecord, build
from tidelog.core.wire.schema import Message

T = TypeVar("T")
TOPIC = "out"
P0, P1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
QUERY = "query-1"
TIMEOUT_MS = 60_000
Rows = Mapping[int, Iterable[str]]
"""Values by partition of the topic."""
ROWS: Rows = {0: ["a", "b", "c"], 1: ["d"]}


class Batch(NamedTuple):
    """An encoded batch."""

    data: bytes
    records: int
    base_sequence: int


def encoded(
    identity: ProducerIdAndEpoch, values: Iterable[str], *, base_sequence: int = 0
) -> Batch:
    records = [NewRecord(value.encode()) for value in values]
    data = build(
        records,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        base_sequence=base_sequence,
        transactional=True,
    )
    return Batch(bytes(data), len(records), base_sequence)


class StoppableHost(Host):
    """A host that can be stopped and waked (SIGSTOP, SIGCONT): what happens meanwhile waits."""

    def __init__(self, cluster: Any, config: ClientConfig) -> None:
        super().__init__(cluster, config)
        self._waiting: list[Callable[[], None]] | None = None

    def freeze(self) -> None:
        self._waiting = []

    def thaw(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for act in waiting:
            act()

    def _tick(self) -> None:
        self._later(super()._tick)

    def opened(self, link: int) -> None:
        self._later(lambda: Host.opened(self, link))

    def closed(self, link: int, reason: str) -> None:
        self._later(lambda: Host.closed(self, link, reason))

    def answered(self, link: int, frame: bytes) -> None:
        self._later(lambda: Host.answered(self, link, frame))

    def _later(self, act: Callable[[], None]) -> None:
        if self._waiting is None:
            act()
        else:
            self._waiting.append(act)


class Run:
    """One run of a driver, with a host of its own."""

    def __init__(
        self, stage: Stage, *, name: str = "run-1", query_id: str = QUERY, **more: Any
    ) -> None:
        given = {"sink_id": "s", "topics": (TOPIC,), **more}
        self.stage = stage
        config = client_config({"bootstrap.servers": stage.bootstrap})
        self.host = StoppableHost(stage.cluster, config)
        self.options = SinkOptions(bootstrap=stage.bootstrap, **given)
        self.runner = CallRunner(self.host.client, self.options.group)
        self.driver = SinkDriverMachine(
            self.options, query_id=query_id, run_id=name, trace=self.host.trace
        )

    def start(self, steps: Steps[T]) -> list[T | SinkError]:
        """Begin a conversation; its end will be in the list."""
        ends: list[T | SinkError] = []
        self.host.do(
            lambda now_ms: Conversation(
                self.runner, steps, ends.append, deadline_ms=now_ms + TIMEOUT_MS, now_ms=now_ms
            )
        )
        return ends

    def lead(self, steps: Steps[T]) -> T:
        ends = self.start(steps)
        self.stage.cluster.clock.run_until(lambda: ends)
        (end,) = ends
        if isinstance(end, SinkError):
            raise end
        return end

    def take_over(self) -> Run:
        self.lead(self.driver.take_over())
        return self

    def begin(self, batch_id: int, *, source: str | None = None) -> BatchTicket | AlreadyPublished:
        return self.lead(self.driver.begin(batch_id, source or f"source-{batch_id}"))

    def ticket(self, batch_id: int) -> BatchTicket:
        """A batch that was not published before."""
        ticket = self.begin(batch_id)
        assert isinstance(ticket, BatchTicket)
        return ticket

    def write(self, ticket: BatchTicket, rows: Rows) -> list[Receipt]:
        return self.stage.write(ticket, rows)

    def commit(self, receipts: Iterable[Receipt]) -> None:
        self.lead(self.driver.commit(receipts, now_ms=self.host.now_ms))

    def publish(self, batch_id: int, rows: Rows) -> bool:
        """The whole of a batch; False: it was published before."""
        ticket = self.begin(batch_id)
        if isinstance(ticket, AlreadyPublished):
            return False
        self.commit(self.write(ticket, rows))
        return True

    def stop(self) -> None:
        """kill -9: nothing of it happens any more."""
        self.host.client.close()


class Stage:
    """The cluster, its coordinators, and what readers see."""

    def __init__(self, *, partitions: int = 2) -> None:
        self.cluster = FakeCluster()
        self.cluster.create(TOPIC, partitions=partitions, leader=3)
        self.coordinator = FakeCoordinator(self.cluster)
        self.bootstrap = self.cluster.bootstrap

    def run(self, **more: Any) -> Run:
        return Run(self, **more)

    def task(self, ticket: BatchTicket) -> tuple[Host, SinkTaskMachine]:
        host = Host(self.cluster, client_config({"bootstrap.servers": self.bootstrap}))
        return host, SinkTaskMachine(host.client, ticket)

    def write(
        self, ticket: BatchTicket, rows: Rows, *, sizes: Iterable[int] = (2, 3)
    ) -> list[Receipt]:
        """One task that writes all of it, in batches of these sizes and the rest."""
        host, task = self.task(ticket)
        for index, values in rows.items():
            self.append(host, task, ticket, index, list(values), sizes=sizes)
        self.cluster.clock.run_until(lambda: task.is_settled)
        task.check()
        host.client.close()
        return task.receipts()

    def append(
        self,
        host: Host,
        task: SinkTaskMachine,
        ticket: BatchTicket,
        index: int,
        values: list[str],
        *,
        sizes: Iterable[int],
    ) -> None:
        place = TopicPartition(TOPIC, index)
        for part in _parts(values, sizes):
            base_sequence = task.next_sequence(place)
            batch = encoded(ticket.identity, part, base_sequence=base_sequence)
            self._give(host, task, place, batch)

    def _give(self, host: Host, task: SinkTaskMachine, place: TopicPartition, batch: Batch) -> None:
        host.do(lambda now_ms: task.append(place, batch, now_ms=now_ms))

    def committed(self) -> list[str]:
        """All values that a reader of committed data gets, sorted."""
        partitions = [str(each) for each in self.cluster.partitions]
        return sorted(value for each in partitions for value in self.coordinator.committed(each))

    def asked(self, api: type[Message]) -> int:
        return sum(isinstance(each.request, api) for each in self.cluster.seen)


def _parts(values: list[str], sizes: Iterable[int]) -> Iterable[list[str]]:
    for size in sizes:
        if values:
            yield values[:size]
            values = values[size:]
    if values:
        yield values
