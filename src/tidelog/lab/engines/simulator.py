"""The simulator as an engine: a cluster in virtual time, with every fault there is.

A story that takes minutes of the cluster's time takes a moment of ours, and the same seed plays it
the same way for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any

from tidelog.core.formats import file_names
from tidelog.core.wire.member_proof import MemberProof
from tidelog.core.wire.messages.api_60_describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidelog.core.wire.record_batch import batches
from tidelog.core.wire.schema import Message
from tidelog.core.wire.scram import Credentials
from tidelog.faults.kinds import SIMULATOR
from tidelog.judge.history import HighWatermarkSet
from tidelog.lab.engine import (
    OBSERVER,
    Happening,
    Host,
    Layout,
    MissingAnswer,
    RequestSeen,
    StoryTimeout,
)
from tidelog.lab.engines.simulated_clients import (
    SimulatedConsumer,
    SimulatedMember,
    SimulatedProducer,
)
from tidelog.worlds.simulator.client import CallFailed, Outcome, WireClient
from tidelog.worlds.simulator.cluster import CLUSTER_SECRET, SimNodeLayout, host_of
from tidelog.worlds.simulator.durable_store import DirectoryNode, DurableStore, FileNode
from tidelog.worlds.simulator.high_watermark_watch import HighWatermarkWatch, watch_cluster
from tidelog.worlds.simulator.network import Conditions, Network
from tidelog.worlds.simulator.process import WALL_START_MS
from tidelog.worlds.simulator.request_trace import TracedCluster
from tidelog.worlds.simulator.world import ConditionNotReached, SimWorld

READY_WITHIN_MS = 60_000
ASK_TIMEOUT_MS = 1_000


class SimulatedPending:
    """A request under way in the simulator."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self.answer: Message | MissingAnswer | None = None
        self.answered_us: int | None = None

    def settle(self, outcome: Outcome) -> None:
        self.answer = MissingAnswer(outcome.reason) if isinstance(outcome, CallFailed) else outcome
        self.answered_us = self._world.now_us


class SimulatorEngine:
    """One world, made for one story."""

    name = SIMULATOR

    def __init__(self, *, seed: int = 1) -> None:
        self.world = SimWorld(seed=seed)
        self.network = Network(self.world, conditions=Conditions())
        self.cluster: TracedCluster
        self._high_watermarks: HighWatermarkWatch

    # A cluster and its clients

    def begin(self, layout: Layout) -> None:
        self.cluster = TracedCluster(
            self.world,
            self.network,
            nodes=[SimNodeLayout(node.id, node.rack, node.roles) for node in layout.nodes],
            settings=layout.settings,
        )
        self._high_watermarks = watch_cluster(self.cluster)
        self.cluster.start_all()
        self._wait_until_ready(layout)

    def ask(
        self,
        node: int,
        request: Message,
        version: int,
        *,
        client: str,
        timeout_ms: int,
        as_member: bool = False,
    ) -> SimulatedPending:
        pending = SimulatedPending(self.world)
        asker = self._wire_client(node, client)

        def on_outcome(outcome: Outcome) -> None:
            pending.settle(outcome)
            self.world.after(0, asker.disconnect)

        def send(failed: CallFailed | None = None) -> None:
            if failed is not None:
                on_outcome(failed)
            else:
                asker.call(request, version, on_outcome, timeout_ms=timeout_ms)

        if as_member:
            random = self.world.random_for(f"{client}'s nonces")
            proof = MemberProof(Credentials.of(CLUSTER_SECRET), user=client, random=random)
            asker.introduce(proof, send)
        else:
            send()
        return pending

    def tell(self, node: int, request: Message, version: int, *, client: str) -> None:
        asker = self._wire_client(node, client)
        asker.call(request, version, lambda _: None, is_answered=False)

    def producer(self, name: str, config: Mapping[str, str]) -> SimulatedProducer:
        return SimulatedProducer(self.world, self.network, name, self._client_config(config))

    def consumer(self, name: str, config: Mapping[str, str]) -> SimulatedConsumer:
        return SimulatedConsumer(self.world, self.network, name, self._client_config(config))

    def member(
        self, name: str, config: Mapping[str, str], topics: Sequence[str]
    ) -> SimulatedMember:
        given = self._client_config(config)
        return SimulatedMember(self.world, self.network, name, given, topics)

    # Time

    @property
    def now_us(self) -> int:
        return self.world.now_us

    @property
    def pace(self) -> float:
        return 1.0

    def stretched(self, at_least_ms: float, at_most_ms: float) -> tuple[float, float]:
        return at_least_ms, at_most_ms

    def patience_ms(self, within_ms: float) -> float:
        return within_ms

    def wall_ms(self) -> int:
        return WALL_START_MS + self.world.now_ms

    def pass_ms(self, duration_ms: int) -> None:
        self.world.run_for(duration_ms)

    def wait(self, condition: Callable[[], bool], *, within_ms: int) -> bool:
        try:
            self.world.run_until(condition, within_ms=within_ms)
        except ConditionNotReached:
            return False
        return True

    # Processes

    def kill(self, node: int) -> None:
        self.cluster.kill(node)

    def stop(self, node: int) -> None:
        self.cluster.stop(node)

    def start(self, node: int) -> None:
        self.cluster.start(node)

    def pause(self, node: int) -> None:
        self.cluster.pause(node)

    def resume(self, node: int) -> None:
        self.cluster.wake(node)

    def is_running(self, node: int) -> bool:
        return self.cluster.process(node).is_up

    def lose_power(self, nodes: Sequence[int], *, keeps: str) -> None:
        for node in nodes:
            if keeps != "chance":
                _load_dice(self.cluster.process(node).store, keeps)
            self.cluster.lose_power(node)

    def wipe(self, node: int) -> None:
        self.cluster.wipe(node)

    def fill_disk(self, node: int, *, bytes_left: int) -> None:
        self.cluster.process(node).store.fill_up(bytes_left=bytes_left)

    def free_disk(self, node: int) -> None:
        self.cluster.process(node).store.heal()

    def delete_file(self, node: int, topic: str, index: int, *, suffix: str) -> None:
        assert not self.is_running(node)
        store = self.cluster.process(node).store
        for path, _ in self._partition_files(node, topic, index):
            if path.endswith(suffix):
                directory, _, name = path.rpartition("/")
                found = store.find(directory)
                assert isinstance(found, DirectoryNode)
                del found.names[name]

    def flip_bit(self, node: int, topic: str, index: int, *, offset: int) -> None:
        for path, file in self._partition_files(node, topic, index):
            if path.endswith(file_names.LOG):
                for position, header in batches(bytes(file.data)):
                    if header.base_offset <= offset < header.end_offset:
                        middle = position + header.size_bytes - 2
                        self.cluster.process(node).store.flip_bit(path, position=middle, bit=3)
                        return
        raise AssertionError(f"offset {offset} is not on the disk of {node}")

    def tear(self, node: int, topic: str, index: int, *, bytes_off: int) -> None:
        assert not self.is_running(node)
        logs = [
            file
            for path, file in self._partition_files(node, topic, index)
            if path.endswith(file_names.LOG) and file.data
        ]
        logs[-1].truncate(len(logs[-1].data) - bytes_off)

    def move_clock(self, node: int, *, by_ms: int) -> None:
        self.cluster.process(node).clock_offset_ms += by_ms

    # The network

    def cut(self, *ways: tuple[Host, Host]) -> None:
        for source, target in ways:
            self.network.cut(_host(source), _host(target))

    def heal(self, *ways: tuple[Host, Host]) -> None:
        for source, target in ways:
            self.network.heal(_host(source), _host(target))

    def delay(self, source: Host, target: Host, *, delay_ms: int) -> None:
        delay_us = delay_ms * 1_000
        self.network.slow_down(
            _host(source), _host(target), delay_us_min=delay_us, delay_us_max=delay_us + 1_000
        )

    def refuse_connections(self, node: int) -> None:
        self.network.refuse(host_of(node))

    def accept_connections(self, node: int) -> None:
        self.network.accept(host_of(node))

    def reset_connections(self, node: int) -> None:
        self.network.reset_connections(host_of(node))

    def hold(self, purpose: str, *ways: tuple[int, int]) -> None:
        for source, target in ways:
            self.cluster.hold(source, target, purpose)

    def release(self, purpose: str, *ways: tuple[int, int]) -> None:
        for source, target in ways:
            self.cluster.release(source, target, purpose)

    # Evidence

    def log_files(self, node: int, topic: str, index: int) -> dict[str, bytes]:
        return {
            path.rpartition("/")[2]: bytes(file.data)
            for path, file in self._partition_files(node, topic, index)
        }

    def requests(
        self, node: int, api_key: int, *, since_us: int, peer: Host | None
    ) -> list[RequestSeen]:
        return [
            RequestSeen(
                at_us=each.at_us,
                peer=_who(each.peer),
                api_key=each.api_key,
                version=each.version,
                request=each.request,
                answer=each.answer,
                answered_us=each.answered_us,
            )
            for each in self.cluster.traces[node].exchanges
            if each.api_key == api_key
            and each.at_us >= since_us
            and peer in (None, _who(each.peer))
        ]

    def happenings(self, node: int, kind: str) -> list[Happening]:
        source = host_of(node)
        return [
            Happening(entry.time_us, kind, _fields(entry.event))
            for entry in self.world.trace.entries
            if entry.source == source and type(entry.event).__name__ == kind
        ]

    def high_watermarks(self) -> Sequence[HighWatermarkSet]:
        return self._high_watermarks.seen

    # Inside

    def _wire_client(self, node: int, client: str) -> WireClient:
        """Every request has a connection of its own: a parked one holds up nobody."""
        return WireClient(world=self.world, network=self.network, name=client, server=host_of(node))

    def _client_config(self, config: Mapping[str, str]) -> dict[str, str]:
        return {"bootstrap.servers": self.cluster.bootstrap_servers, **config}

    def _wait_until_ready(self, layout: Layout) -> None:
        """Until every broker tells of every broker."""
        wanted = sorted(layout.broker_ids)
        deadline_us = self.world.now_us + READY_WITHIN_MS * 1_000
        for node in wanted:
            while self._brokers_known_to(node) != wanted:
                if self.world.now_us > deadline_us:
                    raise StoryTimeout(f"broker {node} does not see {wanted}")
                self.pass_ms(5)

    def _brokers_known_to(self, node: int) -> list[int]:
        pending = self.ask(
            node, DescribeClusterRequest(), 1, client=OBSERVER, timeout_ms=ASK_TIMEOUT_MS
        )
        self.wait(lambda: pending.answer is not None, within_ms=2 * ASK_TIMEOUT_MS)
        answer = pending.answer
        if not isinstance(answer, DescribeClusterResponse):
            return []
        return sorted(broker.broker_id for broker in answer.brokers)

    def _partition_files(self, node: int, topic: str, index: int) -> list[tuple[str, FileNode]]:
        directory = f"/{topic}-{index}/"
        files = self.cluster.process(node).store.files()
        return [(path, file) for path, file in files if directory in f"/{path}"]


class _LoadedDice(Random):
    """Chance that always says the same: of what was not synced all pages are old, or all new."""

    def __init__(self, keeps: str) -> None:
        super().__init__(0)
        self._is_new = {"nothing": False, "everything": True}[keeps]

    def random(self) -> float:
        return 0.4 if self._is_new else 0.1  # names happened; pages are new, or old

    def choice(self, options: Sequence[int]) -> int:  # type: ignore[override]
        return options[1] if self._is_new else options[0]


def _load_dice(store: DurableStore, keeps: str) -> None:
    store.use_chance(_LoadedDice(keeps))


def _host(host: Host) -> str:
    return host_of(host) if isinstance(host, int) else host


def _who(host: str) -> Host:
    prefix, _, number = host.rpartition("-")
    return int(number) if prefix == "node" and number.isdecimal() else host


def _fields(event: object) -> dict[str, Any]:
    assert is_dataclass(event)
    return {field.name: getattr(event, field.name) for field in fields(event)}
