"""The ports through which a node acts: an effect is a direct call, and the world carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidelog.core.storage.disk import FileSlice
from tidelog.core.wire.links import Wires

Part = bytes | bytearray | memoryview | FileSlice
"""A piece of an answer: bytes, or a slice of a file that the world reads while it sends."""


class EventClock(Protocol):
    """For answers that come at another time than their request."""

    now_ms: int
    """When the event that is being handled happened."""


class Outbox(Wires, Protocol):
    """What a node asks of its world. Calls never block and never call back into the node.

    It inherits connect, send and disconnect: links to other nodes.
    """

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        """Send one whole answer, size prefix included. Calls are in the order of the requests."""

    def close(self, connection: int, reason: str) -> None:
        """Drop the connection after what was replied before; the reason is for the log."""

    def pause_reading(self, connection: int) -> None:
        """Too many unanswered requests: deliver no further frame until resumed."""

    def resume_reading(self, connection: int) -> None: ...

    def arm(self, deadline_ms: int) -> None:
        """Call `on_timer` at or soon after this time. An earlier deadline replaces a later one."""

    def halt(self, reason: str) -> None:
        """Stop the whole process, uncleanly and at once: nothing more can be promised."""
