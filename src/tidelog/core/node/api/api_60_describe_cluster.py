"""DescribeCluster (api key 60), versions 0 to 2.

The brokers and the controller, as this broker knows them. Brokers describe brokers only; the
endpoint type of version 1 exists so that controllers can be asked for controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.metadata import cluster_view
from tidelog.core.wire.messages.api_60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 60
VERSIONS = range(3)
WAITS_FOR_METADATA = True

BROKERS, CONTROLLERS = 1, 2


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DescribeClusterRequest)
    error, message = refuse(call.endpoint_type)
    if error != ErrorCode.NONE:
        request.answer(DescribeClusterResponse(error_code=error, error_message=message))
        return
    response = DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=node.metadata.cluster_id,
        controller_id=cluster_view.controller_id(node.image, node_id=node.settings.node_id),
        brokers=_brokers(node, include_fenced=call.include_fenced_brokers),
    )
    if call.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_view.ALL_CLUSTER_OPERATIONS
    request.answer(response)


def refuse(endpoint_type: int) -> tuple[ErrorCode, str | None]:
    """Version 0 cannot ask for anything but brokers."""
    if endpoint_type == BROKERS:
        return ErrorCode.NONE, None
    if endpoint_type == CONTROLLERS:
        return ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker, not a controller"
    return ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"there is no endpoint type {endpoint_type}"


def _brokers(node: Node, *, include_fenced: bool) -> list[DescribeClusterBroker]:
    described = []
    for broker_id in sorted(node.image.brokers):
        broker = node.image.brokers[broker_id]
        if broker.is_fenced and not include_fenced:
            continue
        endpoint = cluster_view.address(broker)
        described.append(
            DescribeClusterBroker(
                broker_id=broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.is_fenced,
            )
        )
    return described
