"""What every API of the controller keeps to; the test of each such API runs these rules."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from tests.unit.core.controller.cluster import broker, state
from tests.unit.core.metadata.given import topic
from tests.unit.core.node.controller_bench import ControllerBench
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.codec import decode
from tidelog.core.wire.schema import Message

Rule = Callable[[ModuleType, Message, type[Message]], None]


def office(*states: PartitionState) -> ControllerBench:
    """A controller of three brokers and the topic `t` with these partitions, or with one."""
    brokers = [broker(each) for each in (1, 2, 3)]
    return ControllerBench(*brokers, *topic("t", 1, *(states or (state(1, 2, 3),))))


def refused_by_other_nodes_in_every_version(
    api: ModuleType, message: Message, response: type[Message]
) -> None:
    given = office()
    given.metadata.is_active = False
    (error_code,) = (field for field in response.schema if field.name == "error_code")

    for version in api.VERSIONS:
        if error_code.exists_in(version):
            answer = given.ask(api, message, response, version)
            assert answer.error_code == ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]


def answered_when_all_that_was_decided_before_is_committed(
    api: ModuleType, message: Message, response: type[Message]
) -> None:
    given = office()
    given.metadata.is_prompt = False
    version = api.VERSIONS[-1]

    answers = given.send(api, message, version)
    assert answers == []
    given.metadata.commit()

    (answer,) = answers
    decode(response, memoryview(answer), version)


def refused_by_a_controller_that_resigns_before_the_commit(
    api: ModuleType, message: Message, response: type[Message]
) -> None:
    given = office()
    given.metadata.is_prompt = False
    version = api.VERSIONS[-1]

    answers = given.send(api, message, version)
    given.metadata.resign()

    decoded = decode(response, memoryview(answers[0]), version)
    assert decoded.error_code == ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]


CONTROLLER_RULES = (
    refused_by_other_nodes_in_every_version,
    answered_when_all_that_was_decided_before_is_committed,
    refused_by_a_controller_that_resigns_before_the_commit,
)
