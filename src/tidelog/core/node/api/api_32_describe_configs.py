"""DescribeConfigs (api key 32), versions 1 to 4.

Describes the settings of topics, groups, this broker, or of all brokers together (an empty name):
value, where it comes from, its synonyms, and from version 3 on its type and what it means. Each
broker knows its own settings only, so it refuses to describe another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tidelog.core.controller.decision import Refusal
from tidelog.core.metadata.cluster import ResourceType
from tidelog.core.model.broker_config import BROKER_SETTINGS
from tidelog.core.model.config import ConfigSource, Update
from tidelog.core.model.config_resolution import (
    Resolved,
    resolve_broker_config,
    resolve_cluster_config,
    resolve_group_config,
    resolve_topic_config,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import refuse_topic_name
from tidelog.core.node.controller.topic_creation_rules import broker_layers
from tidelog.core.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 32
VERSIONS = range(1, 5)
WAITS_FOR_METADATA = True

BROKER_LOGGER = 8
CLIENT_METRICS = 16
KNOWN_TYPES = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    ResourceType.GROUP,
)
UNKNOWN_TYPE_OF_SETTING = 0

Settings = list[DescribeConfigsResourceResult]


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DescribeConfigsRequest)
    if all(resource.resource_type in KNOWN_TYPES for resource in call.resources):
        results = [
            _result(resource, _describe(node, call, resource)) for resource in call.resources
        ]
    else:
        refusal = Refusal(ErrorCode.INVALID_REQUEST, "a resource has an unknown type")
        results = [_result(resource, refusal) for resource in call.resources]
    request.answer(DescribeConfigsResponse(results=results))


def refuse_broker(node: Node, name: str) -> Refusal | None:
    """Why this broker does not describe the one of that name."""
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "the broker must be named by its id")
    broker_id = _broker_id(name)
    if broker_id is None:
        return Refusal(ErrorCode.INVALID_REQUEST, f"a broker's id is a number, not {name!r}")
    if broker_id != node.settings.node_id:
        return Refusal(
            ErrorCode.INVALID_REQUEST, f"this is broker {node.settings.node_id}, not {broker_id}"
        )
    return None


def _describe(
    node: Node, call: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> Settings | Refusal:
    if resource.resource_type == ResourceType.TOPIC:
        return _topic(node, call, resource)
    if resource.resource_type == ResourceType.BROKER:
        return _broker(node, call, resource)
    if resource.resource_type == BROKER_LOGGER:
        # Levels of loggers are not Tidelog's way: it emits events, and the world prints them.
        return refuse_broker(node, resource.resource_name) or []
    if resource.resource_type == ResourceType.GROUP:
        return _group(node, call, resource)
    return Refusal(ErrorCode.INVALID_REQUEST, "client metrics have no settings yet")


def _topic(
    node: Node, call: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> Settings | Refusal:
    name = resource.resource_name
    reason = refuse_topic_name(name)
    if reason is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if name not in node.image.topics:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name")
    resolved = resolve_topic_config(
        node.image.topic_config(name), broker_layers(node.settings, node.image)
    )
    return [_setting(each, call, read_only=False) for each in _chosen(resolved, resource)]


def _group(
    node: Node, call: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> Settings | Refusal:
    """Of any name: a group may have settings before its first member."""
    if not resource.resource_name:
        return Refusal(ErrorCode.INVALID_REQUEST, "a group has a name")
    resolved = resolve_group_config(
        node.image.group_config(resource.resource_name), broker_layers(node.settings, node.image)
    )
    return [_setting(each, call, read_only=False) for each in _chosen(resolved, resource)]


def _broker(
    node: Node, call: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> Settings | Refusal:
    if resource.resource_name:
        refusal = refuse_broker(node, resource.resource_name)
        if refusal is not None:
            return refusal
        layers = broker_layers(node.settings, node.image)
        resolved = resolve_broker_config(layers)
        unlisted = _unlisted_settings(layers.broker, ConfigSource.DYNAMIC_BROKER)
        unlisted |= _unlisted_settings(layers.cluster, ConfigSource.DYNAMIC_CLUSTER)
    else:
        resolved = resolve_cluster_config(node.image.cluster_config())
        unlisted = _unlisted_settings(node.image.cluster_config(), ConfigSource.DYNAMIC_CLUSTER)
    known = [
        _setting(each, call, read_only=each.setting.update == Update.READ_ONLY)
        for each in _chosen(resolved, resource)
    ]
    wanted = resource.configuration_keys
    return known + [unlisted[name] for name in sorted(unlisted) if not wanted or name in wanted]


def _broker_id(name: str) -> int | None:
    """The number in a broker's name, if it is one."""
    digits = name[1:] if name[:1] in ("+", "-") else name
    return int(name) if digits.isascii() and digits.isdecimal() and len(digits) < 11 else None


def _chosen(
    resolved: Mapping[str, Resolved], resource: DescribeConfigsResource
) -> Iterable[Resolved]:
    """Those that the request names; no key at all means every one."""
    wanted = resource.configuration_keys
    return (each for name, each in resolved.items() if not wanted or name in wanted)


def _setting(
    resolved: Resolved, call: DescribeConfigsRequest, *, read_only: bool
) -> DescribeConfigsResourceResult:
    synonyms = resolved.synonyms if call.include_synonyms else ()
    is_secret = resolved.setting.is_secret
    return DescribeConfigsResourceResult(
        name=resolved.setting.name,
        value=None if is_secret else resolved.text,
        read_only=read_only,
        is_sensitive=is_secret,
        config_source=resolved.source,
        synonyms=[
            DescribeConfigsSynonym(
                name=each.name, value=None if is_secret else each.value, source=each.source
            )
            for each in synonyms
        ],
        config_type=resolved.setting.type,
        documentation=resolved.setting.about if call.include_documentation else None,
    )


def _unlisted_settings(
    layer: Mapping[str, str], source: ConfigSource
) -> dict[str, DescribeConfigsResourceResult]:
    """Settings in the metadata that no table has; their values are not shown."""
    return {
        name: DescribeConfigsResourceResult(
            name=name,
            value=None,
            read_only=True,
            is_sensitive=True,
            config_source=source,
            config_type=UNKNOWN_TYPE_OF_SETTING,
            documentation=None,
        )
        for name in layer
        if name not in BROKER_SETTINGS
    }


def _result(
    resource: DescribeConfigsResource, described: Settings | Refusal
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    if isinstance(described, Refusal):
        result.error_code = described.error
        result.error_message = described.message
    else:
        result.configs = described
    return result
