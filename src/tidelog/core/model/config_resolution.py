"""Which value counts: a topic's own, a broker's, the cluster's, the file's, or the default.

Brokers have layers: what was set for one broker while it ran, what was set for all of them, what
its file says, and Kafka's defaults. A topic's settings lie above them under other names. What
DescribeConfigs answers, with sources and synonyms, is read off here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tidelog.core.model.broker_config import BROKER_SETTINGS
from tidelog.core.model.config import (
    BadSetting,
    ConfigSource,
    Setting,
    SettingType,
    Value,
    format_value,
)
from tidelog.core.model.group_config import (
    GROUP_BOUNDS,
    GROUP_SETTINGS,
    group_values,
    refuse_group_settings,
)
from tidelog.core.model.topic_config import (
    BROKER_SYNONYMS,
    TOPIC_SETTINGS,
    UNLIMITED,
    refuse_topic_settings,
)


class BrokerLayers(NamedTuple):
    """The texts that were given, nearest first; no layer need have a setting."""

    broker: Mapping[str, str]
    """Set for this broker while it runs."""
    cluster: Mapping[str, str]
    """Set for all brokers while they run."""
    file: Mapping[str, str]
    """What it was started with."""


class SynonymValue(NamedTuple):
    """One place where a value for a setting can be found, under that place's name for it."""

    name: str
    value: str | None
    source: ConfigSource


class Resolved(NamedTuple):
    """A setting with the value that counts, and everywhere a value was found, nearest first."""

    setting: Setting
    value: Value
    source: ConfigSource
    synonyms: tuple[SynonymValue, ...]

    @property
    def text(self) -> str | None:
        return format_value(self.value)


NO_LAYERS = BrokerLayers({}, {}, {})

_SIBLINGS: dict[str, tuple[str, ...]] = {
    synonym.name: tuple(each.name for each in synonyms)
    for synonyms in BROKER_SYNONYMS.values()
    for synonym in synonyms
    if len(synonyms) > 1 and synonym.name != "log.flush.scheduler.interval.ms"
}
"""Broker settings that say the same in other units. The scheduler's is a setting of its own."""


def broker_value(name: str, layers: BrokerLayers) -> Value:
    """The value that counts for this broker setting.

    A text from the metadata log that does not parse (an older or newer broker wrote it) is passed
    over: a broker must not fail to start because of it.
    """
    setting = BROKER_SETTINGS[name]
    for layer in layers:
        text = layer.get(name)
        if text is not None:
            try:
                return setting.parse(text)
            except BadSetting:
                continue
    return setting.default


def inherited_topic_values(layers: BrokerLayers) -> dict[str, Value]:
    """What a topic without settings of its own has on this broker."""
    return {name: _inherited(name, setting, layers) for name, setting in TOPIC_SETTINGS.items()}


def topic_values(overrides: Mapping[str, str], inherited: Mapping[str, Value]) -> dict[str, Value]:
    """All values of a topic: its own above the inherited ones."""
    values = dict(inherited)
    for name, text in overrides.items():
        setting = TOPIC_SETTINGS.get(name)
        if setting is not None:
            try:
                values[name] = setting.parse(text)
            except BadSetting:
                continue
    return values


def resolve_topic_config(overrides: Mapping[str, str], layers: BrokerLayers) -> dict[str, Resolved]:
    """Every setting of a topic, with source and synonyms."""
    values = topic_values(overrides, inherited_topic_values(layers))
    resolved = {}
    for name, setting in TOPIC_SETTINGS.items():
        if setting.is_internal and name not in overrides:
            continue
        synonyms: list[SynonymValue] = []
        if name in overrides:
            text = format_value(values[name])
            synonyms.append(SynonymValue(name, text, ConfigSource.TOPIC))
        if name in BROKER_SYNONYMS:
            synonyms += _broker_synonyms(BROKER_SYNONYMS[name][0].name, layers)
        resolved[name] = _resolved(setting, values[name], synonyms)
    return resolved


def resolve_group_config(overrides: Mapping[str, str], layers: BrokerLayers) -> dict[str, Resolved]:
    """Every setting of a group of consumers, with source and synonyms."""
    values, resolved = group_values(overrides), {}
    for name, setting in GROUP_SETTINGS.items():
        synonym = GROUP_BOUNDS[name].synonym
        value: Value = values.get(name)
        synonyms: list[SynonymValue] = []
        if value is not None:
            synonyms.append(SynonymValue(name, format_value(value), ConfigSource.GROUP))
        else:
            value = broker_value(synonym, layers)
        synonyms += _broker_synonyms(synonym, layers)
        resolved[name] = _resolved(setting, value, synonyms)
    return resolved


def resolve_broker_config(layers: BrokerLayers) -> dict[str, Resolved]:
    """Every setting of one broker, with source and synonyms."""
    return {
        name: _resolved(setting, broker_value(name, layers), list(_broker_synonyms(name, layers)))
        for name, setting in BROKER_SETTINGS.items()
        if not setting.is_internal
    }


def resolve_cluster_config(cluster: Mapping[str, str]) -> dict[str, Resolved]:
    """Only what was set for all brokers: the cluster as such has no file and no defaults."""
    resolved = {}
    for name, text in cluster.items():
        setting = BROKER_SETTINGS.get(name)
        if setting is None:
            continue
        synonym = SynonymValue(name, text, ConfigSource.DYNAMIC_CLUSTER)
        resolved[name] = Resolved(setting, text, ConfigSource.DYNAMIC_CLUSTER, (synonym,))
    return resolved


class SettingRules:
    """What a deciding node knows about settings, as `controller.configs` asks for it."""

    def __init__(self, layers: BrokerLayers) -> None:
        self._inherited = inherited_topic_values(layers)
        self._layers = layers

    def refuse_topic_settings(self, settings: Mapping[str, str]) -> str | None:
        return refuse_topic_settings(settings, self._inherited)

    def refuse_group_settings(self, settings: Mapping[str, str]) -> str | None:
        return refuse_group_settings(settings, self._integer)

    def _integer(self, name: str) -> int:
        value = broker_value(name, self._layers)
        assert isinstance(value, int), name
        return value

    def is_list(self, resource_type: int, name: str) -> bool:
        setting = _settings_of(resource_type).get(name)
        return setting is not None and setting.type == SettingType.LIST

    def default(self, resource_type: int, name: str) -> str | None:
        setting = _settings_of(resource_type).get(name)
        return None if setting is None else format_value(setting.default)


_TOPIC_RESOURCE, _GROUP_RESOURCE = 2, 32


def _settings_of(resource_type: int) -> Mapping[str, Setting]:
    if resource_type == _GROUP_RESOURCE:
        return GROUP_SETTINGS
    return TOPIC_SETTINGS if resource_type == _TOPIC_RESOURCE else BROKER_SETTINGS


def _inherited(name: str, setting: Setting, layers: BrokerLayers) -> Value:
    for synonym in BROKER_SYNONYMS.get(name, ()):
        value = broker_value(synonym.name, layers)
        if value is None:
            continue
        if synonym.factor != 1:
            assert isinstance(value, int)
            value *= synonym.factor
        if name == "retention.ms" and isinstance(value, int) and value < 0:
            return UNLIMITED
        return value
    return setting.default


def _broker_synonyms(name: str, layers: BrokerLayers) -> Iterator[SynonymValue]:
    """Where a value for `name` is, nearest first; those before the first of that name are left out.

    So Kafka does, too: a value that stems from log.roll.hours alone is described without synonyms
    and as a default, because `segment.ms` is asked for as log.roll.ms.
    """
    names = _SIBLINGS.get(name, (name,))
    sources = (
        ConfigSource.DYNAMIC_BROKER,
        ConfigSource.DYNAMIC_CLUSTER,
        ConfigSource.STATIC_BROKER,
    )
    found = [
        SynonymValue(each, layer[each], source)
        for layer, source in zip(layers, sources, strict=True)
        for each in names
        if each in layer
    ]
    for each in names:
        text = format_value(BROKER_SETTINGS[each].default)
        if text is not None:
            found.append(SynonymValue(each, text, ConfigSource.DEFAULT))
    is_reached = False
    for synonym in found:
        is_reached = is_reached or synonym.name == name
        if is_reached:
            yield synonym


def _resolved(setting: Setting, value: Value, synonyms: list[SynonymValue]) -> Resolved:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return Resolved(setting, value, source, tuple(synonyms))
