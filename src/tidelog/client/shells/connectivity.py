"""Whether a cluster can be used at all, asked before something slow is begun for it.

A client goes on trying, since brokers come back. A program that takes its time to start should not
start for addresses that refuse at once, or that nobody has, or for a cluster without transactions.
"""

from __future__ import annotations

import socket

from tidelog.client.config import client_config
from tidelog.client.settings import Given
from tidelog.client.shells.sink_runner import SinkRunner
from tidelog.client.sink.cluster_checks import check_cluster
from tidelog.client.sink.errors import ClusterUnfit, SinkError

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 20.0
_GROUP = "tidelog-sink-fitness"


def unreachable(settings: Given, *, timeout_s: float = CONNECT_TIMEOUT_S) -> str | None:
    """One line if none of `bootstrap.servers` takes a connection; None if one does."""
    reasons = []
    for address in client_config(settings).bootstrap:
        try:
            socket.create_connection(address, timeout=timeout_s).close()
        except OSError as error:
            reasons.append(f"{address} ({_reason(error)})")
        else:
            return None
    return f"no broker can be reached: {', '.join(reasons)}"


def unfit_for_sinks(settings: Given, *, timeout_s: float = ANSWER_TIMEOUT_S) -> str | None:
    """One line if the cluster cannot carry exactly-once sinks.

    None if it can, or does not say: the sink itself asks again.
    """
    with SinkRunner(settings, _GROUP, timeout_s=timeout_s) as runner:
        try:
            runner.run(check_cluster(None))
        except ClusterUnfit as error:
            return str(error)
        except SinkError:
            return None
    return None


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, socket.gaierror):
        return "no such host"
    return (error.strerror or str(error)).lower()
