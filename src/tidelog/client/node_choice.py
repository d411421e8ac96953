"""Which node to ask when any will do: the least loaded one that can be reached.

A connection that is on its way is waited for before another one is opened, but only for a moment.
Java waits as long as it takes, which a paused broker can make very long:

  1. Leader 1 is stopped (SIGSTOP). Its kernel still accepts connections.
  2. A request times out. The producer reconnects to 1, the only leader it knows.
  3. Metadata would name the new leader, but waits for the connection to 1 that is on its way.
  4. The question for its versions times out, and everything begins again at 2.
"""

from __future__ import annotations

from random import Random

from tidelog.client.cluster_metadata import ClusterMetadata
from tidelog.client.config import Address
from tidelog.client.connections import NodeConnections, NodeKey

Node = tuple[NodeKey, Address]


def least_loaded(
    metadata: ClusterMetadata, connections: NodeConnections, random: Random, now_ms: int
) -> Node | None:
    """A usable node; else one that is connecting; else one to connect to; else none."""
    nodes = metadata.nodes()
    start = random.randrange(len(nodes))
    usable: list[Node] = []
    preparing: list[Node] = []
    connectable: list[Node] = []
    for key, address in nodes[start:] + nodes[:start]:
        if connections.is_usable(key):
            usable.append((key, address))
        elif connections.is_soon_ready(key, now_ms):
            preparing.append((key, address))
        elif connections.may_connect(key, now_ms):
            connectable.append((key, address))
    if usable:
        return min(usable, key=lambda node: connections.unanswered(node[0]))
    if preparing:
        return preparing[-1]
    if connectable:
        return min(connectable, key=lambda node: connections.last_attempt_ms(node[0]) or 0)
    return None
