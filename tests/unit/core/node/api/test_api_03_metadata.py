"""Metadata: which topics and brokers are shown, version by version, and creation on the way."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import broker, state, topic, topic_id
from tests.unit.core.node.given import CLUSTER_ID, Broker
from tidelog.core.metadata.records import NO_LEADER, PartitionChangeRecord, TopicRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_03_metadata as api
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

NONE = -(2**31)


def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def by_id(*ids: bytes) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=None, topic_id=each) for each in ids]


def ask(node: Broker, request: MetadataRequest, version: int) -> MetadataResponse:
    return node.ask(api, request, MetadataResponse, version)


def errors(response: MetadataResponse) -> dict[str | None, int]:
    return {each.name: each.error_code for each in response.topics}


@pytest.fixture
def node() -> Broker:
    return Broker(
        broker(1, rack="r"), broker(2, fenced=True),
        *topic("a", 1, state(1), state(1)), *topic("__consumer_offsets", 2, state(1)),
        settings={"auto.create.topics.enable": "false"},
    )  # fmt: skip


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_topic_is_shown_in_every_version(node: Broker, version: int) -> None:
    response = ask(node, MetadataRequest(topics=named("a")), version)

    (shown,) = response.topics
    assert (shown.error_code, shown.name) == (ErrorCode.NONE, "a")
    assert shown.topic_id == (topic_id(1) if version >= 10 else bytes(16))
    assert [partition.partition_index for partition in shown.partitions] == [0, 1]
    first = shown.partitions[0]
    assert (first.leader_id, first.replica_nodes, first.isr_nodes) == (1, [1], [1])
    assert first.leader_epoch == (0 if version >= 7 else -1)
    (alive,) = response.brokers  # broker 2 is fenced
    assert (alive.node_id, alive.host, alive.port) == (1, "host-1", 9092)
    assert alive.rack == ("r" if version >= 1 else None)
    assert response.controller_id == (1 if version >= 1 else -1)
    assert response.cluster_id == (CLUSTER_ID if version >= 2 else None)


@pytest.mark.parametrize(
    ("version", "topics", "shown"),
    [
        (0, [], ["__consumer_offsets", "a"]),
        (1, [], []),
        (1, None, ["__consumer_offsets", "a"]),
        (13, None, ["__consumer_offsets", "a"]),
        (13, [], []),
    ],
)
def test_all_topics_are_an_empty_list_in_version_0_and_null_later(
    node: Broker, version: int, topics: list[MetadataRequestTopic] | None, shown: list[str]
) -> None:
    response = ask(node, MetadataRequest(topics=topics), version)

    assert [each.name for each in response.topics] == shown
    assert all(each.is_internal == (each.name != "a") for each in response.topics if version)


def test_unknown_and_impossible_names_have_their_errors(node: Broker) -> None:
    response = ask(node, MetadataRequest(topics=named("no", "n o", "", "a", "no")), 12)

    assert errors(response) == {
        "no": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "n o": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "a": ErrorCode.NONE,
    }
    assert len(response.topics) == 4


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_found_by_id_and_then_names_do_not_count(node: Broker, version: int) -> None:
    topics = by_id(topic_id(1), topic_id(9), topic_id(1)) + named("no")

    response = ask(
        node, MetadataRequest(topics=topics, include_topic_authorized_operations=True), version
    )

    shown = [(each.name, each.topic_id, each.error_code) for each in response.topics]
    assert shown == [
        ("a", topic_id(1), ErrorCode.NONE),
        (None, topic_id(9), ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert [each.topic_authorized_operations for each in response.topics] == [3576, NONE]


@pytest.mark.parametrize(
    ("version", "topics", "error"),
    [
        (10, by_id(topic_id(1)), ErrorCode.INVALID_REQUEST),
        (11, [MetadataRequestTopic(name="a", topic_id=topic_id(1))], ErrorCode.INVALID_REQUEST),
        (11, [MetadataRequestTopic(name=None)], ErrorCode.INVALID_REQUEST),
        (12, [MetadataRequestTopic(name=None)], ErrorCode.UNKNOWN_SERVER_ERROR),
        (13, [MetadataRequestTopic(name=None)], ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_ids_before_their_time_and_nothing_at_all_are_refused(
    node: Broker, version: int, topics: list[MetadataRequestTopic], error: ErrorCode
) -> None:
    response = ask(node, MetadataRequest(topics=topics), version)

    (shown,) = response.topics
    assert (shown.error_code, shown.name) == (error, topics[0].name or "")
    assert response.error_code == (error if version >= 13 else ErrorCode.NONE)
    assert response.brokers == []


@pytest.mark.parametrize(
    ("version", "cluster", "of_topic"),
    [(7, NONE, NONE), (8, 8096, 3576), (10, 8096, 3576), (11, NONE, 3576), (13, NONE, 3576)],
)
def test_without_an_authorizer_everything_is_allowed_where_it_is_asked_for(
    node: Broker, version: int, cluster: int, of_topic: int
) -> None:
    request = MetadataRequest(topics=named("a"))
    if version >= 8:
        request.include_topic_authorized_operations = True
    if 8 <= version <= 10:
        request.include_cluster_authorized_operations = True

    response = ask(node, request, version)

    assert response.cluster_authorized_operations == cluster
    assert response.topics[0].topic_authorized_operations == of_topic


def test_an_unreachable_leader_and_offline_replicas_are_shown() -> None:
    node = Broker(
        broker(1), broker(2, fenced=True), broker(3),
        *topic("t", 1, state(1, 2, 3), state(1, 2)),
        PartitionChangeRecord(
            partition_id=1, topic_id=topic_id(1), isr=[], leader=NO_LEADER
        ),
    )  # fmt: skip

    def partitions(version: int) -> list[tuple[int, int, list[int], list[int], list[int]]]:
        (shown,) = ask(node, MetadataRequest(topics=named("t")), version).topics
        return [
            (p.error_code, p.leader_id, p.replica_nodes, p.isr_nodes, p.offline_replicas)
            for p in shown.partitions
        ]

    assert partitions(13) == [
        (ErrorCode.NONE, 1, [1, 2, 3], [1, 2, 3], [2]),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1, 2], [], [2]),
    ]
    assert partitions(0) == [
        (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1, 3], [1, 3], []),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1], [], []),
    ]


def test_a_fenced_broker_names_another_controller() -> None:
    node = Broker(broker(1, fenced=True), broker(3))
    assert ask(node, MetadataRequest(topics=[]), 1).controller_id == 3

    alone = Broker(broker(1, fenced=True))
    assert ask(alone, MetadataRequest(topics=[]), 1).controller_id == -1


@pytest.mark.parametrize(
    ("enabled", "allowed", "is_created"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_a_topic_is_created_if_the_broker_and_the_request_allow_it(
    enabled: bool, allowed: bool, is_created: bool
) -> None:
    node = Broker(settings={"auto.create.topics.enable": str(enabled), "num.partitions": "3"})
    request = MetadataRequest(
        topics=named("new", "b@d", "__consumer_offsets"), allow_auto_topic_creation=allowed
    )

    first = ask(node, request, 4)

    assert errors(first)["new"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(first)["b@d"] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert set(node.image.topics) == ({"new"} if is_created else set())
    if is_created:
        (shown,) = ask(node, MetadataRequest(topics=named("new")), 4).topics
        assert shown.error_code == ErrorCode.NONE
        assert len(shown.partitions) == 3


def test_a_topic_on_its_way_is_created_once_and_answered_at_once() -> None:
    node = Broker()

    for _ in range(2):
        node.send(api, MetadataRequest(topics=named("new")), 4)

    assert len(node.answers) == 2
    assert sum(isinstance(record, TopicRecord) for record in node.metadata.records) == 1
    assert not node.image.topics


def test_all_topics_never_create_one() -> None:
    node = Broker()

    response = ask(node, MetadataRequest(topics=None), 4)

    assert response.topics == []
    assert node.metadata.records == []


def test_the_default_of_an_answer_has_no_operations() -> None:
    assert MetadataResponseTopic().topic_authorized_operations == NONE
