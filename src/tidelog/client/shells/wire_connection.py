"""One blocking connection to a broker for single requests: no retries, no metadata, no threads."""

from __future__ import annotations

import socket
from collections import deque
from types import TracebackType
from typing import Self

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.exchange import SIZE, decode_response, request_frame
from tidelog.core.wire.links import Introduction
from tidelog.core.wire.schema import Message

_RECEIVE_BYTES_MAX = 1 << 20


class WireConnection:
    """`request` sends one and gives its response; `send_request` and `receive` are its halves."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_s: float,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        """OSError if it cannot be made."""
        self.client_id = client_id
        self.correlation_id = 0
        """Of the request that was sent last."""
        self.socket = socket.socket()
        try:
            if receive_buffer_bytes is not None:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            self.socket.settimeout(timeout_s)
            self.socket.connect((host, port))
            if self.socket.getsockname() == self.socket.getpeername():
                # Nobody listens, and the port that we were given is that very one.
                raise ConnectionRefusedError
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def request(self, request: Message, version: int) -> Message:
        """Send a request and wait for its response."""
        self.send_request(request, version)
        return self.receive(request.api_key, version)

    def send_request(self, request: Message, version: int) -> None:
        """A request whose response is received later, or never."""
        self.socket.sendall(self.next_frame(request, version))

    def next_frame(self, request: Message, version: int) -> bytes:
        """The bytes of the next request, with its size."""
        self.correlation_id += 1
        return request_frame(
            request, version, correlation_id=self.correlation_id, client_id=self.client_id
        )

    def receive(self, api_key: int, version: int) -> Message:
        """The next response, which must be the one to the request that was sent last."""
        correlation_id, response = decode_response(self.read_frame(), api_key, version)
        assert correlation_id == self.correlation_id, "responses come in the order of requests"
        return response

    def introduce(self, introduction: Introduction) -> None:
        """Before anything else; raises IntroductionFailed."""
        requests = deque(introduction.begin())
        while requests:
            request, version = requests.popleft()
            requests += introduction.on_answer(self.request(request, version))
        assert introduction.is_over, "an introduction that asks no more is over"

    def read_frame(self) -> bytes:
        (size,) = SIZE.unpack(self.read_exactly(SIZE.size))
        return self.read_exactly(size)

    def read_exactly(self, count: int) -> bytes:
        """This many bytes; ConnectionClosed when the broker closes before."""
        received = bytearray()
        while len(received) < count:
            piece = self.socket.recv(min(count - len(received), _RECEIVE_BYTES_MAX))
            if not piece:
                raise BrokerClosed("the broker closed the connection")
            received += piece
        return bytes(received)


class BrokerClosed(TidelogError, ConnectionError):
    """The broker closed the connection in an orderly way."""
