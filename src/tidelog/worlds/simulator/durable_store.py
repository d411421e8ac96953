"""A simulated disk's content: what running processes see, and what survives a power loss.

Every file has two contents, the one in the page cache and the durable one; every directory has its
names and the durable names, and the changes in between. `lose_power` decides by chance: each
page that differs becomes the new, the old or a torn mixture, sizes likewise, and each change of a
name that was not synced happened or did not (a rename always as a whole, and never so that a file
has two names). A killed process loses nothing, so there is no function for it here.

Faults are injected on request: space that runs out, an error at the n-th operation from now, a
sync that fails and drops pages, a flipped bit, a file that is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tidelog.core.storage.disk import DiskError, DiskFull

PAGE_BYTES = 4096


class SyncUnderWay:
    """What the cache held when a sync began: these bytes become durable when it ends.

    They are not copied as long as the file only grows, because then they are still there.
    """

    __slots__ = ("content", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.content: bytes | None = None
        """Kept apart since the file was cut or lost pages; before that it is in the cache."""


class FileNode:
    """A file's bytes, cached and durable."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.clean_bytes = 0  # below this, both contents are known to be equal
        self.is_removed = False
        self.damages: list[tuple[int, bytes, bytes]] = []
        """What decayed and was not repaired: position, the wrong bytes, the right ones."""
        self._syncs: list[SyncUnderWay] = []

    def begin_sync(self) -> SyncUnderWay:
        sync = SyncUnderWay(len(self.data))
        self._syncs.append(sync)
        return sync

    def end_sync(self, sync: SyncUnderWay) -> None:
        """What the cache held at its beginning is durable, unless a later sync ended before it."""
        if sync not in self._syncs:
            return
        del self._syncs[: self._syncs.index(sync) + 1]
        if sync.content is None:
            self.durable[self.clean_bytes :] = self.data[self.clean_bytes : sync.size_bytes]
            self.clean_bytes = sync.size_bytes
        else:
            self.durable[:] = sync.content
            same = min(len(sync.content), len(self.data))
            self.clean_bytes = same if self.data[:same] == sync.content[:same] else 0

    def append(self, data: bytes) -> None:
        self.data += data

    def truncate(self, size_bytes: int) -> None:
        self._keep_what_is_synced()
        if size_bytes < len(self.data):
            del self.data[size_bytes:]
        else:
            self.data += bytes(size_bytes - len(self.data))
        self.clean_bytes = min(self.clean_bytes, size_bytes)

    def lose_pages(self, data: bytearray) -> None:
        """The cache holds something else now."""
        self._keep_what_is_synced()
        self.data = data
        self.clean_bytes = 0

    def flip(self, position: int, mask: int) -> None:
        """The medium decays: cached and durable content agree on the wrong byte."""
        self.data[position] ^= mask
        if position < len(self.durable):
            self.durable[position] ^= mask

    def sound_data(self) -> bytearray:
        """The cached content as it was written, wherever damage still stands in it."""
        if not self.damages:
            return self.data
        data = bytearray(self.data)
        for position, wrong, right in self.damages:
            end = position + len(wrong)
            if data[position:end] == wrong:
                data[position:end] = right
        return data

    def replace(self, position: int, wrong: bytes, right: bytes) -> None:
        """A repair: wherever these bytes stand, or are about to stand, put others."""
        end = position + len(wrong)
        for content in (self.data, self.durable):
            if content[position:end] == wrong:
                content[position:end] = right
        for sync in self._syncs:
            content_then = sync.content
            if content_then is not None and content_then[position:end] == wrong:
                sync.content = content_then[:position] + right + content_then[end:]

    def settle(self, data: bytearray) -> None:
        """After a power loss: this is all there is, cached and durable, and no sync goes on."""
        self.data = data
        self.durable = bytearray(data)
        self.clean_bytes = len(data)
        self.is_removed = False
        self._syncs.clear()

    def _keep_what_is_synced(self) -> None:
        for sync in self._syncs:
            if sync.content is None:
                sync.content = bytes(self.data[: sync.size_bytes])


@dataclass(slots=True)
class DirectoryNode:
    """Names, durable names and the changes that lie between them, in order."""

    names: dict[str, FileNode | DirectoryNode] = field(default_factory=dict)
    durable_names: dict[str, FileNode | DirectoryNode] = field(default_factory=dict)
    changes: list[NameChange] = field(default_factory=list)


StoreNode = FileNode | DirectoryNode


@dataclass(frozen=True, slots=True)
class NameChange:
    """A change of names that happens as a whole or not at all."""

    gone: str | None
    new: str | None
    node: StoreNode


class DurableStore:
    """A tree of files and directories with crash semantics and faults on request."""

    def __init__(self, random: Random, *, page_bytes: int = PAGE_BYTES) -> None:
        self._random = random
        self._page_bytes = page_bytes
        self.root = DirectoryNode()
        self.space_bytes: int | None = None
        self.operations = 0
        self.dropped_pages = 0
        self._fail_at: int | None = None
        self._failing_syncs = 0
        self._broken: str | None = None

    # Faults.

    def fill_up(self, *, bytes_left: int) -> None:
        """Only this many more bytes fit."""
        self.space_bytes = self.used_bytes() + bytes_left

    def fail_operation(self, *, after: int) -> None:
        """The operation after so many good ones returns an error, once."""
        self._fail_at = self.operations + after

    def break_below(self, prefix: str) -> None:
        """One disk of several is gone: every operation on a path that begins so fails."""
        self._broken = prefix

    def fail_next_sync(self) -> None:
        self._failing_syncs += 1

    def heal(self) -> None:
        self.space_bytes = None
        self._fail_at = None
        self._failing_syncs = 0
        self._broken = None

    def flip_bit(self, path: str, *, position: int, bit: int) -> None:
        """The medium decays."""
        node = self.find(path)
        assert isinstance(node, FileNode), path
        node.flip(position, 1 << bit)

    def lose_content(self, path: str, *, bytes_left: int) -> None:
        """The medium decays: zeros are all that is left of a file."""
        node = self.find(path)
        assert isinstance(node, FileNode), path
        node.settle(bytearray(bytes_left))

    def lose_name(self, path: str) -> None:
        """The medium decays: a file is gone."""
        *parents, name = split(path)
        directory = self.find("/".join(parents))
        assert isinstance(directory, DirectoryNode) and not directory.changes, path
        del directory.names[name], directory.durable_names[name]

    def bring_back(self, path: str, node: FileNode) -> None:
        """A file has its old name again: its rename or its removal was never durable."""
        *parents, name = split(path)
        directory = self.find("/".join(parents))
        assert isinstance(directory, DirectoryNode) and not directory.changes, path
        names = {known: each for known, each in directory.names.items() if each is not node}
        directory.names = {**names, name: node}
        directory.durable_names = dict(directory.names)
        node.settle(bytearray(node.durable))

    # What the disk port is made of.

    def count_operation(self, path: str) -> None:
        """Every operation passes here, and the unlucky one fails."""
        self.operations += 1
        if self._fail_at is not None and self.operations > self._fail_at:
            self._fail_at = None
            raise DiskError(path, "input/output error")
        if self._broken is not None and path.startswith(self._broken):
            raise DiskError(path, "input/output error")

    def append(self, path: str, node: FileNode, data: bytes) -> None:
        self.count_operation(path)
        if self.space_bytes is not None:
            left = max(self.space_bytes - self.used_bytes(), 0)
            if left < len(data):
                node.append(data[: self._random.randint(0, left)])
                raise DiskFull(path, "no space left on device")
        node.append(data)

    def sync_fails(self) -> bool:
        if self._failing_syncs:
            self._failing_syncs -= 1
            return True
        return False

    def drop_pages(self, node: FileNode) -> None:
        """A sync failed: the kernel forgets some of the pages that it could not write."""
        node.lose_pages(self._mixture(node))
        self.dropped_pages += 1

    def sync_names(self, directory: DirectoryNode, changes: list[NameChange]) -> None:
        """These changes of names are durable (some may have become so already)."""
        done = {id(change) for change in changes}
        for change in directory.changes:
            if id(change) in done:
                _apply(change, directory.durable_names)
        directory.changes = [change for change in directory.changes if id(change) not in done]

    def use_chance(self, random: Random) -> None:
        """Replace the generator, for a test that must know what a power loss leaves."""
        self._random = random

    def lose_power(self) -> None:
        """Keep what is durable and, of the rest, whatever chance keeps."""
        self._lose_power_in(self.root)

    def unsynced_changes(self) -> list[NameChange]:
        """The changes of names that a power loss could undo now."""
        return [change for directory in _directories(self.root) for change in directory.changes]

    def used_bytes(self) -> int:
        return sum(len(node.data) for _, node in self.files())

    def files(self) -> Iterator[tuple[str, FileNode]]:
        """Every file with its path, sorted."""
        return _walk("", self.root)

    def find(self, path: str) -> StoreNode | None:
        node: StoreNode = self.root
        for name in split(path):
            if not isinstance(node, DirectoryNode):
                return None
            found = node.names.get(name)
            if found is None:
                return None
            node = found
        return node

    def _lose_power_in(self, directory: DirectoryNode) -> None:
        survivors = dict(directory.durable_names)
        for change in directory.changes:
            if self._random.random() < 0.5:
                _apply(change, survivors)
        directory.names = survivors
        directory.durable_names = dict(survivors)
        directory.changes = []
        for name in sorted(survivors):
            node = survivors[name]
            if isinstance(node, DirectoryNode):
                self._lose_power_in(node)
            else:
                node.settle(self._mixture(node))

    def _mixture(self, node: FileNode) -> bytearray:
        """Old and new content, mixed page by page; a page may be torn."""
        old, new = node.durable, node.data
        if old == new:
            return bytearray(new)
        random = self._random
        between = random.randint(min(len(old), len(new)), max(len(old), len(new)))
        size_bytes = random.choice((len(old), len(new), between))
        first_page = min(node.clean_bytes, size_bytes) // self._page_bytes
        mixed = new[:size_bytes].ljust(size_bytes, b"\0")
        for start in range(first_page * self._page_bytes, size_bytes, self._page_bytes):
            end = min(start + self._page_bytes, size_bytes)
            fate = random.random()
            torn_at = start if fate < 0.3 else end if fate < 0.8 else random.randint(start, end)
            mixed[start:torn_at] = _stretch(new, start, torn_at)
            mixed[torn_at:end] = _stretch(old, torn_at, end)
        return mixed


def split(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _stretch(content: bytearray, start: int, end: int) -> bytes:
    """Bytes of a page; what the file never had reads as zeros."""
    piece = bytes(content[start:end])
    return piece + bytes(end - start - len(piece))


def _apply(change: NameChange, names: dict[str, StoreNode]) -> None:
    gone = None if change.gone is None else names.pop(change.gone, None)
    if change.gone is not None and change.new is not None and gone is not change.node:
        # An earlier rename of the same file may have been lost: it leaves its oldest name then.
        for name in [name for name, node in names.items() if node is change.node]:
            del names[name]
    if change.new is not None:
        names[change.new] = change.node


def _walk(prefix: str, directory: DirectoryNode) -> Iterator[tuple[str, FileNode]]:
    for name in sorted(directory.names):
        node = directory.names[name]
        if isinstance(node, DirectoryNode):
            yield from _walk(f"{prefix}{name}/", node)
        else:
            yield prefix + name, node


def _directories(directory: DirectoryNode) -> Iterator[DirectoryNode]:
    yield directory
    for node in directory.names.values():
        if isinstance(node, DirectoryNode):
            yield from _directories(node)
