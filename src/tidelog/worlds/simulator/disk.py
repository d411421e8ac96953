"""SimDisk: the Disk port of one running process over a DurableStore.

Appends reach the store's page cache at once. Syncs wait in one queue, each takes virtual time, and
they are done in order. A sync takes what the cache holds when it begins.
When the process dies its disk is detached: queued syncs never happen, and any
later use of a file of the dead process is a mistake that is caught.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tidelog.core.storage.disk import DiskError, SyncListener
from tidelog.worlds.simulator.durable_store import (
    DirectoryNode,
    DurableStore,
    FileNode,
    NameChange,
    StoreNode,
    SyncUnderWay,
    split,
)
from tidelog.worlds.simulator.world import SimWorld


@dataclass(frozen=True, slots=True)
class Synced:
    """The first bytes of a file are durable."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class NamesSynced:
    """The names in a directory are durable."""

    path: str


@dataclass(frozen=True, slots=True)
class SyncFailed:
    """A sync returned an error, and pages were dropped."""

    path: str


class SimFile:
    """One file as a process sees it."""

    def __init__(self, disk: SimDisk, path: str, node: FileNode) -> None:
        self._disk = disk
        self.node = node
        self.path = path
        self.size_bytes = len(node.data)
        self.owner: SyncListener | None = None

    def append(self, *parts: bytes | bytearray | memoryview) -> None:
        self._check_usable()
        assert self.size_bytes == len(self.node.data), f"{self.path}: two writers"
        try:
            self._disk.store.append(self.path, self.node, b"".join(parts))
        finally:
            self.size_bytes = len(self.node.data)

    def read(self, position: int, length: int) -> bytes:
        assert position >= 0 and length >= 0, (position, length)
        self._check_usable()
        self._disk.store.count_operation(self.path)
        return bytes(self.node.data[position : position + length])

    def truncate(self, size_bytes: int) -> None:
        assert size_bytes >= 0, size_bytes
        self._check_usable()
        self._disk.store.count_operation(self.path)
        self.node.truncate(size_bytes)
        self.size_bytes = size_bytes

    def rename(self, path: str) -> None:
        self._check_usable()
        self._disk.store.count_operation(self.path)
        self._disk.move(self.path, path, self.node)
        self.path = path

    def sync(self) -> None:
        self._check_usable()
        self._disk.queue_sync(self)

    def sync_now(self) -> None:
        self._check_usable()
        self._disk.store.count_operation(self.path)
        if self._disk.store.sync_fails():
            self._disk.store.drop_pages(self.node)
            raise DiskError(self.path, "sync failed")
        self._disk.complete_sync(self, self.node.begin_sync())
        self._disk.emit(Synced(self.path, self.size_bytes))

    def remove(self) -> None:
        self._check_usable()
        self._disk.store.count_operation(self.path)
        self._disk.remove(self.path)

    def close(self) -> None:
        self._disk.check_attached()

    def _check_usable(self) -> None:
        self._disk.check_attached()
        if self.node.is_removed:
            raise DiskError(self.path, "no such file or directory")


class SimDisk:
    """A tree of directories and files in a store, for one run of one process."""

    def __init__(
        self,
        *,
        world: SimWorld,
        store: DurableStore,
        name: str,
        random: Random,
        on_synced: Callable[[SimFile, int], None],
        on_sync_failed: Callable[[SimFile, str], None],
        sync_us_max: int = 3_000,
    ) -> None:
        self.store = store
        self._world = world
        self._name = name
        self._random = random
        self._on_synced = on_synced
        self._on_sync_failed = on_sync_failed
        self._sync_us_max = sync_us_max
        self._queued_syncs: deque[SimFile | str] = deque()
        self._is_syncing = False
        self._is_attached = True
        self._files: list[SimFile] = []

    # The port.

    def open(self, path: str) -> SimFile:
        self._count(path)
        directory, name = self._directory_of(path)
        node = directory.names.get(name)
        if node is None:
            node = FileNode()
            self._change(directory, NameChange(None, name, node))
        if not isinstance(node, FileNode):
            raise DiskError(path, "is a directory")
        file = SimFile(self, path, node)
        self._files.append(file)
        return file

    def exists(self, path: str) -> bool:
        self._count(path)
        return self.store.find(path) is not None

    def list_names(self, directory: str) -> list[str]:
        self._count(directory)
        node = self.store.find(directory)
        return sorted(node.names) if isinstance(node, DirectoryNode) else []

    def is_directory(self, path: str) -> bool:
        self._count(path)
        return isinstance(self.store.find(path), DirectoryNode)

    def make_directory(self, path: str) -> None:
        self._count(path)
        here = self.store.root
        for name in split(path):
            node = here.names.get(name)
            if node is None:
                node = DirectoryNode()
                self._change(here, NameChange(None, name, node))
            if not isinstance(node, DirectoryNode):
                raise DiskError(path, "a file is in the way")
            here = node

    def rename_directory(self, old: str, new: str) -> None:
        self._count(old)
        node = self.store.find(old)
        if not isinstance(node, DirectoryNode):
            raise DiskError(old, "no such directory")
        self.move(old, new, node)
        for file in self._files:
            if file.path.startswith(old + "/"):
                file.path = new + file.path[len(old) :]

    def remove_directory(self, path: str) -> None:
        self._count(path)
        node = self.store.find(path)
        if isinstance(node, DirectoryNode):
            self._empty(node)
            self.remove(path)

    def sync_directory(self, path: str) -> None:
        self.check_attached()
        self._queued_syncs.append(path)
        self._begin_sync()

    def sync_directory_now(self, path: str) -> None:
        self._count(path)
        node = self.store.find(path)
        if not isinstance(node, DirectoryNode):
            raise DiskError(path, "no such directory")
        self.store.sync_names(node, node.changes)
        self.emit(NamesSynced(path))

    # For files and for the process.

    def detach(self) -> None:
        """The process is dead: its queued syncs are dropped."""
        self._is_attached = False
        self._queued_syncs.clear()

    def check_attached(self) -> None:
        assert self._is_attached, f"a dead process of {self._name} uses its disk"

    def emit(self, event: object) -> None:
        self._world.trace.emit(self._name, event)

    def open_files(self) -> list[SimFile]:
        return list(self._files)

    def complete_sync(self, file: SimFile, sync: SyncUnderWay) -> None:
        """The moment at which bytes become durable; a mutant may miss it."""
        file.node.end_sync(sync)

    def queue_sync(self, file: SimFile) -> None:
        self._queued_syncs.append(file)
        self._begin_sync()

    def move(self, old: str, new: str, node: StoreNode) -> None:
        source, old_name = self._directory_of(old)
        target, new_name = self._directory_of(new)
        assert source is target, "a rename stays in its directory"
        replaced = target.names.get(new_name)
        if isinstance(replaced, FileNode) and replaced is not node:
            replaced.is_removed = True
        self._change(source, NameChange(old_name, new_name, node))

    def remove(self, path: str) -> None:
        directory, name = self._directory_of(path)
        node = directory.names[name]
        if isinstance(node, FileNode):
            node.is_removed = True
        self._change(directory, NameChange(name, None, node))

    # Syncing.

    def _begin_sync(self) -> None:
        if self._is_syncing or not self._queued_syncs:
            return
        self._is_syncing = True
        duration_us = self._random.randint(20, self._sync_us_max)
        queued = self._queued_syncs.popleft()
        if isinstance(queued, SimFile):
            sync = queued.node.begin_sync()
            self._world.after(duration_us, lambda: self._end_sync(queued, sync))
        else:
            node = self.store.find(queued)
            seen = list(node.changes) if isinstance(node, DirectoryNode) else []
            self._world.after(duration_us // 4, lambda: self._end_names(queued, node, seen))

    def _end_sync(self, file: SimFile, sync: SyncUnderWay) -> None:
        if not self._is_attached:
            return
        self._is_syncing = False
        if self.store.sync_fails():
            self.store.drop_pages(file.node)
            self.emit(SyncFailed(file.path))
            self._queued_syncs.clear()
            self._on_sync_failed(file, "input/output error")
            return
        self.complete_sync(file, sync)
        self.emit(Synced(file.path, sync.size_bytes))
        self._begin_sync()
        self._on_synced(file, sync.size_bytes)

    def _end_names(self, path: str, node: StoreNode | None, seen: list[NameChange]) -> None:
        if not self._is_attached:
            return
        self._is_syncing = False
        if isinstance(node, DirectoryNode):
            self.store.sync_names(node, seen)
            self.emit(NamesSynced(path))
        self._begin_sync()

    def _count(self, path: str) -> None:
        self.check_attached()
        self.store.count_operation(path)

    def _directory_of(self, path: str) -> tuple[DirectoryNode, str]:
        *parents, name = split(path)
        node = self.store.find("/".join(parents))
        if not isinstance(node, DirectoryNode):
            raise DiskError(path, "no such directory")
        return node, name

    def _change(self, directory: DirectoryNode, change: NameChange) -> None:
        if change.gone is not None:
            del directory.names[change.gone]
        if change.new is not None:
            directory.names[change.new] = change.node
        directory.changes.append(change)

    def _empty(self, directory: DirectoryNode) -> None:
        for name in sorted(directory.names):
            node = directory.names[name]
            if isinstance(node, DirectoryNode):
                self._empty(node)
            else:
                node.is_removed = True
            self._change(directory, NameChange(name, None, node))
