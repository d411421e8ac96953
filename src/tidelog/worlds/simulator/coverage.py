"""Coverage: which events of the trace never fired, because a seed that never cuts proves nothing.

The catalogue is read from the source: every event class that some room of the core, the clients or
the simulator itself hands to `emit`, and those that are made in one place and emitted in another:
whatever a module named `events` has, what the quorum's machine returns, every metadata change.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from typing import get_args

from tidelog.core.metadata.changes import Change
from tidelog.core.quorum.values import RoleChanged, VoteGranted

ROOMS = (
    "tidelog.core.storage",
    "tidelog.core.controller",
    "tidelog.core.quorum",
    "tidelog.core.replication",
    "tidelog.core.node",
    "tidelog.core.coordinator",
    "tidelog.client",
    "tidelog.worlds.simulator",
)
EVENTS_MODULE = "events"
OF_ONE_BROKER = ("tidelog.core.storage", "tidelog.worlds.simulator")
"""The profile `storage` is about these; what a cluster and its clients do is the other's."""
OF_SEVERAL = frozenset({"LogTruncated", "LogStartedAnew", "BytesHeld", "BytesReleased", "Wiped"})
"""Of these rooms: what needs other replicas, or links between nodes."""
OF_COORDINATORS = frozenset({"CoordinatorLoaded", "CoordinatorDropped"})
"""Only these profiles have them; their clients are not those of the client room."""
WITH_COORDINATORS = ("groups", "transactions")
OF_TRANSACTIONS = frozenset(
    {
        "MarkersAbandoned",
        "TransactionCommitted",
        "TransactionAborted",
        "CommitInDoubt",
        "FencedBySuccessor",
        "FencedByClock",
        "FencedCommit",
        "WriteGivenUp",
        "RecordsSkipped",
        "CoordinatorMoved",
        "TransactionStateChanged",
    }
)
"""Only the profile `transactions` has them."""
RETURNED: tuple[type, ...] = (RoleChanged, VoteGranted, *get_args(Change))
"""Values of pure machines that a node emits."""


@cache
def catalogue(profile: str = "replication") -> frozenset[str]:
    """The names of all events that can be emitted in runs of a profile."""
    is_lone = profile == "storage"
    names: set[str] = set() if is_lone else {event.__name__ for event in RETURNED}
    rooms = list(OF_ONE_BROKER if is_lone else ROOMS)
    if profile in WITH_COORDINATORS:
        rooms.remove("tidelog.client")
    for room in rooms:
        package = importlib.import_module(room)
        for module in pkgutil.walk_packages(package.__path__, f"{room}."):
            if not module.name.endswith("__main__"):
                tree = ast.parse(inspect.getsource(importlib.import_module(module.name)))
                names |= emitted(tree)
                if module.name.endswith(f".{EVENTS_MODULE}"):
                    names |= defined(tree)
    if profile not in WITH_COORDINATORS:
        names -= OF_COORDINATORS
    if profile != "transactions":
        names -= OF_TRANSACTIONS
    return frozenset(names - OF_SEVERAL if is_lone else names)


def defined(tree: ast.Module) -> set[str]:
    """The public classes of a module, without the words that are chosen from (enums)."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and not any(isinstance(base, ast.Name) and "Enum" in base.id for base in node.bases)
    }


def emitted(tree: ast.Module) -> set[str]:
    """Names of the classes whose values stand in a call of `emit` or `_emit`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_emit(node.func):
            names |= {name for argument in node.args if (name := _class_of(argument)) is not None}
    return names


def _is_emit(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr.strip("_") == "emit"


def _class_of(argument: ast.expr) -> str | None:
    if not isinstance(argument, ast.Call):
        return None
    function = argument.func
    name = function.attr if isinstance(function, ast.Attribute) else None
    if isinstance(function, ast.Name):
        name = function.id
    return name if name is not None and name[:1].isupper() else None
