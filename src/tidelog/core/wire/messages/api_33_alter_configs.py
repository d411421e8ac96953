"""AlterConfigs (api key 33): settings given as a whole, in place of all that were there.

Clients are advised to use IncrementalAlterConfigs (api key 44) instead; its answers are the same.
"""

from __future__ import annotations

from tidelog.core.wire.messages.api_44_incremental_alter_configs import AlterConfigsResourceResponse
from tidelog.core.wire.schema import Message, Struct, array, boolean, int8, int32, string


class ReplacedConfig(Struct):
    """One setting and its new value."""

    name: str = string()
    value: str | None = string(nullable="0+")


class ReplacedConfigsResource(Struct):
    """All settings that one topic or broker shall have."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[ReplacedConfig] = array(ReplacedConfig)


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible_from=2):
    """Settings to be replaced, or only to be checked."""

    resources: list[ReplacedConfigsResource] = array(ReplacedConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible_from=2):
    """What became of each topic or broker."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
