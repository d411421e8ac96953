"""What a broker gives to its replica fetchers: settings, and the few ways by which they act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidelog.core.model.alarms import Alarms
from tidelog.core.model.trace import Trace
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.log import Log
from tidelog.core.wire.links import Links


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherSettings:
    """The broker's settings that its fetchers use, by Kafka's names: `replica.fetch.*`."""

    node_id: int
    wait_ms_max: int
    bytes_min: int
    response_bytes_max: int
    partition_bytes_max: int
    backoff_ms_max: int
    socket_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherPort:
    """What fetchers use of the broker that they run in."""

    settings: FetcherSettings
    alarms: Alarms
    links: Links
    trace: Trace
    wall_ms: Callable[[int], int]
    broker_epoch: Callable[[], int | None]
    """Of this process's registration; None before it has one."""
    address_of: Callable[[int], tuple[str, int] | None]
    """Where a broker is reached, if it is registered."""
    touch: Callable[[Partition], None]
    """Settle this partition at the end of the tick."""
    on_log_failed: Callable[[Log], None]
    on_connection_lost: Callable[[int, int], None]
    """A link to this leader, which was open, has ended at this time."""
