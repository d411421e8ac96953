"""A whole node that coordinates groups, asked over connections in real bytes."""

from __future__ import annotations

from typing import Any

from tests.golden.in_process import InProcessConnection, InProcessTidelog
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_response_header, request_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from tidelog.core.wire.messages.api_11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from tidelog.core.wire.messages.api_14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tidelog.core.wire.schema import Message

GROUP = "g"
SESSION_MS = 10_000
CLIENT_ID = "client"
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}


class GroupNode:
    """Clients by number; each has a connection of its own."""

    def __init__(self, *, has_topic: bool = True, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.world = InProcessTidelog({**_SETTINGS, **given})
        self._connections: dict[int, InProcessConnection] = {}
        self._sent: dict[int, tuple[int, int]] = {}
        if has_topic:
            self.ask(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4)

    def send(self, message: Message, version: int, *, client: int = 1) -> None:
        connection = self._connections.get(client)
        if connection is None:
            made = self.world.connect()
            assert isinstance(made, InProcessConnection)
            connection = self._connections[client] = made
        header = request_header(message.api_key, version, correlation_id=7, client_id=CLIENT_ID)
        frame = header + encode(message, version)
        self._sent[client] = (message.api_key, version)
        connection.send(len(frame).to_bytes(4, "big") + frame)

    def answer(self, client: int = 1) -> Any:
        """The answer to this client's request, for which time may pass."""
        frame = self._connections[client].receive()
        assert frame is not None, "the connection was closed"
        api_key, version = self._sent[client]
        view = memoryview(frame)
        _, position = read_response_header(view, api_key, version)
        return decode(MESSAGES[api_key][1], view, version, position)

    def waits(self, client: int) -> bool:
        return not self._connections[client].answers

    def ask(self, message: Message, version: int, *, client: int = 1) -> Any:
        self.send(message, version, client=client)
        return self.answer(client)

    def close(self, client: int) -> None:
        self._connections.pop(client).close()
        self.world.node.end_of_tick(self.world.now_ms)

    def pass_time(self, duration_ms: int) -> None:
        self.world.pause(duration_ms)

    # Members

    def joined(self, group: str = GROUP, *, client: int = 1, **fields: Any) -> Any:
        """Join without asking for an id first."""
        return self.ask(joining(group, **fields), 3, client=client)

    def stable(self, group: str = GROUP, *, client: int = 1, **fields: Any) -> str:
        """A stable group of one; its member's id."""
        answer = self.joined(group, client=client, **fields)
        own = SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"all")
        sync = syncing(answer.member_id, answer.generation_id, group, assignments=[own])
        assert self.ask(sync, 3, client=client).error_code == 0
        member_id: str = answer.member_id
        return member_id


def joining(group: str = GROUP, **fields: Any) -> JoinGroupRequest:
    usual = {
        "group_id": group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m")],
    }
    return JoinGroupRequest(**{**usual, **fields})


def syncing(member_id: str, generation: int, group: str = GROUP, **fields: Any) -> SyncGroupRequest:
    return SyncGroupRequest(group_id=group, generation_id=generation, member_id=member_id, **fields)
