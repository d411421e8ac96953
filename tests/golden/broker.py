"""What a conversation needs of a broker, and the form of it that any real process has: sockets."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from random import SystemRandom
from typing import Protocol

from tidelog.client.shells.wire_connection import WireConnection
from tidelog.core.wire.member_proof import MemberProof
from tidelog.core.wire.scram import Credentials

SILENCE_S = 120.0
"""So long nothing comes: then nothing will. Longer than every wait that a case asks for."""
DAY_MS = 86_400_000


class Silence(Exception):
    """The broker neither answers nor closes the connection."""


class Connection(Protocol):
    """One client connection."""

    def send(self, data: bytes) -> None:
        """Bytes as they are: the caller makes frames, or something worse."""

    def receive(self, patience_s: float = SILENCE_S) -> bytes | None:
        """The next answer without its size; None when the broker closed the connection.

        Raises Silence when neither happens.
        """

    def close(self) -> None: ...


class Broker(Protocol):
    """Something that speaks Kafka's protocol."""

    host: str
    is_eventual: bool
    """Whether what one request changed may take a moment to be seen by the next one."""

    @property
    def port_names(self) -> Mapping[int, str]:
        """Placeholders for its ports, which are others in every run."""

    def connect(self) -> Connection: ...

    def clock_ms(self) -> int:
        """The broker's wall clock, roughly."""

    def pause(self, duration_ms: int) -> None:
        """Let its time pass."""


class SocketConnection:
    """A TCP connection."""

    def __init__(self, host: str, port: int, *, secret: str | None = None) -> None:
        """With a cluster's secret it is a connection of one of its nodes."""
        self._wire = WireConnection(host, port, client_id="golden", timeout_s=SILENCE_S)
        if secret is not None:
            credentials = Credentials.of(secret)
            self._wire.introduce(MemberProof(credentials, user="golden", random=SystemRandom()))

    def send(self, data: bytes) -> None:
        try:
            self._wire.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was closed meanwhile: `receive` will say so

    def receive(self, patience_s: float = SILENCE_S) -> bytes | None:
        self._wire.socket.settimeout(patience_s)
        try:
            return self._wire.read_frame()
        except ConnectionError:
            return None
        except TimeoutError:
            raise Silence(f"nothing within {patience_s:.0f} s") from None

    def close(self) -> None:
        self._wire.close()


class SocketBroker:
    """A broker process at an address: Apache Kafka, or Tidelog as it ships."""

    is_eventual = True

    def __init__(
        self, host: str, port: int, *, port_names: Mapping[int, str] | None = None
    ) -> None:
        self.host = host
        self.port = port
        self.port_names = {port: "<port>"} if port_names is None else port_names

    def connect(self) -> Connection:
        return SocketConnection(self.host, self.port)

    def clock_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def pause(self, duration_ms: int) -> None:
        threading.Event().wait(duration_ms / 1000)  # a process of its own: only waiting helps
