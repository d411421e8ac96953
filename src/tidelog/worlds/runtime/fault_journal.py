"""The journal of a node: every request that it was given and every answer it gave, as JSON lines.

A line is in the file when the call returns, so a killed broker's journal ends with what it did
last. Requests are noted when they reach the node, after any fault that held them; answers when the
node gives them, before any fault that holds them.
"""

from __future__ import annotations

import json
import os
import time
from base64 import b64encode
from collections import deque
from collections.abc import Sequence

from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import DiskError, FileSlice, read_slice
from tidelog.core.wire.headers import RequestHeader

_SIZE_BYTES = 4


class Journal:
    """Appends to one file, which it makes if need be. OSError if it cannot."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._requests: dict[int, deque[RequestHeader]] = {}

    def request(self, connection: int, header: RequestHeader, frame: memoryview) -> None:
        self._requests.setdefault(connection, deque()).append(header)
        self._write(connection, header, header.correlation_id, "request", bytes(frame))

    def answer(self, connection: int, parts: Sequence[Part]) -> None:
        """Answers come in the order of the requests; some requests never get one (acks=0)."""
        try:
            frame = b"".join(_bytes_of(part) for part in parts)[_SIZE_BYTES:]
        except DiskError:
            return  # nobody can be sent it either
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        pending = self._requests.get(connection, deque())
        while pending and pending[0].correlation_id != correlation_id:
            pending.popleft()
        header = pending.popleft() if pending else None
        self._write(connection, header, correlation_id, "answer", frame)

    def closed(self, connection: int) -> None:
        self._requests.pop(connection, None)

    def close(self) -> None:
        os.close(self._file)

    def _write(
        self,
        connection: int,
        header: RequestHeader | None,
        correlation_id: int,
        direction: str,
        frame: bytes,
    ) -> None:
        """Without a header: the request came before the journal began."""
        line = {
            "at_us": time.monotonic_ns() // 1_000,
            "wall_ms": time.time_ns() // 1_000_000,
            "pid": os.getpid(),
            "connection": connection,
            "client_id": None if header is None else header.client_id,
            "api_key": None if header is None else header.api_key,
            "version": None if header is None else header.api_version,
            "correlation_id": correlation_id,
            "direction": direction,
            "frame": b64encode(frame).decode("ascii"),
        }
        data = memoryview(json.dumps(line).encode() + b"\n")
        while data:
            data = data[os.write(self._file, data) :]


def _bytes_of(part: Part) -> bytes | bytearray | memoryview:
    return read_slice(part) if isinstance(part, FileSlice) else part
