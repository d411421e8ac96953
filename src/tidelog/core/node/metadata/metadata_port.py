"""What a node gives to its metadata log, quorum and snapshots, and how they act on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from tidelog.core.metadata.changes import Change
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.trace import Trace
from tidelog.core.node.connections.liveness_probes import LivenessProbes
from tidelog.core.node.connections.request import ParkedForData
from tidelog.core.node.connections.request_timeouts import RequestTimeouts
from tidelog.core.node.settings import NodeSettings
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.disk import Disk, DiskError
from tidelog.core.storage.log import Log
from tidelog.core.wire.links import Links


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPort:
    settings: NodeSettings
    image: ClusterImage
    """Gets every committed record, and nothing else."""
    disk: Disk
    log_directory: Callable[[], LogDirectory]
    """The directory that holds the metadata log."""
    links: Links
    probes: LivenessProbes
    alarms: Alarms
    timeouts: RequestTimeouts
    trace: Trace
    random: Random
    wall_ms: Callable[[int], int]
    on_change: Callable[[Change, int], None]
    """The image took one committed record."""
    on_data: Callable[[Iterable[ParkedForData]], None]
    """These look again at the end of the tick."""
    on_log_failed: Callable[[Log], None]
    on_disk_error: Callable[[DiskError], None]
    halt: Callable[[str], None]
