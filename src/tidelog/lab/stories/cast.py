"""The cast of the stories: brokers A, B and C, and a controller of its own that no story kills.

The documents speak of a controller beside the brokers, so most stories have one. Those about a
controller that dies with its broker say so.
"""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.lab.lab import Lab
from tidelog.lab.writers import WriteAnswer

A, B, C = 1, 2, 3
CONTROLLER = 4

NONE = ErrorCode.NONE
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
FENCED = ErrorCode.FENCED_LEADER_EPOCH
UNKNOWN_EPOCH = ErrorCode.UNKNOWN_LEADER_EPOCH
NOT_ENOUGH = ErrorCode.NOT_ENOUGH_REPLICAS


def ok(offset: int) -> WriteAnswer:
    """The answer to a batch that was stored from this offset on."""
    return WriteAnswer(NONE, offset)


def same_logs(lab: Lab, *nodes: int) -> None:
    """The segments of these replicas are equal, byte for byte."""
    first, *others = nodes
    for other in others:
        lab.true(f"log({first}) = log({other})", lab.log_bytes(first) == lab.log_bytes(other))
