"""The sync thread of a log directory: carries out sync requests in order, coalescing them.

The thread takes every request that is waiting, syncs each file or directory among them once, and
reports all of them in the order in which they were made. One sync covers every earlier request for
the same file, because all those bytes were written before it began. A failed sync is final: the
thread reports it once and carries out nothing more, since the kernel may have dropped the pages
that it could not write.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.worlds.runtime.os_disk import OsFile


class SyncResult:
    """A sync request and, once it was carried out, its outcome."""

    __slots__ = ("fd", "file", "is_directory", "is_reported", "reason", "size_bytes")

    def __init__(self, file: OsFile, fd: int, size_bytes: int, *, is_directory: bool) -> None:
        self.file = file
        """For a directory: a file that stands for it and only has a path."""
        self.fd = fd
        self.size_bytes = size_bytes
        self.is_directory = is_directory
        self.reason: str | None = None
        """Why it failed; None means that it is durable."""
        self.is_reported = not is_directory

    def release(self) -> None:
        """In the loop's thread: let go of the descriptor."""
        if self.is_directory:
            os.close(self.fd)
        else:
            self.file.unpin()


class SyncThread:
    def __init__(
        self, directory: str, results: deque[SyncResult], wake: Callable[[], None]
    ) -> None:
        self._directory = directory
        self._results = results
        self._wake = wake
        self._requests: SimpleQueue[SyncResult | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def sync_file(self, file: OsFile, fd: int, size_bytes: int) -> None:
        """The file is pinned by the caller and unpinned when its result is collected."""
        self._put(SyncResult(file, fd, size_bytes, is_directory=False))

    def sync_directory(self, directory: OsFile, fd: int) -> None:
        self._put(SyncResult(directory, fd, 0, is_directory=True))

    def stop(self) -> None:
        """Stop after all requests so far."""
        if self._thread is not None:
            self._requests.put(None)
            self._thread.join()
            self._thread = None

    def _put(self, request: SyncResult) -> None:
        self._requests.put(request)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"sync {self._directory}", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        has_failed = False
        while True:
            batch = [self._requests.get()]
            while not self._requests.empty():
                batch.append(self._requests.get())
            done: set[tuple[int, int]] = set()
            for request in batch:
                if request is None:
                    return
                if has_failed:
                    request.is_reported = False
                else:
                    request.reason = self._sync_once(request, done)
                    has_failed = request.reason is not None
                    request.is_reported = has_failed or not request.is_directory
                self._results.append(request)
            self._wake()

    def _sync_once(self, request: SyncResult, done: set[tuple[int, int]]) -> str | None:
        try:
            status = os.fstat(request.fd)
            target = (status.st_dev, status.st_ino)
            if target not in done:
                (os.fsync if request.is_directory else os.fdatasync)(request.fd)
                done.add(target)
        except OSError as error:
            return error.strerror or str(error)
        return None
