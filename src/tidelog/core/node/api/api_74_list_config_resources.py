"""ListConfigResources (api key 74), versions 0 and 1.

Names what can have settings: every topic and every broker (its loggers, too), and whatever of the
other types has settings in the metadata. Version 0, ListClientMetricsResources, knows only client
metrics. One type that the version does not know fails the whole request, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidelog.core.metadata.cluster import ResourceType
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api.api_32_describe_configs import BROKER_LOGGER, CLIENT_METRICS
from tidelog.core.wire.messages.api_74_list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedConfigResource,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 74
VERSIONS = range(2)
WAITS_FOR_METADATA = True

TYPES = (
    (CLIENT_METRICS,),
    (ResourceType.GROUP, CLIENT_METRICS, BROKER_LOGGER, ResourceType.BROKER, ResourceType.TOPIC),
)
"""What each version can list, in the order of the answer."""


def handle(node: Node, request: Request, now_ms: int) -> None:
    listed = TYPES[request.version]
    wanted = request.decode(ListConfigResourcesRequest).resource_types or listed
    if not set(wanted) <= set(listed):
        request.answer(ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    resources = [
        ListedConfigResource(resource_name=name, resource_type=kind)
        for kind in listed
        if kind in wanted
        for name in _names(node.image, kind)
    ]
    request.answer(ListConfigResourcesResponse(config_resources=resources))


def _names(image: ClusterImage, kind: int) -> Iterable[str]:
    if kind in (ResourceType.BROKER, BROKER_LOGGER):
        return map(str, sorted(image.brokers))
    if kind == ResourceType.TOPIC:
        return image.topics
    return sorted(resource.name for resource in image.configs if resource.type == kind)
