"""IncrementalAlterConfigs (api key 44), versions 0 and 1.

Changes settings of topics, brokers and groups step by step: set, delete, append to a list, subtract
from it. Each resource stands or falls as a whole. What the broker that was asked can judge alone
(the form, whether it is the broker that is meant) is refused there (`forward`); the rest is decided
by the controller on the metadata (`handle`) and answered when it is durable.

AlterConfigs (api key 33) goes the same way: its steps set what it names and delete the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tidelog.core.controller.configs import (
    Alteration,
    ConfigStep,
    Operation,
    decide_alter,
    decide_clearing,
)
from tidelog.core.controller.decision import Refusal
from tidelog.core.metadata.cluster import ConfigResource, ResourceType
from tidelog.core.metadata.records import ConfigRecord, MetadataRecord
from tidelog.core.model.broker_config import refuse_dynamic_change
from tidelog.core.model.config_resolution import SettingRules
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api.api_32_describe_configs import BROKER_LOGGER, KNOWN_TYPES, refuse_broker
from tidelog.core.node.connections.forwarded_requests import RemainderRequest
from tidelog.core.node.controller.topic_creation_rules import broker_layers
from tidelog.core.wire.codec import decode
from tidelog.core.wire.messages.api_33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    ReplacedConfig,
    ReplacedConfigsResource,
)
from tidelog.core.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 44
VERSIONS = range(2)
FORWARDED = True

OPERATIONS = frozenset(int(operation) for operation in Operation)

Refusals = dict[ConfigResource, Refusal | None]
ConfigsCall = IncrementalAlterConfigsRequest | AlterConfigsRequest
ConfigsAnswer = IncrementalAlterConfigsResponse | AlterConfigsResponse
Resource = AlterConfigsResource | ReplacedConfigsResource


def forward(node: Node, request: Request, frame: memoryview, now_ms: int) -> None:
    """On the node that was asked: refuse what it can judge, and pass the rest on."""
    forward_rest(node, request, request.decode(IncrementalAlterConfigsRequest), frame, now_ms)


def handle(node: Node, request: Request, now_ms: int) -> None:
    """On the controller. A request that another node passed on was meant for that node."""
    decide_call(node, request, request.decode(IncrementalAlterConfigsRequest), now_ms)


def forward_rest(
    node: Node, request: Request, call: ConfigsCall, frame: memoryview, now_ms: int
) -> None:
    """Refuse the forms of a call here, and pass on what is left."""
    refusals = _refuse_forms(call, node)
    remaining = _remaining(call, refusals)
    if len(remaining) == len(call.resources):
        node.forwarder.forward(request, frame, now_ms)
        return
    if not remaining:
        request.answer(_answer(call, refusals))
        return
    rest = type(call)(resources=remaining, validate_only=call.validate_only)

    def merge(answer: memoryview) -> ConfigsAnswer:
        decided = decode(_answer_type(call), answer, request.version)
        return _answer(call, refusals | _outcomes(decided))

    partly = RemainderRequest(request, rest, merge)
    node.forwarder.forward(partly, partly.frame, now_ms)


def decide_call(node: Node, request: Request, call: ConfigsCall, now_ms: int) -> None:
    """Decide each resource, write what changes, and answer when it is durable."""
    refusals = _refuse_forms(call, None if request.connection is None else node)
    decided, records = _decide(node, _remaining(call, refusals))
    cleared = decide_clearing(node.metadata.decided_image, records)
    written = [] if call.validate_only else [*records, *cleared]
    answer = _answer(call, refusals | decided)
    node.metadata.propose(written, lambda: request.answer(answer), now_ms=now_ms)


def _outcomes(decided: ConfigsAnswer) -> Refusals:
    """What the controller answered, as if it had been decided here."""
    return {
        ConfigResource(each.resource_type, each.resource_name): (
            None
            if each.error_code == ErrorCode.NONE
            else Refusal(ErrorCode(each.error_code), each.error_message)
        )
        for each in decided.responses
    }


def _refuse_forms(call: ConfigsCall, node: Node | None) -> Refusals:
    counts = Counter(_named(resource) for resource in call.resources)
    return {
        _named(resource): _refuse_form(node, resource, is_repeated=counts[_named(resource)] > 1)
        for resource in call.resources
    }


def _remaining(call: ConfigsCall, refusals: Refusals) -> list[Any]:
    """What the controller must decide."""
    return [
        resource
        for resource in call.resources
        if refusals[_named(resource)] is None and resource.resource_type != BROKER_LOGGER
    ]


def _answer(call: ConfigsCall, refusals: Refusals) -> ConfigsAnswer:
    return _answer_type(call)(
        responses=[_response(resource, refusals) for resource in call.resources]
    )


def _answer_type(call: ConfigsCall) -> type[ConfigsAnswer]:
    is_incremental = isinstance(call, IncrementalAlterConfigsRequest)
    return IncrementalAlterConfigsResponse if is_incremental else AlterConfigsResponse


def _refuse_form(node: Node | None, resource: Resource, *, is_repeated: bool) -> Refusal | None:
    """What is wrong whatever the settings are now; without a node, for whichever node."""
    if is_repeated:
        return _invalid("the same resource twice in one request")
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        return _invalid("the same setting twice in one request")
    without_value = [
        config.name
        for config in resource.configs
        if config.value is None and _operation(config) != Operation.DELETE
    ]
    if without_value:
        return _invalid(f"a value is needed for {', '.join(without_value)}")
    if resource.resource_type == BROKER_LOGGER and isinstance(resource, AlterConfigsResource):
        refusal = None if node is None else refuse_broker(node, resource.resource_name)
        return refusal or _refuse_logger(resource)
    if resource.resource_type == ResourceType.BROKER:
        if resource.resource_name and node is not None:
            refusal = refuse_broker(node, resource.resource_name)
            if refusal is not None:
                return refusal
        if not _operations_are_known(resource):
            return _invalid("an operation that does not exist")
    if resource.resource_type not in KNOWN_TYPES or resource.resource_type == BROKER_LOGGER:
        return _invalid(f"resource type {resource.resource_type} is unknown")
    return None


def _refuse_logger(resource: AlterConfigsResource) -> Refusal | None:
    """There are no loggers here, so nothing about them can be changed."""
    for config in resource.configs:
        if config.config_operation not in (Operation.SET, Operation.DELETE):
            return _invalid("the level of a logger can only be set or deleted")
        return Refusal(ErrorCode.INVALID_CONFIG, f"there is no logger {config.name}")
    return None


def _decide(node: Node, resources: Sequence[Resource]) -> tuple[Refusals, list[MetadataRecord]]:
    if not all(map(_operations_are_known, resources)):
        # Kafka fails such a request as a whole; so clients see the same.
        failure = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        return {_named(resource): failure for resource in resources}, []
    image = node.metadata.decided_image
    rules = SettingRules(broker_layers(node.settings, image))
    decision = decide_alter(image, [_alteration(resource) for resource in resources], rules)
    refusals = {outcome.resource: outcome.refusal for outcome in decision.outcomes}
    for resource, refusal in refusals.items():
        if refusal is None and resource.type == ResourceType.BROKER:
            refusals[resource] = _refuse_broker_settings(resource, decision.records)
    return refusals, [
        record
        for record in decision.records
        if not isinstance(record, ConfigRecord) or refusals[_target(record)] is None
    ]


def _refuse_broker_settings(
    resource: ConfigResource, records: Iterable[MetadataRecord]
) -> Refusal | None:
    """A running broker takes only some settings, and for itself others than for all brokers."""
    given = {
        record.name: record.value
        for record in records
        if isinstance(record, ConfigRecord)
        and _target(record) == resource
        and record.value is not None
    }
    reason = refuse_dynamic_change(given, for_one_broker=bool(resource.name))
    return None if reason is None else _invalid(reason)


def _alteration(resource: Resource) -> Alteration:
    return Alteration(
        resource=_named(resource),
        steps=tuple(
            ConfigStep(config.name, Operation(_operation(config)), config.value)
            for config in resource.configs
        ),
        deletes_others=isinstance(resource, ReplacedConfigsResource),
    )


def _operations_are_known(resource: Resource) -> bool:
    return all(_operation(config) in OPERATIONS for config in resource.configs)


def _operation(config: AlterableConfig | ReplacedConfig) -> int:
    return config.config_operation if isinstance(config, AlterableConfig) else Operation.SET


def _named(resource: Resource) -> ConfigResource:
    return ConfigResource(resource.resource_type, resource.resource_name)


def _target(record: ConfigRecord) -> ConfigResource:
    return ConfigResource(record.resource_type, record.resource_name)


def _response(resource: Resource, refusals: Refusals) -> AlterConfigsResourceResponse:
    refusal = refusals[_named(resource)]
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.error,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _invalid(reason: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, reason)
