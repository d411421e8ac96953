"""Clients of a broker that has just started wait until it knows the cluster.

Before it has read its own registration, its metadata is that of another time, or empty. Whoever
asked it then would hear that a topic does not exist, or who led it long ago. Kafka opens its
listener only afterwards; here one listener serves other nodes as well, so the requests wait.

They wait in bounded memory: whoever finds it full is disconnected, and clients try again.

Which APIs wait is said in their own files (`WAITS_FOR_METADATA`): those that ask about the cluster.
Produce and Fetch do not: they may be large, and "not here" makes every client look the leader up
again.
"""

from __future__ import annotations

from tidelog.core.model.limits import STARTUP_GATE_BYTES_MAX, STARTUP_GATE_REQUEST_BYTES
from tidelog.core.node.connections.request import Handle, Request


class StartupGate:
    """Requests in the order in which they came, with copies of their bodies."""

    def __init__(self) -> None:
        self._requests: list[tuple[Request, bytes]] = []
        self.size_bytes = 0
        """What the waiting requests are counted for, those of lost connections included."""

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: Request) -> None:
        """Keep it for later, or close its connection if too much is waiting."""
        assert request.body is not None
        size_bytes = _counted_bytes(request.body)
        if self.size_bytes + size_bytes > STARTUP_GATE_BYTES_MAX:
            self._forget_lost_connections()
        if self.size_bytes + size_bytes > STARTUP_GATE_BYTES_MAX:
            request.close("the broker is starting, and too many requests wait for it")
            return
        self._requests.append((request, bytes(request.body)))
        self.size_bytes += size_bytes

    def open(self, handle: Handle, now_ms: int) -> None:
        """The broker knows the cluster now."""
        requests, self._requests = self._requests, []
        self.size_bytes = 0
        for request, body in requests:
            if _is_waited_for(request):
                request.body = memoryview(body)
                handle(request, now_ms)
                request.body = None

    def _forget_lost_connections(self) -> None:
        self._requests = [each for each in self._requests if _is_waited_for(each[0])]
        self.size_bytes = sum(_counted_bytes(body) for _, body in self._requests)

    def check(self) -> None:
        assert self.size_bytes == sum(_counted_bytes(body) for _, body in self._requests)
        assert self.size_bytes <= STARTUP_GATE_BYTES_MAX


def _counted_bytes(body: bytes | memoryview) -> int:
    return len(body) + STARTUP_GATE_REQUEST_BYTES


def _is_waited_for(request: Request) -> bool:
    return request.connection is not None and not request.connection.is_failed
