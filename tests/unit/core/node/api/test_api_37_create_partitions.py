"""CreatePartitions: topics grow in every version, or the request is only checked."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import broker, state, topic
from tests.unit.core.node.given import Broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_37_create_partitions as api
from tidelog.core.wire.messages.api_37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)


def request(
    name: str = "t",
    count: int = 3,
    assignments: list[list[int]] | None = None,
    *,
    timeout_ms: int = 1_000,
    validate_only: bool = False,
) -> CreatePartitionsRequest:
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=given)],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def a_broker() -> Broker:
    return Broker(broker(1), *topic("t", 1, state(1)))


def size(node: Broker) -> int:
    return len(node.image.topics["t"].partitions)


@pytest.mark.parametrize("version", api.VERSIONS)
@pytest.mark.parametrize("assignments", [None, [[1], [1]]])
def test_a_topic_grows(version: int, assignments: list[list[int]] | None) -> None:
    node = a_broker()

    (result,) = node.ask(
        api, request(assignments=assignments), CreatePartitionsResponse, version
    ).results

    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.NONE, None)
    assert size(node) == 3


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (request("no"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (request(count=1), ErrorCode.INVALID_PARTITIONS),
        (request(count=2, assignments=[[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (request(count=2, assignments=[]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (request(timeout_ms=0), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_a_refusal_leaves_the_topic_as_it_was(
    call: CreatePartitionsRequest, error: ErrorCode
) -> None:
    node = a_broker()

    (result,) = node.ask(api, call, CreatePartitionsResponse, 3).results

    assert result.error_code == error
    assert size(node) == 1


def test_validate_only_writes_nothing() -> None:
    node = a_broker()

    (result,) = node.ask(api, request(validate_only=True), CreatePartitionsResponse, 3).results

    assert result.error_code == ErrorCode.NONE
    assert size(node) == 1


def test_the_answer_waits_until_the_partitions_are_there() -> None:
    node = a_broker()

    node.send(api, request(), 3)

    assert node.answers == []
    assert size(node) == 1
