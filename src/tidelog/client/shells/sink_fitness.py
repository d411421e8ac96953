"""Can a cluster carry exactly-once sinks? Asked before something slow is begun for one."""

from __future__ import annotations

from tidelog.client.settings import Given
from tidelog.client.shells.sink_leading import SinkLeader
from tidelog.client.sink.errors import ClusterUnfit, SinkError
from tidelog.client.sink.fitness import check_cluster

ANSWER_TIMEOUT_S = 20.0
_NAME = "tidelog-sink-fitness"


def unfit(settings: Given, *, timeout_s: float = ANSWER_TIMEOUT_S) -> str | None:
    """One line if it cannot; None if it can, or does not say: the sink itself asks again."""
    with SinkLeader(settings, _NAME, timeout_s=timeout_s, trace=None) as leader:
        try:
            leader.lead(check_cluster(None))
        except ClusterUnfit as error:
            return str(error)
        except SinkError:
            return None
    return None
