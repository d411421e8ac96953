"""The replicas of a topic on disk: whose directory it is, its segment files and its checkpoints.

Names and formats are Kafka's, so the directories of Apache Kafka are understood as well. Files are
read as they are: of a running broker that is what it has written so far.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tidelog.core.formats import file_names
from tidelog.core.formats.properties import parse_properties, topic_id_in
from tidelog.core.formats.text_checkpoints import lines_so_far, parse_leader_epoch, parse_offset
from tidelog.spark.audit.errors import AuditRefused

_CLUSTER = "cluster.json"
_NODE_PREFIX = "node-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """One file of a replica's log."""

    path: str
    base_offset: int
    size_bytes: int
    is_newest: bool
    """Only behind the newest one something unfinished may lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskReplica:
    """One partition on one node, as its directory tells."""

    node_id: int
    partition: int
    directory: str
    topic_id: str | None
    log_start_offset: int
    high_watermark: int | None
    """As of the last checkpoint: what is below was committed, and perhaps more."""
    leader_epoch: int | None
    """The newest that it knows of."""
    segments: tuple[SegmentFile, ...]


def find_replicas(arguments: Iterable[str], topic: str) -> list[DiskReplica]:
    """Every replica of the topic in these arguments, by partition and node."""
    found: dict[tuple[int, int], DiskReplica] = {}
    for node_id, directory in log_directories(arguments):
        high_watermarks = _checkpoint(directory / file_names.HIGH_WATERMARKS, topic)
        log_starts = _checkpoint(directory / file_names.LOG_STARTS, topic)
        for path in sorted(directory.iterdir()):
            named = file_names.topic_partition_of(path.name)
            if named is None or named.topic != topic or not path.is_dir():
                continue
            partition = named.index
            if (partition, node_id) in found:
                other = found[partition, node_id].directory
                raise AuditRefused(f"{path} and {other} are both replica {node_id} of {path.name}")
            found[partition, node_id] = _replica(
                path,
                node_id=node_id,
                partition=partition,
                log_start=log_starts.get(partition, 0),
                high_watermark=high_watermarks.get(partition),
            )
    return [found[key] for key in sorted(found)]


def log_directories(arguments: Iterable[str]) -> list[tuple[int, Path]]:
    """(node, log directory) of each `NODE=DIR`, log directory, or directory of `tidelog up`."""
    found: list[tuple[int, Path]] = []
    for argument in arguments:
        node, equals, named = argument.partition("=")
        directory = Path(named if equals and node.isdecimal() else argument)
        if not directory.is_dir():
            raise AuditRefused(f"--segments {argument}: there is no directory {directory}")
        if equals and node.isdecimal():
            found.append((int(node), directory))
        elif (directory / _CLUSTER).is_file():
            found += _nodes_of(directory)
        else:
            found.append((_node_of(directory, argument), directory))
    return found


def _nodes_of(cluster: Path) -> list[tuple[int, Path]]:
    nodes = []
    for path in sorted(cluster.glob(f"{_NODE_PREFIX}*")):
        number = path.name.removeprefix(_NODE_PREFIX)
        if number.isdecimal() and (path / "data").is_dir():
            nodes.append((int(number), path / "data"))
    return nodes


def _node_of(directory: Path, argument: str) -> int:
    for key, value in parse_properties(_content(directory / file_names.META_PROPERTIES)).items():
        if key in ("node.id", "broker.id") and value.isdecimal():
            return int(value)
    raise AuditRefused(
        f"--segments {argument}: it is no data directory of `tidelog up` ({_CLUSTER}) and does not "
        f"say whose log directory it is ({file_names.META_PROPERTIES}); say NODE={argument}"
    )


def _replica(
    directory: Path, *, node_id: int, partition: int, log_start: int, high_watermark: int | None
) -> DiskReplica:
    offsets = {
        path: file_names.offset_of(path.name, file_names.LOG) for path in directory.iterdir()
    }
    files = sorted((offset, path) for path, offset in offsets.items() if offset is not None)
    segments = tuple(
        SegmentFile(
            path=str(path),
            base_offset=base_offset,
            size_bytes=path.stat().st_size,
            is_newest=number == len(files),
        )
        for number, (base_offset, path) in enumerate(files, 1)
    )
    return DiskReplica(
        node_id=node_id,
        partition=partition,
        directory=str(directory),
        topic_id=_topic_id(directory / file_names.PARTITION_METADATA),
        log_start_offset=max([log_start, *(each.base_offset for each in segments[:1])]),
        high_watermark=high_watermark,
        leader_epoch=_newest_leader_epoch(directory / file_names.LEADER_EPOCHS),
        segments=segments,
    )


def _checkpoint(path: Path, topic: str) -> dict[int, int]:
    """Partition → offset for one topic; lines that are none are left out."""
    entries = filter(None, map(parse_offset, lines_so_far(_content(path))))
    return {named.index: offset for named, offset in entries if named.topic == topic}


def _newest_leader_epoch(path: Path) -> int | None:
    entries = filter(None, map(parse_leader_epoch, lines_so_far(_content(path))))
    return max((leader_epoch for leader_epoch, _ in entries), default=None)


def _topic_id(path: Path) -> str | None:
    return topic_id_in(_content(path))


def _content(path: Path) -> bytes:
    """Nothing if there is no such file: a broker that never wrote one has nothing to say."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise AuditRefused(f"{path} cannot be read: {error}") from None
