"""AlterConfigs (api key 33), versions 0 to 2.

Gives topics and brokers exactly the settings that it names: the others go back to their defaults.
Apart from that it is decided as IncrementalAlterConfigs is (api_44_incremental_alter_configs.py),
and takes the same way to the controller. Loggers are unknown to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.node.api.api_44_incremental_alter_configs import decide_call, forward_rest
from tidelog.core.wire.messages.api_33_alter_configs import AlterConfigsRequest

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 33
VERSIONS = range(3)
FORWARDED = True


def forward(node: Node, request: Request, frame: memoryview, now_ms: int) -> None:
    """On the node that was asked: refuse what it can judge, and pass the rest on."""
    forward_rest(node, request, request.decode(AlterConfigsRequest), frame, now_ms)


def handle(node: Node, request: Request, now_ms: int) -> None:
    """On the controller."""
    decide_call(node, request, request.decode(AlterConfigsRequest), now_ms)
