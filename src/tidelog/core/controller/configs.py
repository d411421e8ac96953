"""Changes of settings: what the steps of a change make of them, and whether they may.

Which names exist and which values they take is not known here but given as `ConfigRules`: the
tables of Kafka's settings on the deciding node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from tidelog.core.controller.decision import (
    RECORDS_PER_DECISION_MAX,
    TOO_LARGE,
    Decision,
    Refusal,
)
from tidelog.core.metadata.cluster import ConfigResource, ResourceType
from tidelog.core.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from tidelog.core.metadata.image import CLUSTER_DEFAULTS, ClusterImage
from tidelog.core.metadata.records import ClearElrRecord, ConfigRecord, MetadataRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.limits import INT16_MAX
from tidelog.core.model.topic_name import refuse_topic_name

MIN_INSYNC_REPLICAS = "min.insync.replicas"


class ConfigRules(Protocol):
    """What is known about settings."""

    def refuse_topic_settings(self, settings: Mapping[str, str]) -> str | None:
        """Why a topic cannot have exactly these settings of its own."""

    def refuse_group_settings(self, settings: Mapping[str, str]) -> str | None:
        """Why a group cannot have exactly these settings of its own."""

    def is_list(self, resource_type: int, name: str) -> bool:
        """Can something be appended to it?"""

    def default(self, resource_type: int, name: str) -> str | None:
        """The value that holds while the resource has none of its own."""


class Operation(IntEnum):
    """What to do with a setting, by Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigStep(NamedTuple):
    """One step of a change; only DELETE goes without a value."""

    name: str
    operation: Operation
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """A request to change one resource, all of it or nothing. No name comes twice."""

    resource: ConfigResource
    steps: tuple[ConfigStep, ...]
    deletes_others: bool = False
    """Whether settings that no step names go back to their defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """The outcome of a request."""

    resource: ConfigResource
    refusal: Refusal | None = None


def decide_alter(
    image: ClusterImage, requests: Sequence[Alteration], rules: ConfigRules
) -> Decision[Altered]:
    """One outcome per request; the resources stand or fall one by one."""
    records: list[MetadataRecord] = []
    outcomes = []
    for request in requests:
        changed = _decide_resource(image, request, rules)
        if not isinstance(changed, Refusal) and (
            len(records) + len(changed) > RECORDS_PER_DECISION_MAX
        ):
            changed = TOO_LARGE
        if isinstance(changed, Refusal):
            outcomes.append(Altered(resource=request.resource, refusal=changed))
        else:
            records += changed
            outcomes.append(Altered(resource=request.resource))
    return Decision(records=records, outcomes=outcomes)


def decide_clearing(image: ClusterImage, records: Sequence[MetadataRecord]) -> list[ClearElrRecord]:
    """A new minimum in-sync set ends all eligibility: it was judged by the old one.

    With a minimum of 1 a partition may commit with its leader alone, while a replica that is
    eligible by a former minimum of 2 knows nothing of it.
    """
    if image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) == 0:
        return []
    topics = [
        record.resource_name if record.resource_type == ResourceType.TOPIC else ""
        for record in records
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS
    ]
    return [ClearElrRecord(topic_name=topic) for topic in topics]


def decide_new_topic(
    name: str, configs: Sequence[tuple[str, str | None]], rules: ConfigRules
) -> list[ConfigRecord] | Refusal:
    """The settings with which a topic is created; of a name that comes twice the last one holds."""
    without_value = [key for key, value in configs if value is None]
    if without_value:
        return Refusal(
            ErrorCode.INVALID_CONFIG, f"settings without a value: {', '.join(without_value)}"
        )
    settings = {key: value for key, value in configs if value is not None}
    if not settings:
        return []
    for key, value in settings.items():
        if _is_too_long(value):
            return _too_long(key)
    reason = rules.refuse_topic_settings(settings)
    if reason is not None:
        return Refusal(ErrorCode.INVALID_CONFIG, reason)
    resource = ConfigResource(ResourceType.TOPIC, name)
    return [_record(resource, key, value) for key, value in settings.items()]


def _decide_resource(
    image: ClusterImage, request: Alteration, rules: ConfigRules
) -> list[ConfigRecord] | Refusal:
    resource = request.resource
    settings = dict(image.configs.get(resource, {}))
    records = []
    for step in _all_steps(request, settings):
        before = settings.get(step.name)
        after = _after(before, step, resource, rules)
        if isinstance(after, Refusal):
            return after
        # A broker hears of every step, changed or not: it may have to load a file anew.
        if after == before and resource.type != ResourceType.BROKER:
            continue
        refusal = _refuse_value(image, resource, step.name, after)
        if refusal is not None:
            return refusal
        if after is None:
            settings.pop(step.name, None)
        else:
            settings[step.name] = after
        records.append(_record(resource, step.name, after))
    refusal = _refuse_resource(image, resource, settings, rules)
    return records if refusal is None else refusal


def _all_steps(request: Alteration, settings: Mapping[str, str]) -> list[ConfigStep]:
    """Those of the request, then the deletion of every other setting, if it says so."""
    named = {step.name for step in request.steps}
    others = [name for name in settings if request.deletes_others and name not in named]
    return [*request.steps, *(ConfigStep(name, Operation.DELETE, None) for name in others)]


def _after(
    before: str | None, step: ConfigStep, resource: ConfigResource, rules: ConfigRules
) -> str | Refusal | None:
    """The value after one step; None is "at its default"."""
    if step.operation == Operation.DELETE:
        return None
    assert step.value is not None, "a step without a value was refused before"
    if step.operation == Operation.SET:
        return step.value
    if not rules.is_list(resource.type, step.name):
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            f"{step.name} is no list: {step.operation.name.lower()} means nothing to it",
        )
    whole = rules.default(resource.type, step.name) if before is None else before
    items = [item for item in (whole or "").split(",") if item]
    for item in step.value.split(","):
        if step.operation == Operation.APPEND and item not in items:
            items.append(item)
        elif step.operation == Operation.SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def _refuse_value(
    image: ClusterImage, resource: ConfigResource, name: str, value: str | None
) -> Refusal | None:
    """With eligible leader replicas the minimum in-sync set is the cluster's affair, and kept."""
    if name == MIN_INSYNC_REPLICAS and resource.type == ResourceType.BROKER:
        is_guarded = image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0
        if is_guarded and resource != CLUSTER_DEFAULTS:
            return Refusal(ErrorCode.INVALID_CONFIG, f"{name} cannot be set for one broker alone")
        if is_guarded and value is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"the cluster's {name} cannot be removed")
    if value is not None and _is_too_long(value):
        return _too_long(name)
    return None


def _refuse_resource(
    image: ClusterImage,
    resource: ConfigResource,
    settings: Mapping[str, str],
    rules: ConfigRules,
) -> Refusal | None:
    if resource.type == ResourceType.TOPIC:
        if not resource.name:
            return Refusal(ErrorCode.INVALID_REQUEST, "there are no defaults for all topics")
        reason = refuse_topic_name(resource.name)
        if reason is not None:
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        reason = rules.refuse_topic_settings(settings)
        if reason is not None:
            return Refusal(ErrorCode.INVALID_CONFIG, reason)
        if resource.name not in image.topics:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name")
        return None
    if resource.type == ResourceType.BROKER:
        if resource != CLUSTER_DEFAULTS and not resource.name.isdecimal():
            return Refusal(ErrorCode.INVALID_REQUEST, "a broker is named by its number")
        if resource != CLUSTER_DEFAULTS and int(resource.name) not in image.brokers:
            return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, "no broker has this id")
        return None
    if resource.type == ResourceType.GROUP:
        if not resource.name:
            return Refusal(ErrorCode.INVALID_REQUEST, "there are no defaults for all groups")
        reason = rules.refuse_group_settings(settings)
        return None if reason is None else Refusal(ErrorCode.INVALID_CONFIG, reason)
    return Refusal(ErrorCode.INVALID_REQUEST, f"resource type {resource.type} has no settings")


def _is_too_long(value: str) -> bool:
    return len(value) > INT16_MAX


def _too_long(name: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, f"{name}: at most {INT16_MAX} characters")


def _record(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=resource.type, resource_name=resource.name, name=name, value=value
    )
