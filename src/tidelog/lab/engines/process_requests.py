"""Single requests to broker processes, each on a connection of its own, so none delays another.

A request leaves before `ask` comes back, so requests arrive in the order of the story; a thread
waits for the answer.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from random import SystemRandom

from tidelog.client.shells.wire_connection import BrokerClosed, WireConnection
from tidelog.core.wire.member_proof import MemberProof
from tidelog.core.wire.schema import Message
from tidelog.core.wire.scram import Credentials
from tidelog.lab.engine import MissingAnswer
from tidelog.lab.engines.story_clock import StoryClock

Address = tuple[str, int]


class ProcessPending:
    """A request under way."""

    def __init__(self) -> None:
        self.answer: Message | MissingAnswer | None = None
        self.answered_us: int | None = None


class ProcessRequests:
    """Every request of a story, until `close`."""

    def __init__(self, clock: StoryClock, on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._on_change = on_change
        self._open: set[WireConnection] = set()
        self._lock = threading.Lock()

    def ask(
        self,
        address: Address,
        request: Message,
        version: int,
        *,
        client: str,
        timeout_s: float,
        secret: str | None = None,
    ) -> ProcessPending:
        """With the secret of the cluster it is asked as a node of the cluster."""
        pending = ProcessPending()
        try:
            connection = self._send(address, request, version, client, timeout_s, secret)
        except OSError as error:
            self._answer(pending, _no_answer(error))
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
        """Whatever still waits gets no answer."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_RDWR)

    def _send(
        self,
        address: Address,
        request: Message,
        version: int,
        client: str,
        timeout_s: float,
        secret: str | None = None,
    ) -> WireConnection:
        connection = WireConnection(*address, client_id=client, timeout_s=timeout_s)
        with self._lock:
            self._open.add(connection)
        if secret is not None:
            credentials = Credentials.of(secret)
            connection.introduce(MemberProof(credentials, user=client, random=SystemRandom()))
        connection.send_request(request, version)
        return connection

    def _wait(
        self, pending: ProcessPending, connection: WireConnection, api_key: int, version: int
    ) -> None:
        try:
            self._answer(pending, connection.receive(api_key, version))
        except OSError as error:
            self._answer(pending, _no_answer(error))
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _answer(self, pending: ProcessPending, answer: Message | MissingAnswer) -> None:
        pending.answered_us = self._clock.now_us
        pending.answer = answer
        self._on_change()


def _no_answer(error: OSError) -> MissingAnswer:
    if isinstance(error, BrokerClosed):
        return MissingAnswer("closed")
    if isinstance(error, ConnectionRefusedError):
        return MissingAnswer("refused")
    if isinstance(error, TimeoutError):
        return MissingAnswer("timed out")
    return MissingAnswer("reset")
