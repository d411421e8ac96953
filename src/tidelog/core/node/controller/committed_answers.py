"""Answers of the controller: given when everything that they rest on is committed.

Also an answer that changes nothing may rest on a decision that is not durable yet. If this node
ceases to be the controller before that, the client hears NOT_CONTROLLER and asks its successor.
"""

from __future__ import annotations

from tidelog.core.node.connections.request import Request
from tidelog.core.node.metadata.metadata_log import MetadataLog
from tidelog.core.wire.schema import Message


def answer_when_committed(
    metadata: MetadataLog, request: Request, answer: Message, *, otherwise: Message, now_ms: int
) -> None:
    """`otherwise` is the answer of a node that is not the controller (any more)."""
    metadata.propose(
        [],
        lambda: request.answer(answer),
        now_ms=now_ms,
        otherwise=lambda: request.answer(otherwise),
    )
