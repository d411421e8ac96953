"""IncrementalAlterConfigs: steps that change settings, each resource as a whole, durably."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.core.metadata.given import broker, state, topic
from tests.unit.core.node.given import NODE_ID, Broker
from tidelog.core.metadata.records import ClearElrRecord, ConfigRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_44_incremental_alter_configs as api
from tidelog.core.node.connections.request import Request
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_request_header, request_header, response_header
from tidelog.core.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tidelog.core.wire.schema import Message

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Step = tuple[str, int, str | None]


@pytest.fixture
def node() -> Broker:
    return Broker(broker(NODE_ID), *topic("t", 1, state(NODE_ID)), *topic("u", 2, state(NODE_ID)))


def resource(kind: int, name: str, *steps: Step) -> AlterConfigsResource:
    configs = [
        AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in steps
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def request(
    *resources: AlterConfigsResource, validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)


def codes(node: Broker, *resources: AlterConfigsResource, **how: bool) -> list[int]:
    answer = node.ask(api, request(*resources, **how), IncrementalAlterConfigsResponse, 1)
    for wanted, result in zip(resources, answer.responses, strict=True):
        assert (result.resource_type, result.resource_name) == (
            wanted.resource_type,
            wanted.resource_name,
        )
        if result.error_code == ErrorCode.NONE:
            assert result.error_message is None
    return [each.error_code for each in answer.responses]


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_setting_is_set_and_deleted_in_both_versions(node: Broker, version: int) -> None:
    for step, after in (
        (("retention.ms", SET, "5"), {"retention.ms": "5"}),
        (("retention.ms", DELETE, None), {}),
    ):
        call = request(resource(TOPIC, "t", step))
        answer = node.ask(api, call, IncrementalAlterConfigsResponse, version)
        assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
        assert node.image.topic_config("t") == after


def test_the_answer_waits_until_the_change_is_durable(node: Broker) -> None:
    node.send(api, request(resource(TOPIC, "t", ("retention.ms", SET, "5"))), 1)
    assert node.answers == []
    assert node.image.topic_config("t") == {}

    node.metadata.commit()
    assert len(node.answers) == 1
    assert node.image.topic_config("t") == {"retention.ms": "5"}


def test_lists_grow_and_shrink(node: Broker) -> None:
    assert codes(node, resource(TOPIC, "t", ("cleanup.policy", APPEND, "compact"))) == [0]
    assert node.image.topic_config("t") == {"cleanup.policy": "delete,compact"}
    assert codes(node, resource(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"))) == [0]
    assert node.image.topic_config("t") == {"cleanup.policy": "compact"}


def test_validation_alone_changes_nothing(node: Broker) -> None:
    good = resource(TOPIC, "t", ("retention.ms", SET, "5"))
    bad = resource(TOPIC, "u", ("retention.ms", SET, "soon"))
    assert codes(node, good, bad, validate_only=True) == [0, ErrorCode.INVALID_CONFIG]
    assert node.metadata.records == []


def test_a_resource_stands_or_falls_as_a_whole(node: Broker) -> None:
    bad = resource(TOPIC, "t", ("retention.ms", SET, "5"), ("segment.bytes", SET, "x"))
    good = resource(TOPIC, "u", ("retention.ms", SET, "5"))
    assert codes(node, bad, good) == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert node.image.topic_config("t") == {}
    assert node.image.topic_config("u") == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("kind", "name", "step", "code"),
    [
        (TOPIC, "t", ("unheard.of", SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", ("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", ("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", ("retention.ms", 9, "1"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (TOPIC, "t", ("remote.storage.enable", SET, "true"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "gone", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "a b", ("retention.ms", SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "1", ("num.partitions", SET, "3"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("message.max.bytes", SET, "x"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("message.max.bytes", 9, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("message.max.bytes", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (BROKER, "1", ("min.insync.replicas", SET, "2"), ErrorCode.INVALID_CONFIG),
        (BROKER, "", ("min.insync.replicas", DELETE, None), ErrorCode.INVALID_CONFIG),
        (BROKER, "", ("listeners", SET, "PLAINTEXT://:1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "2", ("message.max.bytes", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ("message.max.bytes", SET, "1"), ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", ("root", SET, "DEBUG"), ErrorCode.INVALID_CONFIG),
        (LOGGER, "1", ("root", APPEND, "DEBUG"), ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ("root", SET, "DEBUG"), ErrorCode.INVALID_REQUEST),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "44999"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", ("share.session.timeout.ms", SET, "45000"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", ("consumer.session.timeout.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "50000"), ErrorCode.INVALID_REQUEST),
        (77, "x", ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(
    node: Broker, kind: int, name: str, step: Step, code: ErrorCode
) -> None:
    assert codes(node, resource(kind, name, step)) == [code]
    assert node.metadata.records == []


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("1", ("message.max.bytes", SET, "9")),
        ("", ("message.max.bytes", SET, "9")),
        ("", ("min.insync.replicas", SET, "2")),
        ("1", ("num.partitions", DELETE, None)),
        ("", ("of.an.extension", SET, "1")),
    ],
)
def test_a_running_broker_takes_what_may_change(node: Broker, name: str, step: Step) -> None:
    assert codes(node, resource(BROKER, name, step)) == [ErrorCode.NONE]
    (changed,) = (each for each in node.metadata.records if isinstance(each, ConfigRecord))
    assert changed.name == step[0]


def test_a_new_minimum_ends_eligibility_by_the_old_one(node: Broker) -> None:
    step: Step = ("min.insync.replicas", SET, "2")

    assert codes(node, resource(TOPIC, "t", step)) == [ErrorCode.NONE]

    assert node.metadata.records[-1] == ClearElrRecord(topic_name="t")


def test_a_read_only_setting_refuses_its_resource_alone(node: Broker) -> None:
    broken = resource(BROKER, "1", ("message.max.bytes", SET, "9"), ("node.id", SET, "2"))
    whole = resource(BROKER, "", ("message.max.bytes", SET, "8"))
    assert codes(node, broken, whole) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert node.image.broker_config(1) == {}
    assert node.image.cluster_config() == {"message.max.bytes": "8"}


def test_the_same_resource_twice_is_refused_twice(node: Broker) -> None:
    twice = resource(TOPIC, "t", ("retention.ms", SET, "5"))
    other = resource(TOPIC, "u", ("retention.ms", SET, "5"))
    refused = ErrorCode.INVALID_REQUEST
    assert codes(node, twice, other, twice) == [refused, ErrorCode.NONE, refused]


def test_the_same_setting_twice_is_refused(node: Broker) -> None:
    twice = resource(TOPIC, "t", ("retention.ms", SET, "5"), ("retention.ms", DELETE, None))
    assert codes(node, twice) == [ErrorCode.INVALID_REQUEST]


def test_an_unheard_of_operation_spoils_what_is_decided_with_it(node: Broker) -> None:
    """As in Kafka, where the controller stumbles; what was refused before keeps its reason."""
    spoiled = resource(TOPIC, "t", ("retention.ms", 9, "5"))
    good = resource(TOPIC, "u", ("retention.ms", SET, "5"))
    refused = resource(BROKER, "2", ("message.max.bytes", SET, "5"))
    assert codes(node, spoiled, good, refused) == [-1, -1, ErrorCode.INVALID_REQUEST]
    assert node.metadata.records == []


def test_nothing_to_change_is_fine(node: Broker) -> None:
    assert codes(node) == []
    assert codes(node, resource(TOPIC, "t"), resource(LOGGER, "1")) == [0, 0]
    assert node.metadata.records == []


class Whole(Request):
    """Keeps what it is answered with, for a test to read."""

    answers: list[Any]

    def answer(self, message: Message) -> None:
        self.answers.append(message)


class ForwardedCall:
    """A call to a node that forwards; what it forwarded, and what it answered."""

    def __init__(self, *resources: AlterConfigsResource) -> None:
        self.forwarded: list[tuple[Request, bytes]] = []
        self.answers: list[Any] = []
        node = SimpleNamespace(
            settings=SimpleNamespace(node_id=NODE_ID),
            forwarder=SimpleNamespace(
                forward=lambda request, frame, now_ms: self.forwarded.append(
                    (request, bytes(frame))
                )
            ),
        )
        head = request_header(44, 1, correlation_id=5, client_id="c")
        body = encode(request(*resources), 1)
        whole = Whole(cast("Any", SimpleNamespace(id=7)), 44, 1, 5, "c", memoryview(body))
        whole.answers = self.answers
        api.forward(cast("Any", node), whole, memoryview(head + body), 0)


def test_what_this_node_cannot_judge_is_passed_on_as_it_came() -> None:
    call = ForwardedCall(resource(TOPIC, "t", ("retention.ms", SET, "1")), resource(BROKER, "1"))

    ((_, frame),) = call.forwarded
    header = read_request_header(memoryview(frame))
    passed = decode(IncrementalAlterConfigsRequest, memoryview(frame), 1, header.body_position)
    assert [each.resource_name for each in passed.resources] == ["t", "1"]
    assert call.answers == []


def test_another_brokers_settings_are_refused_here_and_the_rest_is_passed_on() -> None:
    call = ForwardedCall(
        resource(BROKER, "2", ("message.max.bytes", SET, "9")),
        resource(TOPIC, "t", ("retention.ms", SET, "1")),
    )

    ((rest, frame),) = call.forwarded
    header = read_request_header(memoryview(frame))
    passed = decode(IncrementalAlterConfigsRequest, memoryview(frame), 1, header.body_position)
    assert [each.resource_name for each in passed.resources] == ["t"]
    refused = AlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_CONFIG, error_message="no", resource_type=2, resource_name="t"
    )
    decided = encode(IncrementalAlterConfigsResponse(responses=[refused]), 1)
    rest.answer_parts([response_header(44, 1, 5) + decided])

    (answer,) = call.answers
    assert [each.error_code for each in answer.responses] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_CONFIG,
    ]


def test_nothing_is_passed_on_when_everything_is_refused_here() -> None:
    call = ForwardedCall(resource(BROKER, "2", ("message.max.bytes", SET, "9")))

    assert call.forwarded == []
    (answer,) = call.answers
    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST]


def test_the_controller_takes_what_another_broker_passed_on_for_itself() -> None:
    node = Broker(broker(NODE_ID), broker(2))
    call = request(resource(BROKER, "2", ("message.max.bytes", SET, "9")))
    body = encode(call, 1)
    answers: list[IncrementalAlterConfigsResponse] = []
    forwarded = SimpleNamespace(
        version=1,
        connection=None,
        decode=lambda cls: decode(cls, memoryview(body), 1),
        answer=answers.append,
    )

    api.handle(cast("Any", node), cast("Any", forwarded), 0)
    node.metadata.commit()

    assert [each.error_code for each in answers[0].responses] == [ErrorCode.NONE]
    assert node.image.broker_config(2) == {"message.max.bytes": "9"}
