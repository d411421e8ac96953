"""Where the tests of storage start: a disk whose syncs, crashes and faults are in their hands."""

from __future__ import annotations

from random import Random

from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import ListTrace
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.disk import File, read_slice
from tidelog.core.storage.durable_directory import make_directory
from tidelog.core.storage.log import Appended, Log
from tidelog.core.wire.record_batch import BatchHeader, batches
from tidelog.core.wire.records import NewRecord, Record, build, iterate
from tidelog.worlds.simulator.disk import SimDisk, SimFile
from tidelog.worlds.simulator.durable_store import DurableStore, FileNode
from tidelog.worlds.simulator.world import SimWorld

TOPIC_ID = TopicId(bytes(range(16)))
PARTITION = TopicPartition("orders", 3)
ROOT = "data/logs"
DIRECTORY = f"{ROOT}/{PARTITION}"
NOW_MS = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=200)
"""Segments of some ten batches, so that everything happens soon."""


class Rig:
    """One store and the process that uses it now."""

    def __init__(self, config: LogConfig = SMALL, *, seed: int = 1) -> None:
        self.config = config
        self.random = Random(seed)
        self.store = DurableStore(self.random)
        self.trace = ListTrace()
        self.wall_ms = NOW_MS
        self.sync_failures: list[str] = []
        self._power_on()
        make_directory(self.disk, ROOT)

    def _power_on(self) -> None:
        self.world = SimWorld(seed=1)
        self.disk = SimDisk(
            world=self.world,
            store=self.store,
            name="rig",
            random=Random(1),
            on_synced=self._on_synced,
            on_sync_failed=lambda file, reason: self.sync_failures.append(file.path),
        )

    def _on_synced(self, file: SimFile, size_bytes: int) -> None:
        if file.owner is not None:
            file.owner.on_synced(file, size_bytes)

    # A log by itself.

    def open(
        self,
        *,
        clean: bool = False,
        recovery_point: int | None = None,
        log_start_offset: int | None = None,
        topic_id: TopicId | None = TOPIC_ID,
    ) -> Log:
        log = Log.open(
            disk=self.disk,
            directory=DIRECTORY,
            topic_partition=PARTITION,
            topic_id=topic_id,
            config=self.config,
            trace=self.trace,
            wall_ms=self.wall_ms,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        log.check()
        return log

    # A directory with its checkpoints.

    def open_directory(self) -> LogDirectory:
        return LogDirectory.open(disk=self.disk, path=ROOT, trace=self.trace)

    def open_in(self, directory: LogDirectory, partition: TopicPartition = PARTITION) -> Log:
        log = directory.open_log(
            partition, topic_id=TOPIC_ID, config=self.config, wall_ms=self.wall_ms
        )
        log.check()
        return log

    # What happens to the process and its disk.

    def finish_syncs(self) -> None:
        while self.world.step():
            pass

    def kill(self) -> None:
        """The process dies; the page cache lives."""
        self.disk.detach()
        self._power_on()

    def lose_power(self) -> None:
        self.disk.detach()
        self.store.lose_power()
        self._power_on()

    def names(self, directory: str = DIRECTORY) -> list[str]:
        return self.disk.list_names(directory)

    def file(self, name: str) -> FileNode:
        node = self.store.find(f"{DIRECTORY}/{name}")
        assert isinstance(node, FileNode), name
        return node

    def overwrite(self, name: str, content: bytes) -> None:
        """As if somebody had put another file there."""
        node = self.file(name)
        node.settle(bytearray(content))

    def remove(self, name: str) -> None:
        self.disk.open(f"{DIRECTORY}/{name}").remove()


def batch(
    values: int | list[str] = 1,
    *,
    timestamp_ms: int = NOW_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    key: bytes | None = b"key",
    compression: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> memoryview:
    """A batch as a client sends it, writable like the frame it arrives in."""
    names = [f"value-{at}" for at in range(values)] if isinstance(values, int) else values
    return memoryview(
        build(
            [NewRecord(value=name.encode(), key=key, timestamp_ms=timestamp_ms) for name in names],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            transactional=transactional,
            compression=compression,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
        )
    )


def append(log: Log, view: memoryview | None = None, *, leader_epoch: int = 0) -> Appended:
    appended = log.append_as_leader(
        batch() if view is None else view, leader_epoch=leader_epoch, wall_ms=NOW_MS
    )
    log.check()
    return appended


def append_values(log: Log, *values: str, leader_epoch: int = 0) -> None:
    """One batch each."""
    for value in values:
        assert append(log, batch([value]), leader_epoch=leader_epoch).error == 0


def read_all(log: Log, *, bytes_max: int = 2**20, start_offset: int | None = None) -> list[Record]:
    """Every record from the log start on, read as a consumer would, slice by slice."""
    offset = log.log_start_offset if start_offset is None else start_offset
    found: list[Record] = []
    while offset < log.log_end_offset:
        piece = log.read(offset, bytes_max=bytes_max, end_offset=log.log_end_offset)
        assert piece is not None, f"nothing at {offset} of {log.log_end_offset}"
        data = read_slice(piece)
        before = offset
        for position, header in batches(data):
            found += [record for record in iterate(data, position) if record.offset >= offset]
            offset = header.end_offset
        assert offset > before, f"no progress at {offset}"
    return found


def read_values(log: Log) -> list[str]:
    return [(record.value or b"").decode() for record in read_all(log)]


def headers_of(data: bytes) -> list[BatchHeader]:
    return [header for _, header in batches(data)]


def files_of(log: Log) -> list[File]:
    return [segment.file for segment in log.files.segments]
