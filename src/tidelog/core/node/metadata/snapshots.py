"""Snapshots of the metadata: they bound the log, and bring up a node that is far behind.

Every node writes its own, of what is committed, whenever enough has come since the one before. The
log is kept from the snapshot before on, so that a follower that is only a little behind need not
take a whole snapshot. When one is durable, what it makes superfluous goes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.node.metadata.metadata_records import MetadataUnreadable
from tidelog.core.node.metadata.snapshot_content import image_of, snapshot_of
from tidelog.core.quorum.values import LogPosition
from tidelog.core.storage.disk import DiskError, File
from tidelog.core.storage.log import Log
from tidelog.core.storage.metadata_checkpoints import CheckpointName, MetadataCheckpoints

SNAPSHOTS_KEPT = 2
"""The newest, and the one at which the log begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotWritten:
    """What the metadata log said before this offset is durable in a file of its own."""

    node_id: int
    end_offset: int
    quorum_epoch: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLoaded:
    """The image was built from a snapshot: at a start, or because this node was far behind."""

    node_id: int
    end_offset: int
    quorum_epoch: int
    because: str


class Snapshots:
    """Invariant: the log reaches back to one of them, or to the very beginning."""

    def __init__(self, port: MetadataPort) -> None:
        self._port = port
        self._bytes_between = port.settings.integer(
            "metadata.log.max.record.bytes.between.snapshots"
        )
        self._bytes_since = 0
        self._checkpoints: MetadataCheckpoints | None = None
        self._log: Log | None = None
        self._known: list[LogPosition] = []

    @property
    def newest(self) -> LogPosition | None:
        return self._known[-1] if self._known else None

    @property
    def oldest(self) -> LogPosition | None:
        """The one at which the log begins, if it does not begin at the beginning."""
        assert self._log is not None
        start_offset = self._log.log_start_offset
        return next((each for each in self._known if each.end_offset == start_offset), None)

    # Beginning

    def load(self, log: Log, wall_ms: int) -> tuple[ClusterImage, int]:
        """The image to begin with, and where to read on in the log.

        A log that ends before the newest snapshot is of a node that had just taken it.
        """
        self._log = log
        self._checkpoints = MetadataCheckpoints(self._port.disk, log.directory)
        self._known = [
            LogPosition(name.leader_epoch, name.end_offset) for name in self._checkpoints.find()
        ]
        newest = self.newest
        if newest is None:
            if log.log_start_offset > 0:
                raise MetadataUnreadable(f"no snapshot before offset {log.log_start_offset}")
            return ClusterImage(), 0
        image = image_of(memoryview(self._read(newest)))
        if newest.end_offset > log.log_end_offset:
            log.start_anew_at(newest.end_offset, wall_ms=wall_ms)
        if newest.end_offset < log.log_start_offset:
            raise MetadataUnreadable(f"no snapshot before offset {log.log_start_offset}")
        self._trace_loaded(newest, "start")
        return image, newest.end_offset

    def _trace_loaded(self, position: LogPosition, because: str) -> None:
        self._port.trace.emit(
            SnapshotLoaded(
                node_id=self._port.settings.node_id,
                end_offset=position.end_offset,
                quorum_epoch=position.quorum_epoch,
                because=because,
            )
        )

    # Writing

    def on_applied(self, size_bytes: int) -> None:
        self._bytes_since += size_bytes

    def write_if_due(self, end_offset: int, *, timestamp_ms: int, now_ms: int) -> None:
        """The image has everything before this end, all of it committed, and nothing else."""
        checkpoints, log = self._checkpoints, self._log
        assert checkpoints is not None and log is not None
        if self._bytes_since < self._bytes_between or checkpoints.is_writing:
            return
        quorum_epoch = log.epochs.of_offset(end_offset - 1)
        newest = self.newest
        if quorum_epoch is None or (newest is not None and newest.end_offset >= end_offset):
            return
        self._bytes_since = 0
        position = LogPosition(quorum_epoch, end_offset)
        content = snapshot_of(self._port.image, position, timestamp_ms=timestamp_ms)
        try:
            checkpoints.write(
                _name(position),
                content,
                on_durable=lambda: self._on_written(position, len(content)),
                on_error=self._on_error,
            )
            active = log.files.active
            if active is not None and active.file.size_bytes:
                wall_ms = self._port.wall_ms(now_ms)
                log.roll(because="snapshot", base_offset=log.log_end_offset, wall_ms=wall_ms)
        except DiskError as error:
            self._on_error(error)

    def _on_written(self, position: LogPosition, size_bytes: int) -> None:
        self._known.append(position)
        self._known.sort(key=lambda each: each.end_offset)
        self._port.trace.emit(
            SnapshotWritten(
                node_id=self._port.settings.node_id,
                end_offset=position.end_offset,
                quorum_epoch=position.quorum_epoch,
                size_bytes=size_bytes,
            )
        )
        self._trim()

    def _trim(self) -> None:
        log, checkpoints = self._log, self._checkpoints
        assert log is not None and checkpoints is not None
        if len(self._known) < SNAPSHOTS_KEPT:
            return
        superfluous = self._known[:-SNAPSHOTS_KEPT]
        self._known = self._known[-SNAPSHOTS_KEPT:]
        try:
            if self._known[0].end_offset > log.log_start_offset:
                log.delete_records_before(self._known[0].end_offset)
            for position in superfluous:
                checkpoints.remove(_name(position))
        except DiskError as error:
            self._on_error(error)

    def _on_error(self, error: DiskError) -> None:
        self._port.on_disk_error(error)

    # Handing out and taking

    def file_of(self, position: LogPosition) -> File | None:
        """For a follower that is far behind; None if there is no such snapshot (any more)."""
        assert self._checkpoints is not None
        return self._checkpoints.open(_name(position)) if position in self._known else None

    def take(self, position: LogPosition, content: bytearray, wall_ms: int) -> ClusterImage:
        """A leader's snapshot becomes ours, durably; the log begins anew behind it.

        Raises MetadataUnreadable, and nothing has changed, if it is not whole.
        """
        checkpoints, log = self._checkpoints, self._log
        assert checkpoints is not None and log is not None
        image = image_of(memoryview(content))
        checkpoints.write_now(_name(position), content)
        log.start_anew_at(position.end_offset, wall_ms=wall_ms)
        superfluous, self._known = self._known, [position]
        for each in superfluous:
            if each != position:
                checkpoints.remove(_name(each))
        self._bytes_since = 0
        self._trace_loaded(position, "far behind")
        return image

    def _read(self, position: LogPosition) -> bytes:
        assert self._checkpoints is not None
        file = self._checkpoints.open(_name(position))
        return file.read(0, file.size_bytes)


def _name(position: LogPosition) -> CheckpointName:
    return CheckpointName(position.end_offset, position.quorum_epoch)
