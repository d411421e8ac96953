"""ListConfigResources (api key 74): which topics, brokers, groups and so on can have settings.

Version 0 was called ListClientMetricsResources, and lists nothing else.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int8, int16, int32, string

_CLIENT_METRICS = 16


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible_from=0):
    """The types that are wanted; none means all."""

    resource_types: list[int] = array(int8, "1+")


class ListedConfigResource(Struct):
    """One thing that can have settings."""

    resource_name: str = string()
    resource_type: int = int8("1+", default=_CLIENT_METRICS, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible_from=0):
    """All that there are of the wanted types."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ListedConfigResource] = array(ListedConfigResource)
