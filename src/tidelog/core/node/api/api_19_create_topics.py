"""CreateTopics (api key 19), versions 2 to 7.

Makes topics by partition count or by explicit assignment. Each topic stands or falls alone; all
that are made are made together, and answered when the metadata is durable. With `validate_only`
only the checks are made. Version 5 answers the resulting counts and settings, 7 the topic id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.decision import Refusal
from tidelog.core.controller.partitions import ReplicaAssignment
from tidelog.core.controller.topics import CreatedTopic, NewTopic, decide_create
from tidelog.core.model.config_resolution import BrokerLayers, resolve_topic_config
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.topic_creation_rules import broker_layers, creation_rules
from tidelog.core.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.core.wire.sentinels import BROKER_DEFAULT

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 19
VERSIONS = range(2, 8)
FORWARDED = True

_FIRST_VERSION_WITH_CONFIGS = 5


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(CreateTopicsRequest)
    if call.timeout_ms <= 0:
        timed_out = Refusal(ErrorCode.REQUEST_TIMED_OUT)
        request.answer(
            CreateTopicsResponse(topics=[_refused(topic.name, timed_out) for topic in call.topics])
        )
        return
    image = node.metadata.decided_image
    decision = decide_create(
        image,
        [_new_topic(topic) for topic in call.topics],
        creation_rules(node.settings, node.metadata.decided_image, node.random),
    )
    layers = (
        broker_layers(node.settings, image)
        if request.version >= _FIRST_VERSION_WITH_CONFIGS
        else None
    )
    response = CreateTopicsResponse(topics=[_result(each, layers) for each in decision.outcomes])
    records = [] if call.validate_only else decision.records
    node.metadata.propose(records, lambda: request.answer(response), now_ms=now_ms)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions_count=None if topic.num_partitions == BROKER_DEFAULT else topic.num_partitions,
        replication_factor=(
            None if topic.replication_factor == BROKER_DEFAULT else topic.replication_factor
        ),
        assignments=tuple(
            ReplicaAssignment(each.partition_index, tuple(each.broker_ids))
            for each in topic.assignments
        ),
        configs=tuple((config.name, config.value) for config in topic.configs),
    )


def _refused(name: str, refusal: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refusal.error, error_message=refusal.message)


def _result(created: CreatedTopic, layers: BrokerLayers | None) -> CreatableTopicResult:
    """Without layers the version has no place for counts and settings."""
    if created.refusal is not None:
        return _refused(created.name, created.refusal)
    assert created.topic_id is not None
    result = CreatableTopicResult(name=created.name, topic_id=created.topic_id, error_message=None)
    if layers is not None:
        result.num_partitions = created.partitions_count
        result.replication_factor = created.replication_factor
        result.configs = _configs(created, layers)
    return result


def _configs(created: CreatedTopic, layers: BrokerLayers) -> list[CreatableTopicConfigs]:
    """Values that the request gave come back exactly as they were given, spaces included."""
    own = dict(created.configs)
    resolved = resolve_topic_config(own, layers)
    return [
        CreatableTopicConfigs(
            name=name,
            value=own.get(name, resolved[name].text),
            config_source=resolved[name].source,
        )
        for name in sorted(resolved)
    ]
