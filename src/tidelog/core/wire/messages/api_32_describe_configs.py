"""DescribeConfigs (api key 32): settings, where their values come from, what they mean."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Struct):
    """A topic or broker, and the settings wanted; null means all."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable="0+")


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible_from=4):
    """Whose settings are to be described."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean("3+")


class DescribeConfigsSynonym(Struct):
    """A value that would hold if those before it were absent."""

    name: str = string()
    value: str | None = string(nullable="0+")
    source: int = int8()


class DescribeConfigsResourceResult(Struct):
    """One setting."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8(default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    """The settings of one topic or broker."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible_from=4):
    """The settings asked for."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
