"""Mutants of one broker and its disk: names not synced, syncs claimed, checksums not checked."""

from __future__ import annotations

from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.storage import recovery_scan
from tidelog.judge.anomalies import CORRUPT, LOST, READ_THEN_LOST
from tidelog.worlds.simulator.disk import SimDisk, SimFile
from tidelog.worlds.simulator.durable_store import SyncUnderWay
from tidelog.worlds.simulator.mutant import Mutant, Patch


class NamesForgotten(SimDisk):
    """Never syncs a partition's directory: the name of a new segment may be lost."""

    def sync_directory(self, path: str) -> None:
        if not _is_of_a_topic(path):
            super().sync_directory(path)

    def sync_directory_now(self, path: str) -> None:
        if not _is_of_a_topic(path):
            super().sync_directory_now(path)


class SyncsClaimed(SimDisk):
    """Says that a segment is synced without having done it: the answer leaves too early."""

    def complete_sync(self, file: SimFile, sync: SyncUnderWay) -> None:
        if not _is_of_a_topic(file.path) or not file.path.endswith(".log"):
            super().complete_sync(file, sync)


class BufferedWrites(SimDisk):
    """Keeps what was appended in the process until the next sync: acknowledged before written."""

    def open(self, path: str) -> SimFile:
        file = super().open(path)
        self._written().setdefault(id(file.node), file.size_bytes)
        return file

    def complete_sync(self, file: SimFile, sync: SyncUnderWay) -> None:
        super().complete_sync(file, sync)
        self._written()[id(file.node)] = sync.size_bytes

    def detach(self) -> None:
        super().detach()
        for file in self.open_files():
            written = self._written()[id(file.node)]
            file.node.truncate(min(len(file.node.data), written))

    def _written(self) -> dict[int, int]:
        """How much of each file really left the process."""
        written: dict[int, int] = self.__dict__.setdefault("written_bytes", {})
        return written


def _is_of_a_topic(path: str) -> bool:
    """Not the metadata log's: without that a broker does not even start again."""
    return "/" in path and METADATA_TOPIC not in path


def _always(*_: object, **__: object) -> bool:
    return True


STORAGE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="skip-crc-at-recovery",
        about="recovery trusts every batch whose length fits, whatever its checksum says",
        caught_by=frozenset({CORRUPT}),
        within_seeds=40,
        patches=(Patch(recovery_scan, "crc_is_valid", _always),),
    ),
    Mutant(
        name="forget-names",
        about="a new file's bytes are synced, its name never is",
        caught_by=frozenset({LOST}),
        within_seeds=10,
        disk_type=NamesForgotten,
    ),
    Mutant(
        name="acknowledge-before-sync",
        about="a sync is reported that has not happened",
        caught_by=frozenset({LOST, READ_THEN_LOST}),
        within_seeds=10,
        disk_type=SyncsClaimed,
    ),
    Mutant(
        name="acknowledge-before-write",
        about="appended bytes stay in the process until the next sync",
        caught_by=frozenset({LOST, READ_THEN_LOST}),
        within_seeds=10,
        disk_type=BufferedWrites,
    ),
)
