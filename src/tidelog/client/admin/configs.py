"""Questions about settings of topics and brokers: what they are, and change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from tidelog.client.admin.question import (
    AdminOutcome,
    AnyNode,
    Question,
    RetryLater,
    TheBroker,
    outcome,
)
from tidelog.core.model.config import ConfigSource
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tidelog.core.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tidelog.core.wire.schema import Message

CLUSTER_DEFAULT = ""
"""The broker name that stands for all brokers."""


class ResourceKind(IntEnum):
    """Whose settings, by the protocol's numbers."""

    TOPIC = 2
    BROKER = 4


class ConfigOperation(IntEnum):
    """What is done to a setting, by the protocol's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigEntry(NamedTuple):
    """One setting and where its value comes from."""

    value: str | None
    source: ConfigSource | None
    is_read_only: bool


class ConfigDescription(NamedTuple):
    """The settings by name, or why not."""

    error: ErrorCode
    message: str | None
    configs: dict[str, ConfigEntry]


def describe_configs(
    kind: ResourceKind, name: str, *, keys: Iterable[str] | None = None
) -> Question[ConfigDescription]:
    """A broker's own settings are asked of that broker."""
    resource = DescribeConfigsResource(
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )

    def read(answer: Message) -> ConfigDescription:
        assert isinstance(answer, DescribeConfigsResponse)
        described = answer.results[0]
        configs = {
            each.name: ConfigEntry(each.value, source_of(each.config_source), each.read_only)
            for each in described.configs
        }
        return ConfigDescription(
            ErrorCode.from_wire(described.error_code),
            described.error_message,
            configs,
        )

    return Question(
        request=DescribeConfigsRequest(resources=[resource]), read=read, target=_target(kind, name)
    )


def alter_configs(
    kind: ResourceKind,
    name: str,
    changes: Mapping[str, str | tuple[ConfigOperation, str | None] | None],
    *,
    validate_only: bool = False,
) -> Question[AdminOutcome]:
    """A value is set, None deletes; a pair says what else to do (APPEND, SUBTRACT)."""
    configs = []
    for key, change in changes.items():
        if not isinstance(change, tuple):
            change = (ConfigOperation.DELETE if change is None else ConfigOperation.SET, change)
        configs.append(AlterableConfig(name=key, config_operation=change[0], value=change[1]))
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)

    def read(answer: Message) -> AdminOutcome | RetryLater:
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        return outcome(answer.responses[0].error_code, answer.responses[0].error_message)

    return Question(request=request, read=read, target=_target(kind, name))


def _target(kind: ResourceKind, name: str) -> AnyNode | TheBroker:
    if kind == ResourceKind.BROKER and name != CLUSTER_DEFAULT:
        return TheBroker(int(name))
    return AnyNode()


def source_of(number: int) -> ConfigSource | None:
    return ConfigSource(number) if number in tuple(ConfigSource) else None
