"""DescribeLogDirs (api key 35): what lies in a broker's log directories, and how much of it.

Version 2 is flexible, 3 has an error for the whole, 4 the size of the volume, 5 says whether new
partitions are kept out of a directory.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string
from tidelog.core.wire.sentinels import UNKNOWN_VOLUME_BYTES


class DescribableLogDirTopic(Struct):
    """Partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32)


class DescribeLogDirsRequest(Message, api_key=35, versions="1-5", flexible_from=2):
    """The partitions in question; no list means all."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


class DescribeLogDirsPartition(Struct):
    """The log of one replica."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


class DescribeLogDirsTopic(Struct):
    """The logs of one topic."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    """One log directory."""

    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=UNKNOWN_VOLUME_BYTES, ignorable=True)
    usable_bytes: int = int64("4+", default=UNKNOWN_VOLUME_BYTES, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible_from=2):
    """All log directories of the broker that was asked."""

    throttle_time_ms: int = int32()
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
