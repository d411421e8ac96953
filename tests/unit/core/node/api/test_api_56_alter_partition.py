"""AlterPartition: a leader proposes an in-sync set, and is answered with the partition as it is."""

from __future__ import annotations

import pytest

from tests.unit.core.controller.cluster import ID
from tests.unit.core.metadata.given import topic_id
from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tests.unit.core.node.controller_bench import ControllerBench
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_56_alter_partition as api
from tidelog.core.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartition,
    AlterPartitionRequestTopic,
    AlterPartitionResponse,
    BrokerState,
)
from tidelog.core.wire.schema import Message


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, AlterPartitionRequest(broker_id=1), AlterPartitionResponse)


def altered(given: ControllerBench, *isr: int, version: int = 3, broker_epoch: int = 1) -> Message:
    return given.ask(
        api,
        AlterPartitionRequest(
            broker_id=1,
            broker_epoch=broker_epoch,
            topics=[
                AlterPartitionRequestTopic(
                    topic_id=ID,
                    partitions=[
                        AlterPartitionRequestPartition(
                            partition_index=0,
                            leader_epoch=0,
                            partition_epoch=0,
                            new_isr=list(isr) if version < 3 else [],
                            new_isr_with_epochs=(
                                [BrokerState(broker_id=each, broker_epoch=each) for each in isr]
                                if version >= 3
                                else []
                            ),
                        )
                    ],
                ),
                AlterPartitionRequestTopic(
                    topic_id=topic_id(5),
                    partitions=[AlterPartitionRequestPartition(partition_index=4)],
                ),
            ],
        ),
        AlterPartitionResponse,
        version,
    )


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_leader_is_told_the_partition_as_it_will_be(version: int) -> None:
    given = office()

    answer = altered(given, 1, 2, version=version)

    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error_code == ErrorCode.NONE
    (first,), (second,) = (each.partitions for each in answer.topics)
    assert (first.error_code, first.isr, first.leader_id) == (0, [1, 2], 1)
    assert (first.leader_epoch, first.partition_epoch) == (0, 1)
    assert (second.partition_index, second.error_code) == (4, ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_leader_of_another_life_is_refused_as_a_whole() -> None:
    answer = altered(office(), 1, 2, broker_epoch=0)

    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert answer.topics == []


def test_a_state_of_recovery_that_does_not_exist_is_nonsense() -> None:
    partition = AlterPartitionRequestPartition(partition_index=0, leader_recovery_state=7)
    topics = [AlterPartitionRequestTopic(topic_id=ID, partitions=[partition])]
    request = AlterPartitionRequest(broker_id=1, broker_epoch=1, topics=topics)

    answer = office().ask(api, request, AlterPartitionResponse)

    assert (answer.error_code, answer.topics) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
