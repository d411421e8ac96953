"""Single questions to broker processes, each on a connection of its own, so none holds up another.

The question leaves before `ask` comes back, so questions arrive in the order of the story; a thread
waits for the answer.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from struct import Struct

from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_response_header, request_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Message
from tidelog.lab.engine import NoAnswer
from tidelog.lab.engines.story_clock import StoryClock

_SIZE = Struct(">i")
_CORRELATION_ID = 1
Address = tuple[str, int]


class ProcessPending:
    """A question under way."""

    def __init__(self) -> None:
        self.answer: Message | NoAnswer | None = None
        self.answered_us: int | None = None


class Questions:
    """Everything that was ever asked in a story, until `close`."""

    def __init__(self, clock: StoryClock, on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._on_change = on_change
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def ask(
        self, address: Address, request: Message, version: int, *, client: str, timeout_s: float
    ) -> ProcessPending:
        pending = ProcessPending()
        try:
            connection = self._send(address, request, version, client, timeout_s)
        except OSError as error:
            self._tell(pending, _no_answer(error))
        else:
            threading.Thread(
                target=self._wait,
                args=(pending, connection, request.api_key, version),
                name=f"{client} asks {address[1]}",
                daemon=True,
            ).start()
        return pending

    def tell(
        self, address: Address, request: Message, version: int, *, client: str, timeout_s: float
    ) -> None:
        """Nobody learns whether it arrived; the connection stays, so nothing is lost by its end."""
        with suppress(OSError):
            self._send(address, request, version, client, timeout_s)

    def close(self) -> None:
        """Whoever waits for an answer is told that there is none."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _send(
        self, address: Address, request: Message, version: int, client: str, timeout_s: float
    ) -> socket.socket:
        header = request_header(
            request.api_key, version, correlation_id=_CORRELATION_ID, client_id=client
        )
        body = encode(request, version)
        connection = socket.create_connection(address, timeout_s)
        if connection.getsockname() == connection.getpeername():
            connection.close()  # nobody listens, and the port that we were given is that very one
            raise ConnectionRefusedError
        with self._lock:
            self._open.add(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"".join((_SIZE.pack(len(header) + len(body)), header, body)))
        return connection

    def _wait(
        self, pending: ProcessPending, connection: socket.socket, api_key: int, version: int
    ) -> None:
        try:
            (size,) = _SIZE.unpack(_read(connection, _SIZE.size))
            frame = memoryview(_read(connection, size))
        except (OSError, EOFError) as error:
            self._tell(pending, _no_answer(error))
        else:
            _, position = read_response_header(frame, api_key, version)
            self._tell(pending, decode(MESSAGES[api_key][1], frame, version, position))
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _tell(self, pending: ProcessPending, answer: Message | NoAnswer) -> None:
        pending.answered_us = self._clock.now_us
        pending.answer = answer
        self._on_change()


def _read(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            raise EOFError
        received += piece
    return bytes(received)


def _no_answer(error: OSError | EOFError) -> NoAnswer:
    if isinstance(error, EOFError):
        return NoAnswer("closed")
    if isinstance(error, ConnectionRefusedError):
        return NoAnswer("refused")
    if isinstance(error, TimeoutError):
        return NoAnswer("timed out")
    return NoAnswer("reset")
