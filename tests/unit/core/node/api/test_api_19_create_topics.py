"""CreateTopics: answers version by version, and that they wait for the metadata."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import broker, state, topic
from tests.unit.core.node.given import Broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_19_create_topics as api
from tidelog.core.wire.messages.api_19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def new_topic(name: str, partitions: int = 2, replication_factor: int = 1) -> CreatableTopic:
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replication_factor
    )


def ask(
    node: Broker, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> CreateTopicsResponse:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return node.ask(api, request, CreateTopicsResponse, version)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_topic_is_created_and_described_as_far_as_the_version_can(version: int) -> None:
    node = Broker()

    (result,) = ask(node, new_topic("t"), version=version).topics

    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.NONE, None)
    created = node.image.topics["t"]
    assert len(created.partitions) == 2
    assert result.topic_id == (created.topic_id if version >= 7 else bytes(16))
    assert result.num_partitions == (2 if version >= 5 else -1)
    assert result.replication_factor == (1 if version >= 5 else -1)
    assert bool(result.configs) == (version >= 5)
    assert result.topic_config_error_code == ErrorCode.NONE


def test_the_settings_of_a_new_topic_come_with_their_sources() -> None:
    node = Broker(settings={"log.segment.bytes": "2097152"})
    wanted = new_topic("t")
    wanted.configs = [CreatableTopicConfig(name="retention.ms", value=" 5 ")]

    (result,) = ask(node, wanted).topics

    assert result.configs is not None
    names = [each.name for each in result.configs]
    assert names == sorted(names)
    settings = {each.name: (each.value, each.config_source) for each in result.configs}
    assert settings["retention.ms"] == (" 5 ", 1)
    assert settings["segment.bytes"] == ("2097152", 4)
    assert settings["cleanup.policy"] == ("delete", 5)
    assert not any(each.read_only or each.is_sensitive for each in result.configs)
    assert node.image.topic_config("t") == {"retention.ms": " 5 "}


def test_minus_one_means_the_brokers_default() -> None:
    node = Broker(settings={"num.partitions": "4"})

    (result,) = ask(node, new_topic("t", -1, -1)).topics

    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_an_assignment_is_taken() -> None:
    node = Broker(broker(1), broker(2))
    wanted = new_topic("t", -1, -1)
    wanted.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])]

    (result,) = ask(node, wanted).topics

    assert (result.num_partitions, result.replication_factor) == (1, 2)
    assert node.image.topics["t"].partitions[0].replicas == (2, 1)


@pytest.mark.parametrize("version", [2, 7])
@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (new_topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (new_topic("n o"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (new_topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("t", 10_001), ErrorCode.POLICY_VIOLATION),
        (
            CreatableTopic(
                name="t",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="no.such.setting", value="1")],
            ),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            CreatableTopic(
                name="t",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="retention.ms", value=None)],
            ),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_a_refusal_creates_nothing_and_says_why(
    version: int, wanted: CreatableTopic, error: ErrorCode
) -> None:
    node = Broker(broker(1), *topic("there", 1, state(1)))

    (result,) = ask(node, wanted, version=version).topics

    assert result.error_code == error
    assert result.error_message
    assert (result.num_partitions, result.configs) == (-1, [])
    assert set(node.image.topics) == {"there"}


def test_good_topics_are_created_beside_bad_ones() -> None:
    node = Broker()

    results = ask(
        node, new_topic("good"), new_topic("b@d"), new_topic("twice"), new_topic("twice")
    ).topics

    assert {each.name: each.error_code for each in results} == {
        "good": ErrorCode.NONE,
        "b@d": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    assert set(node.image.topics) == {"good"}


def test_validate_only_answers_the_same_and_writes_nothing() -> None:
    node = Broker()

    (result,) = ask(node, new_topic("t"), validate_only=True).topics

    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 2)
    assert node.metadata.records == []


def test_the_answer_waits_until_the_topic_is_committed() -> None:
    node = Broker()

    node.send(api, CreateTopicsRequest(topics=[new_topic("t")]), 7)
    assert node.answers == []
    assert not node.image.topics

    node.metadata.commit()
    assert len(node.answers) == 1
    assert set(node.image.topics) == {"t"}


def test_a_refusal_waits_for_what_it_was_decided_on() -> None:
    node = Broker()

    for _ in range(2):
        node.send(api, CreateTopicsRequest(topics=[new_topic("t")]), 7)
    assert node.answers == []

    node.metadata.commit()
    first, second = (node.answers.pop(0) for _ in range(2))
    node.answers = [first]
    assert node.answer(CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE
    node.answers = [second]
    error = node.answer(CreateTopicsResponse).topics[0].error_code
    assert error == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time_is_too_little_time(timeout_ms: int) -> None:
    node = Broker()
    request = CreateTopicsRequest(topics=[new_topic("t")], timeout_ms=timeout_ms)

    response = node.ask(api, request, CreateTopicsResponse, 7)

    assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert node.metadata.records == []


def test_nothing_asked_is_nothing_answered() -> None:
    assert ask(Broker()).topics == []
