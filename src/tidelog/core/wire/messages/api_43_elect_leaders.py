"""ElectLeaders (api key 43): elect the preferred replica, or any that lives, as leader.

Version 1 brings the kind of election and an error for the whole request.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int8, int16, int32, string


class TopicPartitions(Struct):
    """The partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32)


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible_from=2):
    """Where to elect: type 0 the preferred replica, 1 an unclean one; no list means everywhere."""

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60_000)


class PartitionResult(Struct):
    """How the election of one partition went."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ReplicaElectionResult(Struct):
    """The outcome for one topic."""

    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible_from=2):
    """How the elections went."""

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
