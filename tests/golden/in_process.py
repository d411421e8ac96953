"""Tidelog without sockets, threads or real time: a `Node` on a memory disk, driven by the talk.

Time stands still until nobody has anything left to do; then it jumps to the node's next deadline,
so a fetch that waits in vain costs nothing. Frames are cut by the same reader as in the real shell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, cast

from tests.golden.broker import SILENCE_S, Connection, Silence
from tests.golden.memory_disk import MemoryDisk
from tidelog.core.model.trace import NullTrace
from tidelog.core.node.node import Node
from tidelog.core.node.ports import Outbox, Part
from tidelog.core.node.settings import NodeSettings
from tidelog.core.storage.disk import FileSlice, read_slice
from tidelog.core.wire.frames import BadFrame, FrameReader, PartialFrameBudget

WALL_START_MS = 1_800_000_000_000
HOST, PORT = "localhost", 9092
SETTINGS = {
    "node.id": "1",
    "log.dirs": "data",
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
}
PARTIAL_FRAMES_BYTES_MAX = 256 * 1024 * 1024


class InProcessTidelog:
    """A broker that is an object."""

    host = HOST
    port_names: ClassVar = {PORT: "<port>"}
    is_eventual = False

    def __init__(self, settings_beside: Mapping[str, str] | None = None) -> None:
        self._now_ms = 0
        self._deadline_ms: int | None = None
        self._connections: dict[int, InProcessConnection] = {}
        self._disk = MemoryDisk()
        settings = NodeSettings.of({**SETTINGS, **(settings_beside or {})})
        self.request_bytes_max = settings.integer("socket.request.max.bytes")
        self.budget = PartialFrameBudget(
            PARTIAL_FRAMES_BYTES_MAX, request_bytes_max=self.request_bytes_max
        )
        self.node = Node(
            settings=settings,
            disk=self._disk,
            outbox=cast("Outbox", self),  # all but links, which a node alone does not open
            trace=NullTrace(),
            random=Random(1),
            wall_ms=lambda now_ms: WALL_START_MS + now_ms,
        )
        self.node.start(self._now_ms)
        while self._grant_syncs():
            pass

    # What a talk needs.

    def connect(self) -> Connection:
        connection = InProcessConnection(self, len(self._connections) + 1)
        self._connections[connection.id] = connection
        self.node.on_connection_opened(connection.id, "golden", self._now_ms)
        return connection

    def clock_ms(self) -> int:
        return WALL_START_MS + self._now_ms

    def pause(self, duration_ms: int) -> None:
        self._pass_time_until(self._now_ms + duration_ms)

    # What connections need.

    def on_frame(self, connection: int, frame: memoryview) -> None:
        self.node.on_frame(connection, frame, self._now_ms)
        self.node.end_of_tick(self._now_ms)

    def step(self, until_ms: int) -> bool:
        """Let one thing happen: a sync, or the next deadline; False when there is none in time."""
        if self._grant_syncs():
            return True
        if self._deadline_ms is None or self._deadline_ms > until_ms:
            return False
        self._now_ms = max(self._now_ms, self._deadline_ms)
        self._deadline_ms = None
        self.node.on_timer(self._now_ms)
        self.node.end_of_tick(self._now_ms)
        return True

    @property
    def now_ms(self) -> int:
        return self._now_ms

    # The node's outbox.

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        data = b"".join(read_slice(p) if isinstance(p, FileSlice) else bytes(p) for p in parts)
        assert len(data) == 4 + int.from_bytes(data[:4], "big"), "the size must fit the answer"
        self._connections[connection].answers.append(data[4:])

    def close(self, connection: int, reason: str) -> None:
        self._connections[connection].is_closed = True

    def pause_reading(self, connection: int) -> None:
        """Nothing to stop: what a talk sends next comes after the answer that is waited for."""

    def resume_reading(self, connection: int) -> None: ...

    def arm(self, deadline_ms: int) -> None:
        if self._deadline_ms is None or deadline_ms < self._deadline_ms:
            self._deadline_ms = deadline_ms

    def halt(self, reason: str) -> None:
        raise AssertionError(f"the node halted: {reason}")

    def _grant_syncs(self) -> bool:
        wishes, self._disk.wishes = self._disk.wishes, []
        for file in wishes:
            self.node.on_synced(file, file.size_bytes, self._now_ms)
        if wishes:
            self.node.end_of_tick(self._now_ms)
        return bool(wishes)

    def _pass_time_until(self, until_ms: int) -> None:
        while self.step(until_ms):
            pass
        self._now_ms = until_ms


class InProcessConnection:
    """One client of the node."""

    def __init__(self, broker: InProcessTidelog, id_: int) -> None:
        self.id = id_
        self.answers: deque[bytes] = deque()
        self.is_closed = False
        self._broker = broker
        self._reader = FrameReader(broker.request_bytes_max, broker.budget)

    def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self.is_closed:
            buffer = self._reader.buffer()
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            self._reader.wrote(count)
            rest = rest[count:]
            self._cut_frames()

    def receive(self, patience_s: float = SILENCE_S) -> bytes | None:
        until_ms = self._broker.now_ms + int(patience_s * 1000)
        while not self.answers:
            if self.is_closed:
                return None
            if not self._broker.step(until_ms):
                raise Silence(f"nothing within {patience_s:.0f} s")
        return self.answers.popleft()

    def close(self) -> None:
        self._reader.close()
        if not self.is_closed:
            self.is_closed = True
            self._broker.node.on_connection_closed(self.id, self._broker.now_ms)

    def _cut_frames(self) -> None:
        try:
            while (frame := self._reader.next_frame()) is not None:
                self._broker.on_frame(self.id, frame)
        except BadFrame:
            self._broker.node.on_connection_closed(self.id, self._broker.now_ms)
            self.is_closed = True
