"""DeleteTopics: by name and by id, switched off, and in time."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import broker, state, topic, topic_id
from tests.unit.core.node.given import Broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_20_delete_topics as api
from tidelog.core.wire.messages.api_20_delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def a_broker(**settings: str) -> Broker:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Broker(broker(1), *topic("t", 1, state(1)), settings=named)


def request(version: int, name: str = "t", timeout_ms: int = 1_000) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[name], timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=timeout_ms)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_topic_is_deleted_by_name_in_every_version(version: int) -> None:
    node = a_broker()

    (result,) = node.ask(api, request(version), DeleteTopicsResponse, version).responses

    assert (result.name, result.error_code) == ("t", ErrorCode.NONE)
    assert result.topic_id == (topic_id(1) if version >= 6 else bytes(16))
    assert not node.image.topics


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_name_that_is_not_there_is_refused(version: int) -> None:
    node = a_broker()

    (result,) = node.ask(api, request(version, "no"), DeleteTopicsResponse, version).responses

    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert bool(result.error_message) == (version >= 5)
    assert set(node.image.topics) == {"t"}


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (DeleteTopicState(topic_id=topic_id(1)), ErrorCode.NONE),
        (DeleteTopicState(topic_id=topic_id(9)), ErrorCode.UNKNOWN_TOPIC_ID),
        (DeleteTopicState(name="t", topic_id=topic_id(1)), ErrorCode.INVALID_REQUEST),
        (DeleteTopicState(), ErrorCode.INVALID_REQUEST),
    ],
)
def test_version_6_also_takes_ids_but_not_both(topic: DeleteTopicState, error: ErrorCode) -> None:
    node = a_broker()
    call = DeleteTopicsRequest(topics=[topic], timeout_ms=1_000)

    (result,) = node.ask(api, call, DeleteTopicsResponse, 6).responses

    assert result.error_code == error
    assert result.topic_id == topic.topic_id
    assert bool(node.image.topics) == (error != ErrorCode.NONE)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (1, ErrorCode.INVALID_REQUEST),
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.TOPIC_DELETION_DISABLED),
        (6, ErrorCode.TOPIC_DELETION_DISABLED),
    ],
)
def test_deletion_can_be_switched_off(version: int, error: ErrorCode) -> None:
    node = a_broker(delete_topic_enable="false")

    (result,) = node.ask(api, request(version), DeleteTopicsResponse, version).responses

    assert (result.name, result.error_code) == ("t", error)
    assert set(node.image.topics) == {"t"}


def test_no_time_is_too_little_time() -> None:
    node = a_broker()

    response = node.ask(api, request(6, timeout_ms=0), DeleteTopicsResponse, 6)

    assert response.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert set(node.image.topics) == {"t"}


def test_the_answer_waits_until_the_topic_is_gone() -> None:
    node = a_broker()

    node.send(api, request(6), 6)

    assert node.answers == []
    assert set(node.image.topics) == {"t"}
