"""Clients of a broker that has just started wait until it knows the cluster.

Before it has read its own registration, its metadata is that of another time, or empty. Whoever
asked it then would hear that a topic does not exist, or who led it long ago. Kafka opens its
listener only afterwards; here one listener serves other nodes as well, so the requests wait.

Which APIs wait is said in their own files (`WAITS_FOR_METADATA`): those that ask about the cluster.
Produce and Fetch do not: they may be large, and "not here" makes every client look the leader up
again.
"""

from __future__ import annotations

from tidelog.core.node.connections.request import Handle, Request


class StartupGate:
    """Requests in the order in which they came, with copies of their bodies."""

    def __init__(self) -> None:
        self._requests: list[tuple[Request, bytes]] = []

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: Request) -> None:
        assert request.body is not None
        self._requests.append((request, bytes(request.body)))

    def open(self, handle: Handle, now_ms: int) -> None:
        """The broker knows the cluster now."""
        requests, self._requests = self._requests, []
        for request, body in requests:
            if request.connection is not None and not request.connection.is_failed:
                request.body = memoryview(body)
                handle(request, now_ms)
                request.body = None
