"""`tidelog up` at work: brokers first, everything for the eye after they have been started."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Protocol

from tidelog.cli.cluster.exit_codes import data_option, run
from tidelog.cli.cluster.tables import changes, headline
from tidelog.cli.cluster.up_options import DEFAULT_PORT, UpOptions, read_settings
from tidelog.cluster import processes
from tidelog.cluster.cluster import UP, Cluster
from tidelog.cluster.cluster_options import described
from tidelog.cluster.directory import ClusterDirectory

LOOK_EVERY_S = 1.0


class Say(Protocol):
    """Tells a step of the start."""

    def __call__(self, text: str, /) -> None: ...


def run_up(options: UpOptions) -> int:
    """Until Ctrl-C, or until it is ready if it shall go on by itself; the exit code."""
    started_s = time.monotonic()

    def say(text: str) -> None:
        if options.verbose:
            print(f"{time.monotonic() - started_s:6.3f} s  {text}", flush=True)

    return run("up", lambda: _up(options, started_s, say))


class Interrupts:
    """Ctrl-C, SIGTERM and the terminal's end; they wait while processes are being started."""

    def __init__(self) -> None:
        self._is_stopping = False
        self._is_waiting = False
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, self._on_signal)

    def allow(self) -> None:
        """From now on they interrupt; one that came before does so now."""
        self._is_waiting = True
        if self._is_stopping:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """While everything is being stopped."""
        self._is_waiting = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        if self._is_waiting:
            raise KeyboardInterrupt


def _up(options: UpOptions, started_s: float, say: Say) -> int:
    cluster = _cluster(options)
    interrupts = Interrupts()
    cluster.launch(kind=None if options.detach else UP)
    say(f"{len(cluster.node_ids)} processes started")
    try:
        interrupts.allow()
        cluster.wait_ready(on_step=say)
        interrupts.ignore()
    except BaseException:
        interrupts.ignore()
        cluster.abandon_start()
        raise
    say("ready")
    _welcome(cluster, options, time.monotonic() - started_s)
    if options.detach:
        cluster.launcher.let_go()
        return 0
    try:
        interrupts.allow()
        _watch(cluster)
    except KeyboardInterrupt:
        pass
    finally:
        interrupts.ignore()
        _stop(cluster)
    return 0


def _cluster(options: UpOptions) -> Cluster:
    is_new = not ClusterDirectory(options.data).has_plan
    return Cluster(
        options.brokers,
        racks=options.racks,
        controllers=options.controllers,
        profile=options.profile,
        data=options.data,
        port=(DEFAULT_PORT if is_new else 0) if options.port is None else options.port,
        settings=read_settings(options.settings) if options.settings else None,
    )


def _welcome(cluster: Cluster, options: UpOptions, took_s: float) -> None:
    plan = cluster.launcher.plan
    where = data_option(options.data)
    print(f"{described(plan.nodes)}, profile {plan.profile}, ready in {took_s:.2f} s")
    print(f"bootstrap servers: {cluster.bootstrap_servers}")
    print(f"data: {cluster.data}")
    if options.detach:
        print(f"look: tidelog status{where}")
        print(f"stop: tidelog down{where}")
    else:
        print("stop: Ctrl-C")
    sys.stdout.flush()


def _watch(cluster: Cluster) -> None:
    if sys.stdout.isatty():
        from tidelog.cli.cluster.live_table import watch_live

        watch_live(cluster, every_s=LOOK_EVERY_S)
    else:
        from tidelog.cli.cluster.up_run import watch_plainly

        watch_plainly(cluster, every_s=LOOK_EVERY_S)


def _stop(cluster: Cluster) -> None:
    started_s = time.monotonic()
    running = len(cluster.launcher.running())
    cluster.close()
    took_s = time.monotonic() - started_s
    print(f"stopped {running} nodes in {took_s:.1f} s", flush=True)


def watch_plainly(cluster: Cluster, *, every_s: float) -> None:
    """Until an interrupt."""
    pause = threading.Event()
    before = cluster.status(timeout_s=every_s)
    _say(headline(before))
    while True:
        pause.wait(every_s)
        processes.reap()
        after = cluster.status(timeout_s=every_s)
        for line in changes(before, after):
            _say(line)
        before = after


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)
