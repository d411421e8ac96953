"""Watching a cluster where there is no terminal: a line for each thing that changes."""

from __future__ import annotations

import threading
import time

from tidelog.cli.cluster_tables import changes, headline
from tidelog.cluster import processes
from tidelog.cluster.cluster import Cluster


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
