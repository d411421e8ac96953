"""DescribeLogDirs (api key 35), versions 1 to 5.

Describes the log directories of the broker that is asked: which replicas lie there, how large their
logs are, and whether a directory failed. As in Kafka, the metadata log is not shown; unlike in
Kafka, the size of the volume is not, either.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.wire.messages.api_35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 35
VERSIONS = range(1, 6)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DescribeLogDirsRequest)
    wanted = None
    if call.topics is not None:
        wanted = {
            TopicPartition(topic.topic, index)
            for topic in call.topics
            for index in topic.partitions
        }
    results = [_directory(each, wanted) for each in node.replica_manager.directories]
    request.answer(DescribeLogDirsResponse(results=results))


def _directory(
    directory: LogDirectory, wanted: Container[TopicPartition] | None
) -> DescribeLogDirsResult:
    if directory.offline is not None:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path
        )
    topics: dict[str, DescribeLogDirsTopic] = {}
    for name, log in sorted(directory.logs.items()):
        if name.topic != METADATA_TOPIC and (wanted is None or name in wanted):
            topic = topics.setdefault(name.topic, DescribeLogDirsTopic(name=name.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=name.index,
                    partition_size=log.size_bytes,
                    offset_lag=max(0, log.high_watermark - log.log_end_offset),
                )
            )
    return DescribeLogDirsResult(log_dir=directory.path, topics=list(topics.values()))
