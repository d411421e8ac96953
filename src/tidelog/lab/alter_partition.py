"""AlterPartition as a leader would send it to the controller, right or wrong.

What a leader knows and a client does not (broker epochs, the partition epoch) is taken from the
trace of the controller, which admitted every broker and changed every partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartition,
    AlterPartitionRequestTopic,
    AlterPartitionResponse,
    BrokerState,
)

if TYPE_CHECKING:
    from tidelog.lab.lab import Lab

ALTER_PARTITION_VERSION = 3


def broker_epoch(lab: Lab, controller: int, broker: int) -> int:
    """What this broker was given when it last registered."""
    for admitted in reversed(lab.happenings(controller, "BrokerAdmitted")):
        if admitted.fields["broker_id"] == broker:
            return int(admitted.fields["broker_epoch"])
    raise AssertionError(f"broker {broker} never registered with {controller}")


def current_partition_epoch(lab: Lab, controller: int) -> int:
    """Of the story's partition 0, from the controller's own trace."""
    changes = [
        each
        for kind in ("PartitionCreated", "PartitionChanged")
        for each in lab.happenings(controller, kind)
        if each.fields["topic"] == lab.topic.name and each.fields["index"] == 0
    ]
    return max(int(each.fields["partition_epoch"]) for each in changes)


def alter_isr(
    lab: Lab,
    controller: int,
    *,
    leader: int,
    leader_epoch: int,
    partition_epoch: int,
    isr: Mapping[int, int],
    as_member: bool = True,
) -> ErrorCode:
    """Ask for an ISR (broker → broker epoch) as a leader does; returns the controller's answer."""
    partition = AlterPartitionRequestPartition(
        partition_index=0,
        leader_epoch=leader_epoch,
        new_isr_with_epochs=[
            BrokerState(broker_id=member, broker_epoch=known) for member, known in isr.items()
        ],
        partition_epoch=partition_epoch,
    )
    by_topic = AlterPartitionRequestTopic(topic_id=lab.topic.topic_id, partitions=[partition])
    request = AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=broker_epoch(lab, controller, leader),
        topics=[by_topic],
    )
    answer = lab.ask(controller, request, ALTER_PARTITION_VERSION, as_member=as_member)
    assert isinstance(answer, AlterPartitionResponse), answer
    if answer.error_code != ErrorCode.NONE:
        return ErrorCode(answer.error_code)
    return ErrorCode(answer.topics[0].partitions[0].error_code)
