"""The client side of a connection that a process opened: requests out, replies cut into frames.

A connection ends for one of four reasons. "refused": no process listens. "closed", "reset": the
other side ended an open one. "unreachable": no answer to the connect within CONNECT_TIMEOUT_MS; a
silent host (no power, a cut) looks like a slow one, so it takes that long. An open link to a silent
host stays open: request timeouts are up to whoever sent the requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.wire.frames import BadFrame, FrameReader

if TYPE_CHECKING:
    from tidelog.worlds.simulator.host_process import HostProcess

CONNECT_TIMEOUT_MS = 10_000
"""As Kafka's socket.connection.setup.timeout.ms."""
ANSWER_BYTES_MAX = 16 * 1024 * 1024


class OutgoingLink:
    """From the connect to its end; after a `drop` no event is delivered any more."""

    def __init__(self, process: HostProcess, number: int, host: str, purpose: str) -> None:
        self._process = process
        self._number = number
        self._reader = FrameReader(ANSWER_BYTES_MAX, process.budget)
        self._received = bytearray()
        self._is_over = False
        self.unsent: list[bytes | bytearray | memoryview] = []
        self._patience = process.world.after(CONNECT_TIMEOUT_MS * 1_000, self._give_up)
        self._end = process.network.connect(process.host, host, self, purpose=purpose)

    # Events of the network.

    def on_connected(self) -> None:
        self._patience.cancel()
        self._process.deliver(self._opened)

    def on_bytes(self, data: bytes) -> None:
        self._received += data
        self._process.deliver(self._read)

    def on_closed(self, reason: str) -> None:
        self._patience.cancel()
        self._process.deliver(lambda: self._closed(reason))

    # Calls of the process.

    def send_unsent(self) -> None:
        """Whatever was sent in this tick, in one piece."""
        data = b"".join(self.unsent)
        self.unsent.clear()
        if self._end.is_open:
            self._end.send(data)

    def drop(self) -> None:
        self.forget()
        self._end.close()

    def forget(self) -> None:
        """Deliver and send nothing more."""
        self._is_over = True
        self._patience.cancel()
        self.unsent.clear()
        self._reader.close()

    def _opened(self) -> None:
        if not self._is_over:
            self._process.link_opened(self._number)

    def _closed(self, reason: str) -> None:
        if not self._is_over:
            self.forget()
            self._process.link_closed(self._number, reason)

    def _give_up(self) -> None:
        """Whatever was under way to the silent host is lost."""
        self._end.vanish()
        self._process.deliver(lambda: self._closed("unreachable"))

    def _read(self) -> None:
        reader = self._reader
        try:
            while not self._is_over:
                frame = reader.next_frame()
                if frame is not None:
                    self._process.link_answered(self._number, frame)
                elif not self._received:
                    return
                else:
                    buffer = reader.buffer()
                    count = min(len(buffer), len(self._received))
                    buffer[:count] = self._received[:count]
                    reader.wrote(count)
                    del self._received[:count]
        except BadFrame:
            self.drop()
            self._process.link_closed(self._number, "reset")
