"""Connections: which of them are dropped with answers that have not left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tidelog.core.node.connections.connection import Connections
from tidelog.core.node.connections.request import Request
from tidelog.core.node.ports import Part

PRODUCE, FETCH = 0, 1


class Peers:
    """What left, by connection."""

    def __init__(self) -> None:
        self.replies: list[int] = []
        self.closed: list[int] = []

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        self.replies.append(connection)

    def close(self, connection: int, reason: str) -> None:
        self.closed.append(connection)


def test_only_answers_to_such_requests_cost_their_connection() -> None:
    peers = Peers()
    connections = Connections(cast("Any", peers))

    def ask(number: int, api_key: int) -> Request:
        connections.add(number, "somewhere")
        request = Request(connections.open[number], api_key, 9, 1, None, memoryview(b""))
        connections.open[number].add(request)
        return request

    ask(1, PRODUCE).answer_bytes(b"ok")
    ask(2, FETCH).answer_bytes(b"records")
    ask(3, PRODUCE)  # not answered yet
    ask(4, PRODUCE).answer_nothing()

    dropped = connections.drop_answered(PRODUCE, "paused")
    connections.flush()

    assert [(each.connection, each.reason) for each in dropped] == [(1, "paused")]
    assert (peers.closed, peers.replies) == ([1], [2])
    assert sorted(connections.open) == [2, 3, 4]
