"""CreatePartitions (api key 37): more partitions for topics that exist."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Struct):
    """The brokers for one new partition."""

    broker_ids: list[int] = array(int32)


class CreatePartitionsTopic(Struct):
    """A topic and how many partitions it shall have in all."""

    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, nullable="0+"
    )


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible_from=2):
    """Topics that shall grow."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsTopicResult(Struct):
    """What became of one topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible_from=2):
    """What became of each topic."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
