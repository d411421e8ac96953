"""AlterPartition (api key 56): a leader asks the controller to change an ISR.

Version 3 gives each member of the new ISR with its broker epoch, so that a broker which has
restarted meanwhile is not let in unseen.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int8, int16, int32, int64, uuid


class BrokerState(Struct):
    """A member of the new ISR; the epoch is -1 where it is not to be checked."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AlterPartitionRequestPartition(Struct):
    """The proposed ISR, and the epochs for which it was decided."""

    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32, "2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


class AlterPartitionRequestTopic(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid(ignorable=True)
    partitions: list[AlterPartitionRequestPartition] = array(AlterPartitionRequestPartition)


class AlterPartitionRequest(Message, api_key=56, versions="2-3", flexible_from=0):
    """What the leader proposes."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[AlterPartitionRequestTopic] = array(AlterPartitionRequestTopic)


class AlterPartitionResponsePartition(Struct):
    """The partition as the controller now has it, or why the proposal was refused."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    leader_recovery_state: int = int8(ignorable=True)
    partition_epoch: int = int32()


class AlterPartitionResponseTopic(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid(ignorable=True)
    partitions: list[AlterPartitionResponsePartition] = array(AlterPartitionResponsePartition)


class AlterPartitionResponse(Message, api_key=56, versions="2-3", flexible_from=0):
    """What became of each proposal."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[AlterPartitionResponseTopic] = array(AlterPartitionResponseTopic)
