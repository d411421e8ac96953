"""The Disk port over the operating system: a bounded pool of descriptors, syncs on threads.

Everything here but the sync threads runs in the loop's thread. A thread that uses a descriptor does
so under a *pin*, so that the pool never closes it (and the system never gives its number to another
file) while the thread still reads or syncs.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable
from typing import NoReturn
from weakref import WeakValueDictionary

from tidelog.core.storage.disk import DiskError, DiskFull, SyncListener
from tidelog.worlds.runtime.sync_thread import SyncResult, SyncThread

_PARTS_MAX = 1024
"""The longest list of parts that one `writev` takes."""
_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_READ_AHEAD_BYTES = 128 * 1024
_RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)


class OsFile:
    """One file. Its descriptor may be taken away between two calls and is opened again."""

    __slots__ = (
        "__weakref__",
        "_disk",
        "_sync_thread",
        "fd",
        "owner",
        "path",
        "pins",
        "size_bytes",
        "used",
    )

    def __init__(self, disk: OsDisk, path: str, sync_thread: SyncThread) -> None:
        self.path = path
        self.size_bytes = 0
        self.owner: SyncListener | None = None
        self.fd: int | None = None
        self.pins = 0
        self.used = False
        """Since the pool last looked for a descriptor to close."""
        self._disk = disk
        self._sync_thread = sync_thread

    def append(self, *parts: bytes | bytearray | memoryview) -> None:
        fd = self.fd
        if fd is None:
            fd = self.descriptor()
        self.used = True
        try:
            if len(parts) == 1:
                written = os.write(fd, parts[0])
                wanted = len(parts[0])
            else:
                written = os.writev(fd, parts[:_PARTS_MAX])
                wanted = sum(map(len, parts))
        except OSError as error:
            _raise(self.path, error)
        self.size_bytes += written
        if written < wanted:
            self.append(*_without_first(parts, written))

    def read(self, position: int, length: int) -> bytes:
        fd = self.fd
        if fd is None:
            fd = self.descriptor()
        self.used = True
        try:
            data = os.pread(fd, length, position)
            while len(data) < length:
                more = os.pread(fd, length - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            _raise(self.path, error)
        return data

    def read_cached_into(self, buffer: memoryview, position: int) -> int | None:
        """Bytes that need no disk access, at least one; 0 at the end; None: read in a thread.

        On a file system that cannot tell (and may block), this reads like any other read.
        """
        fd = self.descriptor()
        try:
            return os.preadv(fd, [buffer], position, self._disk.read_flags)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP or not self._disk.read_flags:
                _raise(self.path, error)
        self._disk.read_flags = 0
        return self.read_cached_into(buffer, position)

    def is_cached(self, position: int, length: int) -> bool:
        """Whether reading this will hardly touch the disk: some of its bytes are asked for.

        The kernel reads ahead at least a window at a time, so one byte speaks for its window.
        """
        end = position + length
        probe = memoryview(bytearray(1))
        for probe_position in (*range(position, end - 1, _READ_AHEAD_BYTES), end - 1):
            if self.read_cached_into(probe, probe_position) is None:
                return False
        return True

    def truncate(self, size_bytes: int) -> None:
        try:
            os.ftruncate(self.descriptor(), size_bytes)
        except OSError as error:
            _raise(self.path, error)
        self.size_bytes = size_bytes

    def rename(self, path: str) -> None:
        try:
            os.rename(self.path, path)
        except OSError as error:
            _raise(self.path, error)
        self._disk.forget_path(self)
        self.path = path
        self._disk.remember_path(self)

    def sync(self) -> None:
        self.pin()
        self._sync_thread.sync_file(self, self.descriptor(), self.size_bytes)

    def sync_now(self) -> None:
        try:
            os.fdatasync(self.descriptor())
        except OSError as error:
            _raise(self.path, error)

    def remove(self) -> None:
        self._disk.forget_path(self)
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            _raise(self.path, error)
        self.close()

    def close(self) -> None:
        self._disk.give_back_descriptor(self)

    def descriptor(self) -> int:
        """The open descriptor, valid until the next call into the disk unless pinned."""
        self.used = True
        if self.fd is None:
            self._disk.lend_descriptor(self, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            assert self.fd is not None
        return self.fd

    def pin(self) -> None:
        self.descriptor()
        self.pins += 1

    def unpin(self) -> None:
        self.pins -= 1
        assert self.pins >= 0
        self._disk.close_if_unwanted(self)


class OsDisk:
    """Real directories. One sync thread for each log directory; made at its first request."""

    def __init__(
        self, log_directories: list[str], *, descriptors_max: int, wake: Callable[[], None]
    ) -> None:
        """`wake` is called by sync threads; the loop's thread then calls `collect`."""
        assert descriptors_max > 0
        self._results: deque[SyncResult] = deque()
        self._sync_threads = {
            _directory(path): SyncThread(path, self._results, wake) for path in log_directories
        }
        self.read_flags = _RWF_NOWAIT
        """Not to wait for the disk; nothing once a file system turned out not to know that."""
        self._descriptors_max = descriptors_max
        self._open_files: deque[OsFile] = deque()
        """Files that have a descriptor; the first is the next candidate to lose it."""
        self._unwanted: set[OsFile] = set()
        """Files closed while pinned."""
        self._by_path: WeakValueDictionary[str, OsFile] = WeakValueDictionary()

    def open(self, path: str) -> OsFile:
        known = self._by_path.get(path)
        if known is not None:
            return known
        file = OsFile(self, path, self._sync_thread(path))
        self.lend_descriptor(file, _OPEN_FLAGS)
        self.remember_path(file)
        return file

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list_names(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(directory))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            _raise(directory, error)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def make_directory(self, path: str) -> None:
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            _raise(path, error)

    def rename_directory(self, old: str, new: str) -> None:
        try:
            os.rename(old, new)
        except OSError as error:
            _raise(old, error)
        for path, file in list(self._by_path.items()):
            if path.startswith(_directory(old)):
                self.forget_path(file)
                file.path = new + path[len(old) :]
                self.remember_path(file)

    def remove_directory(self, path: str) -> None:
        for known, file in list(self._by_path.items()):
            if known.startswith(_directory(path)):
                self.forget_path(file)
                file.close()
        try:
            _remove_tree(path)
        except OSError as error:
            _raise(path, error)

    def sync_directory(self, path: str) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            _raise(path, error)
        sync_thread = self._sync_thread(path)
        sync_thread.sync_directory(OsFile(self, path, sync_thread), fd)

    def sync_directory_now(self, path: str) -> None:
        try:
            fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            _raise(path, error)

    def collect(self) -> list[SyncResult]:
        """What the sync threads have done since the last call, in the order of the wishes."""
        results = []
        while self._results:
            result = self._results.popleft()
            result.release()
            if result.is_reported:
                results.append(result)
        return results

    def close(self) -> None:
        """Stop the threads after the wishes made so far and close all descriptors."""
        for sync_thread in self._sync_threads.values():
            sync_thread.stop()
        self.collect()
        for file in list(self._open_files):
            self.give_back_descriptor(file)

    @property
    def open_descriptors(self) -> int:
        return len(self._open_files)

    # What a file asks of its disk.

    def lend_descriptor(self, file: OsFile, flags: int) -> None:
        if len(self._open_files) >= self._descriptors_max:
            self._take_one_back()
        try:
            fd = self._open_descriptor(file.path, flags)
            file.size_bytes = os.fstat(fd).st_size
        except OSError as error:
            _raise(file.path, error)
        file.fd = fd
        self._open_files.append(file)

    def _open_descriptor(self, path: str, flags: int) -> int:
        while True:
            try:
                return os.open(path, flags, 0o644)
            except OSError as error:
                if error.errno not in _NO_DESCRIPTORS or not self._take_one_back():
                    raise

    def give_back_descriptor(self, file: OsFile) -> None:
        if file.fd is None:
            return
        if file.pins:
            self._unwanted.add(file)
            return
        self._open_files.remove(file)
        self._close(file)

    def close_if_unwanted(self, file: OsFile) -> None:
        if not file.pins and file in self._unwanted:
            self._unwanted.discard(file)
            self.give_back_descriptor(file)

    def remember_path(self, file: OsFile) -> None:
        self._by_path[file.path] = file

    def forget_path(self, file: OsFile) -> None:
        if self._by_path.get(file.path) is file:
            del self._by_path[file.path]

    def _take_one_back(self) -> bool:
        """Second chance: a file used since the last look goes to the end of the queue once."""
        for _ in range(2 * len(self._open_files)):
            file = self._open_files.popleft()
            if file.used or file.pins:
                file.used = False
                self._open_files.append(file)
                continue
            self._close(file)
            return True
        return False

    def _close(self, file: OsFile) -> None:
        assert file.fd is not None and not file.pins
        os.close(file.fd)
        file.fd = None

    def _sync_thread(self, path: str) -> SyncThread:
        for directory, sync_thread in self._sync_threads.items():
            if _directory(path).startswith(directory):
                return sync_thread
        raise AssertionError(f"{path} is in none of the log directories")


def _directory(path: str) -> str:
    return path.rstrip("/") + "/"


def _without_first(
    parts: tuple[bytes | bytearray | memoryview, ...], count: int
) -> list[memoryview]:
    rest = []
    for part in parts:
        if count < len(part):
            rest.append(memoryview(part)[count:])
        count = max(0, count - len(part))
    return rest


def _remove_tree(path: str) -> None:
    try:
        entries = list(os.scandir(path))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            _remove_tree(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(path)


def _raise(path: str, error: OSError) -> NoReturn:
    reason = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        raise DiskFull(path, reason) from error
    raise DiskError(path, reason) from error
