"""What the verbs of `tidelog fault` do: one call of the cluster's object, and words about it."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tidelog.cli.cluster_ending import data_option
from tidelog.cluster.cluster import Cluster
from tidelog.cluster.durations import duration_ms, in_words
from tidelog.cluster.errors import ClusterError
from tidelog.cluster.fault_injector import Fault
from tidelog.cluster.members import id_list
from tidelog.cluster.targets import parse_partition

Action = Callable[[], int]
BACK_WITHIN_S = 60.0
BACK_DESPITE_FAULTS_WITHIN_S = 5.0


# Processes.


def end_processes(data: Path, what: str, targets: Sequence[str], for_: str | None) -> int:
    """kill, stop or pause; with a duration wait here, and undo it."""
    for_ms = _milliseconds(for_)
    cluster = _running(data)
    verb = {"kill": cluster.kill, "stop": cluster.stop, "pause": cluster.pause}[what]
    if for_ms is None:
        fault = verb(*targets)
        undo = "resume" if what == "pause" else "restart"
        nodes = " ".join(map(str, fault.nodes))
        _tell(fault, data, f"tidelog fault {undo} {nodes}{data_option(data)}")
        return 0
    with _signals() as interrupted:  # from before the fault on, so that none comes too early
        fault = verb(*targets)
        try:
            print(f"{fault.text} for {in_words(for_ms)}; Ctrl-C undoes it at once", flush=True)
            interrupted.wait(for_ms / 1_000)
        finally:
            fault.undo()
    _tell_return(cluster, fault.nodes)
    return 0


def restart(data: Path, targets: Sequence[str]) -> int:
    cluster = _attached(data)
    if not cluster.launcher.running() and cluster.launcher.launcher is None:
        raise ClusterError(f"the cluster is not running; start it: tidelog up{data_option(data)}")
    nodes = cluster.restart(*targets)
    print(f"restarted {'node' if len(nodes) == 1 else 'nodes'} {id_list(nodes)}", flush=True)
    _tell_return(cluster, nodes)
    return 0


def resume(data: Path, targets: Sequence[str]) -> int:
    nodes = _running(data).resume(*targets)
    print(f"resumed {'node' if len(nodes) == 1 else 'nodes'} {id_list(nodes)}")
    return 0


# The network.


def isolate(data: Path, targets: Sequence[str], clients: bool, for_: str | None) -> int:
    for_s = _seconds(for_)
    return _told(data, _running(data).isolate(*targets, clients=clients, for_s=for_s))


def cut(data: Path, target: str, other: str, one_way: bool, for_: str | None) -> int:
    for_s = _seconds(for_)
    return _told(data, _running(data).cut(target, other, one_way=one_way, for_s=for_s))


def delay(
    data: Path,
    target: str,
    other: str,
    by: str,
    jitter: str | None,
    one_way: bool,
    for_: str | None,
) -> int:
    by_ms, jitter_ms, for_s = duration_ms(by), _milliseconds(jitter) or 0, _seconds(for_)
    cluster = _running(data)
    return _told(
        data,
        cluster.delay(target, other, ms=by_ms, jitter_ms=jitter_ms, one_way=one_way, for_s=for_s),
    )


def drop(
    data: Path, target: str, other: str, chance: float, one_way: bool, for_: str | None
) -> int:
    for_s = _seconds(for_)
    cluster = _running(data)
    return _told(data, cluster.drop(target, other, chance=chance, one_way=one_way, for_s=for_s))


def hold_replica(data: Path, target: str, partition: str, for_: str | None) -> int:
    place, for_s = parse_partition(partition), _seconds(for_)
    cluster = _running(data)
    return _told(data, cluster.hold_replica(target, place.topic, place.partition, for_s=for_s))


def error(
    data: Path,
    target: str,
    api: str,
    code: str,
    which: tuple[int, int],
    source: str,
    for_: str | None,
) -> int:
    (nth, times), for_s = which, _seconds(for_)
    cluster = _running(data)
    fault = cluster.error(target, api, code, nth=nth, times=times, source=source, for_s=for_s)
    return _told(data, fault)


# All of them.


def heal(data: Path, fault_ids: Sequence[str]) -> int:
    cluster = _attached(data)
    healed = [cluster.heal(each)[0] for each in fault_ids] if fault_ids else cluster.heal()
    if not healed:
        print("there are no faults")
    for fault in healed:
        print(f"undone: {fault.id} ({fault.text})", flush=True)
    started = [node for each in healed if each.what in ("kill", "stop") for node in each.nodes]
    if started:
        _tell_return(cluster, tuple(dict.fromkeys(started)))
    return 0


def show(data: Path, *, as_json: bool) -> int:
    from tidelog.cli.cluster_tables import FAULT_HEADER, fault_rows, wall_now_ms
    from tidelog.cli.columns import columns
    from tidelog.cluster.status import fault_as_json

    notes = _attached(data).injector.registry.active()
    if as_json:
        print(json.dumps([fault_as_json(each) for each in notes]))
    elif notes:
        print(columns(FAULT_HEADER, fault_rows(notes, wall_ms=wall_now_ms())))
    else:
        print("there are no faults")
    return 0


# Inside.


def _attached(data: Path) -> Cluster:
    return Cluster.attach(data)


def _running(data: Path) -> Cluster:
    cluster = _attached(data)
    if not cluster.launcher.running():
        raise ClusterError(
            f"no node of the cluster in {cluster.data} runs; "
            f"start it: tidelog up{data_option(data)}"
        )
    return cluster


def _told(data: Path, fault: Fault) -> int:
    _tell(fault, data, f"tidelog fault heal {fault.id}{data_option(data)}")
    return 0


def _tell(fault: Fault, data: Path, undo: str) -> None:
    ends = ""
    if fault.until_ms is not None:
        left_ms = fault.until_ms - time.time_ns() // 1_000_000
        ends = f", for {in_words(round(max(0, left_ms), -2))}"
    print(f"{fault.id}: {fault.text}{ends}")
    print(f"undo: {undo}", flush=True)


def _tell_return(cluster: Cluster, nodes: tuple[int, ...]) -> None:
    """Whether they take part again, which needs a quorum and a network."""
    brokers = frozenset(nodes).intersection(cluster.broker_ids)
    is_disturbed = any(fault.active.rules for fault in cluster.faults())
    within_s = BACK_DESPITE_FAULTS_WITHIN_S if is_disturbed else BACK_WITHIN_S
    try:
        if not cluster.has_majority:
            raise ClusterError("there is no quorum")
        cluster.wait_until(
            lambda: brokers <= cluster.unfenced(), "their return", timeout_s=within_s
        )
    except ClusterError:
        print(f"{id_list(nodes)}: running, but not taking part yet; see `tidelog status`")
        return
    print(f"{id_list(nodes)}: back in the cluster")


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, which do nothing else meanwhile."""
    interrupted = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        interrupted.set()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _milliseconds(text: str | None) -> int | None:
    return None if text is None else duration_ms(text)


def _seconds(text: str | None) -> float | None:
    for_ms = _milliseconds(text)
    return None if for_ms is None else for_ms / 1_000
