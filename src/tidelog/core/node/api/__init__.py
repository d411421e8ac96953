"""The APIs that a node serves: one file per API, found by its name `api_NN_name.py`.

Nothing is listed here. A file says all there is to know about its API:

- `API_KEY`, and `VERSIONS`, the versions that are served;
- `handle(node, request, now_ms)`, which answers, now or later;
- `ADVERTISED`, where ApiVersions must name more versions than are served;
- `BETWEEN_NODES = True`: nodes use it among themselves. ApiVersions does not name it, and who has
  not proved to be a node of the cluster gets CLUSTER_AUTHORIZATION_FAILED;
- `WAITS_FOR_METADATA = True`: about the cluster, so a broker that has just started answers only
  when it knows the cluster;
- `ANSWERS_ANY_VERSION = True`: `handle` is called for versions that are not served as well;
- `FORWARDED = True`: the active controller decides, and every other node forwards the request;
- `forward(node, request, frame, now_ms)`, where a forwarding node has more to do than that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages import MESSAGES, modules_by_api_key

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

FLAGS = frozenset({"BETWEEN_NODES", "WAITS_FOR_METADATA", "ANSWERS_ANY_VERSION", "FORWARDED"})


class Api(NamedTuple):
    """One served API, as its file describes it."""

    versions: range
    advertised: range
    """Versions that ApiVersions names; empty for an API between nodes."""
    handle: Callable[[Node, Request, int], None]
    is_between_nodes: bool
    waits_for_metadata: bool
    answers_any_version: bool
    is_forwarded: bool
    forward: Callable[[Node, Request, memoryview, int], None] | None


def read_api(module: ModuleType, *, api_key: int) -> Api:
    """What a module says about its API; a misspelt flag is found here, not by a client."""
    content = vars(module)
    flags = {name for name, value in content.items() if name.isupper() and value is True}
    assert flags <= FLAGS, f"{module.__name__}: there is no flag {sorted(flags - FLAGS)}"
    assert content["API_KEY"] == api_key, f"{module.__name__} has another API key"
    is_forwarded = content.get("FORWARDED", False)
    assert is_forwarded or "forward" not in content, f"{module.__name__} is not forwarded"
    versions = content["VERSIONS"]
    return Api(
        versions=versions,
        advertised=range(0)
        if content.get("BETWEEN_NODES")
        else content.get("ADVERTISED", versions),
        handle=content["handle"],
        is_between_nodes=content.get("BETWEEN_NODES", False),
        waits_for_metadata=content.get("WAITS_FOR_METADATA", False),
        answers_any_version=content.get("ANSWERS_ANY_VERSION", False),
        is_forwarded=is_forwarded,
        forward=content.get("forward"),
    )


HANDLERS: dict[int, Api] = {
    api_key: read_api(import_module(f"{__name__}.{name}"), api_key=api_key)
    for api_key, name in modules_by_api_key(__path__[0]).items()
}


def refuse_stranger(request: Request) -> None:
    """The answer to what only nodes may ask: it must be readable, and is not acted on.

    As Kafka answers whoever may not do CLUSTER_ACTION: an error for the whole request.
    """
    request_type, answer_type = MESSAGES[request.api_key]
    request.decode(request_type)
    request.answer(answer_type(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
