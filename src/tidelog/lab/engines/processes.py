"""Real broker processes as an engine: a local cluster, its fault gates, and a clock that hurries.

The same story as in the simulator, on sockets, files and signals. What only a simulated machine can
do (lose its power, fill its disk, set its clock, refuse connections while it lives) is not
understood here. `close` ends everything; `with` does so by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from tidelog.cluster.cluster import PROGRAM, Cluster
from tidelog.core.wire.schema import Message
from tidelog.faults.kinds import PROCESSES
from tidelog.judge.history import HighWatermarkSet
from tidelog.lab.engine import CannotHere, Happening, Host, Layout, RequestSeen
from tidelog.lab.engines.partition_files import PartitionFiles
from tidelog.lab.engines.process_clients import (
    ThreadedConsumer,
    ThreadedMember,
    ThreadedProducer,
)
from tidelog.lab.engines.process_logs import BrokerLog, RequestJournal
from tidelog.lab.engines.process_requests import ProcessPending, ProcessRequests
from tidelog.lab.engines.story_clock import StoryClock
from tidelog.lab.engines.story_faults import StoryFaults, Way

PACE = 3.0
"""A session of 6 s takes 2 s, which a busy machine of two cores keeps."""
READY_WITHIN_S = 120.0
ASK_LONGER_BY_S = 20.0
LOOK_AGAIN_S = 0.002
SETTINGS = {"tidelog.log.format": "json", "tidelog.log.level": "debug"}
"""What the engine itself wants of every node."""


class ProcessEngine:
    """One cluster of processes, made for one story."""

    name = PROCESSES

    def __init__(self, *, pace: float = PACE, data: Path | None = None) -> None:
        """With `data` everything is kept there for those who want to look at it."""
        self._clock = StoryClock(pace)
        self._data = data
        self._changed = threading.Condition()
        self._requests = ProcessRequests(self._clock, self._on_change)
        self._clients: list[ThreadedProducer | ThreadedConsumer | ThreadedMember] = []
        self._cluster: Cluster | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Clients first, so that nobody mourns the brokers."""
        for client in self._clients:
            client.close()
        self._requests.close()
        if self._cluster is not None:
            self._cluster.close()

    # A cluster and its clients

    def begin(self, layout: Layout) -> None:
        cluster = self._cluster = Cluster(
            nodes=layout.nodes,
            settings={**self._clock.settings(layout.settings), **SETTINGS},
            data=self._data,
        )
        cluster.launch(kind=PROGRAM)
        self._faults = StoryFaults(cluster.injector)
        self._addresses = {node: _address(each.address) for node, each in cluster.nodes.items()}
        self._files = {
            node: PartitionFiles([each.data_path]) for node, each in cluster.nodes.items()
        }
        self._logs = {
            node: BrokerLog(each.log_path, story_us=self._clock.at_us)
            for node, each in cluster.nodes.items()
        }
        self._journals = {
            node: RequestJournal(each.log_path.with_name("requests"), story_us=self._clock.at_us)
            for node, each in cluster.nodes.items()
        }
        for node in layout.node_ids:  # before they have much to say to each other
            self._record(node)
        cluster.wait_ready(timeout_s=READY_WITHIN_S)

    def ask(
        self,
        node: int,
        request: Message,
        version: int,
        *,
        client: str,
        timeout_ms: int,
        as_member: bool = False,
    ) -> ProcessPending:
        return self._requests.ask(
            self._addresses[node],
            request,
            version,
            client=client,
            timeout_s=self._clock.real_s(timeout_ms) + ASK_LONGER_BY_S,
            secret=self._secret() if as_member else None,
        )

    def _secret(self) -> str:
        return self.cluster.launcher.directory.read_secret()

    def tell(self, node: int, request: Message, version: int, *, client: str) -> None:
        self._requests.tell(
            self._addresses[node], request, version, client=client, timeout_s=ASK_LONGER_BY_S
        )

    def producer(self, name: str, config: Mapping[str, str]) -> ThreadedProducer:
        made = ThreadedProducer(name, self._config(name, config), self._clock, self._on_change)
        self._clients.append(made)
        return made

    def consumer(self, name: str, config: Mapping[str, str]) -> ThreadedConsumer:
        made = ThreadedConsumer(name, self._config(name, config), self._clock)
        self._clients.append(made)
        return made

    def member(self, name: str, config: Mapping[str, str], topics: Sequence[str]) -> ThreadedMember:
        made = ThreadedMember(name, self._config(name, config), topics, self._clock)
        self._clients.append(made)
        return made

    # Time

    @property
    def now_us(self) -> int:
        return self._clock.now_us

    @property
    def pace(self) -> float:
        return self._clock.pace

    def stretched(self, at_least_ms: float, at_most_ms: float) -> tuple[float, float]:
        return self._clock.stretched(at_least_ms, at_most_ms)

    def patience_ms(self, within_ms: float) -> float:
        return self._clock.patience_ms(within_ms)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def pass_ms(self, duration_ms: int) -> None:
        time.sleep(max(self._clock.real_s(duration_ms), LOOK_AGAIN_S))

    def wait(self, condition: Callable[[], bool], *, within_ms: int) -> bool:
        """Answers wake it; everything else (a line in a log) is looked for every moment."""
        deadline_s = time.monotonic() + self._clock.real_s(self.patience_ms(within_ms))
        while not condition():
            if time.monotonic() > deadline_s:
                return False
            with self._changed:
                self._changed.wait(LOOK_AGAIN_S)
        return True

    # Processes

    def kill(self, node: int) -> None:
        self.cluster.kill(node)

    def stop(self, node: int) -> None:
        self.cluster.stop(node)

    def start(self, node: int) -> None:
        self.cluster.restart(node, wait=False)
        self._record(node)

    def pause(self, node: int) -> None:
        self.cluster.pause(node)

    def resume(self, node: int) -> None:
        self.cluster.resume(node)

    def is_running(self, node: int) -> bool:
        return self.cluster.is_running(node)

    def wipe(self, node: int) -> None:
        self._must_be_dead(node)
        self._files[node].wipe()

    def delete_file(self, node: int, topic: str, index: int, *, suffix: str) -> None:
        self._must_be_dead(node)
        self._files[node].delete(topic, index, suffix=suffix)

    def flip_bit(self, node: int, topic: str, index: int, *, offset: int) -> None:
        self._files[node].flip_bit(topic, index, offset=offset)

    def tear(self, node: int, topic: str, index: int, *, bytes_off: int) -> None:
        self._must_be_dead(node)
        self._files[node].tear(topic, index, bytes_off=bytes_off)

    # The network

    def cut(self, *ways: tuple[Host, Host]) -> None:
        self._faults.begin("cut", _named("cut", ways))

    def heal(self, *ways: tuple[Host, Host]) -> None:
        self._faults.end(_named("cut", ways))

    def delay(self, source: Host, target: Host, *, delay_ms: int) -> None:
        way = ("delay", source, target)
        self._faults.end([way])
        if delay_ms:
            self._faults.begin("delay", [way], delay_ms=self._clock.real_ms(delay_ms))

    def hold(self, purpose: str, *ways: tuple[int, int]) -> None:
        self._faults.begin("hold", _named(purpose, ways), purpose=purpose)

    def release(self, purpose: str, *ways: tuple[int, int]) -> None:
        self._faults.end(_named(purpose, ways))

    # Evidence

    def log_files(self, node: int, topic: str, index: int) -> dict[str, bytes]:
        return self._files[node].read(topic, index)

    def requests(
        self, node: int, api_key: int, *, since_us: int, peer: Host | None
    ) -> list[RequestSeen]:
        return self._journals[node].of(api_key, since_us=since_us, peer=peer)

    def happenings(self, node: int, kind: str) -> list[Happening]:
        return self._logs[node].of(kind)

    def high_watermarks(self) -> Sequence[HighWatermarkSet]:
        return ()

    # What only a simulated machine can do

    def lose_power(self, nodes: Sequence[int], *, keeps: str) -> NoReturn:
        raise CannotHere("lose_power")

    def fill_disk(self, node: int, *, bytes_left: int) -> NoReturn:
        raise CannotHere("fill_disk")

    def free_disk(self, node: int) -> NoReturn:
        raise CannotHere("free_disk")

    def move_clock(self, node: int, *, by_ms: int) -> NoReturn:
        raise CannotHere("move_clock")

    def refuse_connections(self, node: int) -> NoReturn:
        raise CannotHere("refuse_connections")

    def accept_connections(self, node: int) -> NoReturn:
        raise CannotHere("accept_connections")

    def reset_connections(self, node: int) -> NoReturn:
        raise CannotHere("reset_connections")

    # Inside

    @property
    def cluster(self) -> Cluster:
        assert self._cluster is not None, "the story has not begun"
        return self._cluster

    def _config(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        return {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "client.id": name,
            **self._clock.settings(config),
        }

    def _on_change(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _record(self, node: int) -> None:
        """What the node is asked is written down from now on."""
        path = str(self._journals[node].path)
        self.cluster.injector.gates.command(node, {"do": "record", "path": path})

    def _must_be_dead(self, node: int) -> None:
        assert not self.is_running(node), f"node {node} runs"


def _named(kind: str, ways: Iterable[tuple[Host, Host]]) -> list[Way]:
    return [(kind, source, target) for source, target in ways]


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)
