"""The near side of a connection that a program opened: requests out, answers cut into frames.

Trouble has four words. "refused": nobody listens there. "closed" and "reset": it was open, and the
other side ended it. "unreachable": no answer to the connect within CONNECT_TIMEOUT_MS; a host that
is silent (no power, a cut) cannot be told from a slow one, so it takes that long. An open link to
a silent host stays open: whoever asked on it has to lose patience.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.wire.frames import BadFrame, FrameReader

if TYPE_CHECKING:
    from tidelog.worlds.simulator.program import Program

CONNECT_TIMEOUT_MS = 10_000
"""As Kafka's socket.connection.setup.timeout.ms."""
ANSWER_BYTES_MAX = 16 * 1024 * 1024


class OutgoingLink:
    """From the connect to its end; what comes after a `drop` is not told to anybody."""

    def __init__(self, program: Program, number: int, host: str, purpose: str) -> None:
        self._program = program
        self._number = number
        self._reader = FrameReader(ANSWER_BYTES_MAX, program.budget)
        self._received = bytearray()
        self._is_over = False
        self.unsent: list[bytes | bytearray | memoryview] = []
        self._patience = program.world.after(CONNECT_TIMEOUT_MS * 1_000, self._give_up)
        self._end = program.network.connect(program.host, host, self, purpose=purpose)

    # What the network says.

    def on_connected(self) -> None:
        self._patience.cancel()
        self._program.hear(self._opened)

    def on_bytes(self, data: bytes) -> None:
        self._received += data
        self._program.hear(self._read)

    def on_closed(self, reason: str) -> None:
        self._patience.cancel()
        self._program.hear(lambda: self._closed(reason))

    # What the program does.

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
        """Say nothing more, to nobody."""
        self._is_over = True
        self._patience.cancel()
        self.unsent.clear()
        self._reader.close()

    def _opened(self) -> None:
        if not self._is_over:
            self._program.link_opened(self._number)

    def _closed(self, reason: str) -> None:
        if not self._is_over:
            self.forget()
            self._program.link_closed(self._number, reason)

    def _give_up(self) -> None:
        """Whatever was under way to the silent host is lost."""
        self._end.vanish()
        self._program.hear(lambda: self._closed("unreachable"))

    def _read(self) -> None:
        reader = self._reader
        try:
            while not self._is_over:
                frame = reader.next_frame()
                if frame is not None:
                    self._program.link_answered(self._number, frame)
                elif not self._received:
                    return
                else:
                    place = reader.buffer()
                    count = min(len(place), len(self._received))
                    place[:count] = self._received[:count]
                    reader.wrote(count)
                    del self._received[:count]
        except BadFrame:
            self.drop()
            self._program.link_closed(self._number, "reset")
