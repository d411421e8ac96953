"""The cluster as answers show it: addresses of brokers, and which replicas cannot be reached."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.core.metadata.cluster import ListenerEndpoint, PartitionState, RegisteredBroker
from tidelog.core.metadata.image import ClusterImage

NO_NODE = -1
"""How answers say "no leader" and "no controller"."""

ALL_TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
ALL_GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
ALL_CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Without an authorizer everybody may do everything: one bit per operation of the resource."""


def address(broker: RegisteredBroker) -> ListenerEndpoint:
    """Where clients reach a broker."""
    return broker.endpoints[0]


def address_of(image: ClusterImage, broker_id: int) -> tuple[str, int] | None:
    """Host and port of a broker, if it is registered."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return None
    endpoint = address(broker)
    return endpoint.host, endpoint.port


def controller_id(image: ClusterImage, *, node_id: int) -> int:
    """Clients send changes to "the controller"; every broker takes them, so it is the one asked."""
    broker = image.brokers.get(node_id)
    if broker is not None and not broker.is_fenced:
        return node_id
    alive = image.alive_brokers()
    return alive[0].broker_id if alive else NO_NODE


def leader_id(image: ClusterImage, state: PartitionState) -> int:
    return state.leader if state.leader in image.brokers else NO_NODE


def offline_replicas(image: ClusterImage, state: PartitionState) -> list[int]:
    """The replicas on brokers that are gone or fenced, and those in directories that failed."""
    return [
        broker_id
        for broker_id, directory in zip(state.replicas, state.directories, strict=True)
        if not is_online(image, broker_id) or not image.brokers[broker_id].has_working(directory)
    ]


def online(image: ClusterImage, broker_ids: Sequence[int]) -> list[int]:
    return [broker_id for broker_id in broker_ids if is_online(image, broker_id)]


def is_online(image: ClusterImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.is_fenced
