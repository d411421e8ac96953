"""`./dev bench startup`: from the command to the first write that three brokers have promised.

A client waits outside from the beginning: it knocks until all brokers are known, makes a topic with
three copies and `min.insync.replicas=2`, and writes one record with `acks=all`. What happened in
between stands in the brokers' logs. Twice: with no data, and again after `kill -9` of everything,
when the topic is there already and only has to be led.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.brokers import KAFKA, SETTINGS, TIDELOG
from bench.clusters import BROKERS, MIN_INSYNC, NotInTime, directory_for_bench
from bench.log_events import LogEvent, log_events
from bench.reports import ClusterBench, bytecode_kept
from bench.rows import Figures, Metric
from bench.up import up_command
from tests.kafka import KafkaCluster
from tests.process.wire import WireClient, batch_of
from tidelog.cluster.ports import free_ports
from tidelog.cluster.processes import read_pid_file

TOPIC = "first"
PAUSE_S = 0.005
PATIENCE_S = 300.0
BAR_S, BAR = 1.0, 0.1
COLD, AGAIN = "cold start", "start after kill -9 of all"
FIRST_ACK = "first acknowledged write"
Steps = dict[str, float]
"""Seconds since the command, in order."""


class StartUp(ClusterBench):
    """One line for each step of a start."""

    name = "startup"
    idea = "from the command to the first acknowledged acks=all write, step by step"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--times", type=int, default=5, metavar="N")

    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        with bytecode_kept():
            if TIDELOG in brokers:
                list(_tidelog_starts())  # compiles, as an installer does
            for number in range(1, options.times + 1):
                for name in brokers:
                    starts = _kafka_starts() if name == KAFKA else _tidelog_starts()
                    for what, steps in starts:
                        self.tell(f"{number}/{options.times} {name}, {what}: {steps_text(steps)}")
                        note_steps(figures, name, what, steps)


def steps_text(steps: Steps) -> str:
    return ", ".join(f"{step} {at_s:.3f} s" for step, at_s in steps.items())


def note_steps(figures: Figures, broker: str, what: str, steps: Steps) -> None:
    """A step in the middle of one make need not be one of another's."""
    for step, at_s in steps.items():
        is_last = step == FIRST_ACK
        metric = Metric(
            title=f"{what}: {step}",
            unit="s",
            more_is_better=False,
            floor=BAR_S if is_last else None,
            bar=BAR if is_last else None,
        )
        figures.add(metric, broker, at_s)


def _tidelog_starts() -> Iterator[tuple[str, Steps]]:
    """Twice on one directory; the second time over what the killed ones left."""
    with directory_for_bench() as directory:
        data, port = directory / "data", _first_port()
        addresses = [f"127.0.0.1:{port + index}" for index in range(BROKERS)]
        for what in (COLD, AGAIN):
            started_s = time.time()
            with _command(up_command(data=data, port=port), directory / "up.log") as launcher:
                steps = _first_write(addresses, started_s, launcher.poll, is_new=what == COLD)
                inside = _steps_inside(data, started_s)
                yield what, dict(sorted({**inside, **steps}.items(), key=lambda each: each[1]))
                _kill_all(data, launcher)


def _first_port() -> int:
    """`up` takes a first port and the ones after it."""
    ports = free_ports(BROKERS)
    while ports != list(range(ports[0], ports[0] + BROKERS)):
        ports = free_ports(BROKERS)
    return ports[0]


def _kafka_starts() -> Iterator[tuple[str, Steps]]:
    """Formatting the storage is a step of its own and is not timed."""
    kafka = KafkaCluster(brokers=BROKERS, settings=SETTINGS)
    try:
        for node in kafka.nodes:
            kafka._format(node)
        for what in (COLD, AGAIN):
            started_s = time.time()
            for node in kafka.nodes:
                node.start()
            addresses = [node.address for node in kafka.nodes]
            yield what, _first_write(addresses, started_s, lambda: None, is_new=what == COLD)
            for node in kafka.nodes:
                node.kill()
    finally:
        kafka._end()


@contextmanager
def _command(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as file:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def _kill_all(data: Path, launcher: subprocess.Popen[bytes]) -> None:
    """The brokers first: an end of the launcher would be a gentle end of theirs."""
    found = [read_pid_file(path) for path in sorted(data.glob("node-*/pid"))]
    brokers = [each for each in found if each is not None]
    for broker in brokers:
        broker.signal(signal.SIGKILL)
    launcher.kill()
    launcher.wait()
    for broker in brokers:
        if not broker.ended_within(PATIENCE_S):  # it must not be taken for one that runs
            raise NotInTime(f"process {broker.pid} does not end although it was killed")


# The client outside


def _first_write(
    addresses: list[str], started_s: float, ended: Callable[[], int | None], *, is_new: bool
) -> Steps:
    """When all brokers were known, when the topic was led, and when a write was promised."""
    steps: Steps = {}
    deadline_s = started_s + PATIENCE_S

    def until(condition: Callable[[], bool], what: str) -> None:
        while not condition():
            if ended() is not None or time.time() > deadline_s:
                raise NotInTime(f"no {what}: the command ended with {ended()}")
            time.sleep(PAUSE_S)
        steps[what] = time.time() - started_s

    until(lambda: len(_brokers(addresses[0])) == BROKERS, "all brokers known to clients")
    if is_new:
        until(lambda: _is_created(addresses[0]), "topic created")
    until(lambda: _is_written(addresses[0]), FIRST_ACK)
    return steps


def _brokers(address: str) -> dict[int, str]:
    with suppress(OSError), WireClient(address) as client:
        answer = client.ask("Metadata", 9, topics=[])
        return {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
    return {}


def _is_created(address: str) -> bool:
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": BROKERS}
    with suppress(OSError), WireClient(address) as client:
        wanted = {**topic, "configs": [MIN_INSYNC]}
        answer = client.ask("CreateTopics", 7, topics=[wanted], timeout_ms=30_000)
        return bool(answer.topics[0].error_code == 0)
    return False


def _is_written(address: str) -> bool:
    with suppress(OSError), WireClient(address) as client:
        reply = client.ask("Metadata", 9, topics=[{"name": TOPIC}])
        leaders = {each.node_id: f"{each.host}:{each.port}" for each in reply.brokers}
        partitions = reply.topics[0].partitions
        if not partitions or partitions[0].leader_id not in leaders:
            return False
        batch = batch_of(b"v", timestamp_ms=int(time.time() * 1000))
        with WireClient(leaders[partitions[0].leader_id]) as leader:
            return bool(leader.produce(TOPIC, batch).error_code == 0)
    return False


# What the brokers said


def _steps_inside(data: Path, started_s: float) -> Steps:
    """The last broker's moment of each step, or the first of whatever happens once."""
    names = ("BrokerReady", "ControllerActivated", "RegisteredHere", "BrokerUnfenced")
    found: list[LogEvent] = []
    for path in sorted(data.glob("node-*/broker.log")):
        lines = path.read_text(errors="replace").splitlines()
        found += [event for event in log_events(lines, *names) if event.at_s >= started_s]
    moments = {name: [event.at_s for event in found if event.name == name] for name in names}
    moments["pid"] = [path.stat().st_mtime for path in data.glob("node-*/pid")]
    steps = {
        "processes started": max(moments["pid"], default=None),
        "all brokers listening": max(moments["BrokerReady"], default=None),
        "controller active": min(moments["ControllerActivated"], default=None),
        "all brokers registered": max(moments["RegisteredHere"], default=None),
        "all brokers unfenced": max(moments["BrokerUnfenced"], default=None),
    }
    return {step: at_s - started_s for step, at_s in steps.items() if at_s is not None}
