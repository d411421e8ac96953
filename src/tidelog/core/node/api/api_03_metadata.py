"""Metadata (api key 3), versions 0 to 13.

The brokers, and the requested topics: by name, by id from version 12 on, or all of them. Answered
from the committed image, at once unless a leader was lost a moment ago (recent_departures.py). A
name that is not there is created if the broker and the request both allow it; the answer still says
that it is unknown, and the client asks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidelog.core.metadata.cluster import PartitionState, RegisteredBroker, TopicState
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, TopicId
from tidelog.core.model.topic_name import is_internal_topic, refuse_topic_name
from tidelog.core.node.metadata import cluster_view
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.core.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.core.wire.sentinels import BROKER_DEFAULT, NO_NODE

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 3
VERSIONS = range(14)
WAITS_FOR_METADATA = True

CREATE_VERSION = 7
CREATE_WITHIN_MS = 30_000

_FIRST_VERSION_BY_ID = 12
_ONLY_ONLINE_VERSION = 0
"""Version 0 leaves brokers that are not reachable out of the lists, with an error."""


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(MetadataRequest)
    error = refuse(call, version=request.version)
    if error != ErrorCode.NONE:
        request.answer(_error_response(call, error))
        return
    _answer(node, request, call, now_ms)


def _answer(node: Node, request: Request, call: MetadataRequest, now_ms: int) -> None:
    """Now, or when new leaders are decided for the brokers that were lost a moment ago."""
    missed = node.recent_departures.missed(now_ms)
    if missed and _names_any(node.image, call, missed):
        node.recent_departures.wait(
            request, lambda now_ms: _answer(node, request, call, now_ms), now_ms
        )
        return
    response = MetadataResponse(
        brokers=_brokers(node.recent_departures.listed(now_ms)),
        cluster_id=node.metadata.cluster_id,
        controller_id=cluster_view.controller_id(node.image, node_id=node.settings.node_id),
        topics=_topics(node, call, version=request.version, now_ms=now_ms),
    )
    if call.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_view.ALL_CLUSTER_OPERATIONS
    request.answer(response)


def refuse(call: MetadataRequest, *, version: int) -> ErrorCode:
    """Ids are in the request from version 10 on, but taken only from version 12 on."""
    topics = call.topics or ()
    by_id = any(topic.topic_id != ZERO_TOPIC_ID for topic in topics)
    if version < _FIRST_VERSION_BY_ID:
        if by_id or any(topic.name is None for topic in topics):
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE
    if not by_id and any(topic.name is None for topic in topics):
        return ErrorCode.UNKNOWN_SERVER_ERROR  # neither a name nor an id: Kafka fails on it
    return ErrorCode.NONE


def _error_response(call: MetadataRequest, error: ErrorCode) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id)
        for topic in call.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=error)


def _names_any(image: ClusterImage, call: MetadataRequest, leaders: set[int]) -> bool:
    """Whether the request is about a partition that one of these brokers leads."""
    if call.topics is None:
        return any(map(image.index.leads_any, leaders))
    for wanted in call.topics:
        topic = image.topics_by_id.get(TopicId(wanted.topic_id))
        if topic is None and wanted.name is not None:
            topic = image.topics.get(wanted.name)
        if topic is not None and any(state.leader in leaders for state in topic.partitions):
            return True
    return False


def _brokers(listed: Iterable[RegisteredBroker]) -> list[MetadataResponseBroker]:
    described = []
    for broker in listed:
        endpoint = cluster_view.address(broker)
        described.append(
            MetadataResponseBroker(
                node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
        )
    return described


def _topics(
    node: Node, call: MetadataRequest, *, version: int, now_ms: int
) -> list[MetadataResponseTopic]:
    """By id as soon as the request has one id; names are then ignored."""
    ids = _ids(call.topics or ())
    if ids:
        described = _by_id(node.image, ids, version)
    elif call.topics is None or (version == 0 and not call.topics):
        names = sorted(node.image.topics)
        described = [_topic(node.image, node.image.topics[name], version) for name in names]
    else:
        described = _by_name(node, call, version=version, now_ms=now_ms)
    if call.include_topic_authorized_operations:
        for topic in described:
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                topic.topic_authorized_operations = cluster_view.ALL_TOPIC_OPERATIONS
    return described


def _ids(topics: Iterable[MetadataRequestTopic]) -> list[TopicId]:
    ids = (TopicId(topic.topic_id) for topic in topics if topic.topic_id != ZERO_TOPIC_ID)
    return list(dict.fromkeys(ids))


def _by_id(image: ClusterImage, ids: list[TopicId], version: int) -> list[MetadataResponseTopic]:
    described = []
    for topic_id in ids:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            unknown = MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
            )
            described.append(unknown)
        else:
            described.append(_topic(image, topic, version))
    return described


def _by_name(
    node: Node, call: MetadataRequest, *, version: int, now_ms: int
) -> list[MetadataResponseTopic]:
    names = dict.fromkeys(topic.name for topic in call.topics or () if topic.name is not None)
    described = []
    missing = []
    for name in names:
        topic = node.image.topics.get(name)
        if topic is not None:
            described.append(_topic(node.image, topic, version))
        else:
            described.append(_unknown(name))
            missing.append(name)
    if missing and call.allow_auto_topic_creation:
        _create(node, missing, now_ms)
    return described


def _create(node: Node, names: list[str], now_ms: int) -> None:
    """No answer waits for it. A topic being created counts as existing: it is created once."""
    if not node.settings.boolean("auto.create.topics.enable"):
        return
    new_topics = [
        CreatableTopic(name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT)
        for name in names
        if not is_internal_topic(name)
    ]
    if new_topics:
        request = CreateTopicsRequest(topics=new_topics, timeout_ms=CREATE_WITHIN_MS)
        node.controller_channel.ask(request, CREATE_VERSION, _ignore, now_ms=now_ms)


def _ignore(answer: object, now_ms: int) -> None:
    """The client asks again anyway."""


def _unknown(name: str) -> MetadataResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if refuse_topic_name(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=error, name=name, is_internal=is_internal_topic(name))


def _topic(image: ClusterImage, topic: TopicState, version: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal_topic(topic.name),
        partitions=[
            _partition(image, index, state, version) for index, state in enumerate(topic.partitions)
        ],
    )


def _partition(
    image: ClusterImage, index: int, state: PartitionState, version: int
) -> MetadataResponsePartition:
    replicas, isr = list(state.replicas), list(state.isr)
    if version == _ONLY_ONLINE_VERSION:
        replicas = cluster_view.online(image, state.replicas)
        isr = cluster_view.online(image, state.isr)
    leader_id = cluster_view.leader_id(image, state)
    error = ErrorCode.NONE
    if leader_id == NO_NODE:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=cluster_view.offline_replicas(image, state),
    )
