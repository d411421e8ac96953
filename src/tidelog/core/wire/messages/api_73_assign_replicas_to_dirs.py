"""AssignReplicasToDirs (api key 73): a broker reports which directory holds what."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, int64, uuid


class PartitionData(Struct):
    """A replica of the broker that asks."""

    partition_index: int = int32()


class TopicData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class DirectoryData(Struct):
    """A log directory and what lies in it."""

    id_: bytes = uuid()
    topics: list[TopicData] = array(TopicData)


class AssignReplicasToDirsRequest(Message, api_key=73, versions="0", flexible_from=0):
    """Where replicas lie."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[DirectoryData] = array(DirectoryData)


class PartitionResult(Struct):
    """Whether the controller took it down."""

    partition_index: int = int32()
    error_code: int = int16()


class TopicResult(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class DirectoryResult(Struct):
    """A log directory and what was reported to lie in it."""

    id_: bytes = uuid()
    topics: list[TopicResult] = array(TopicResult)


class AssignReplicasToDirsResponse(Message, api_key=73, versions="0", flexible_from=0):
    """What became of each."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[DirectoryResult] = array(DirectoryResult)
