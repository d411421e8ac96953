"""DescribeLogDirs: the logs of each directory with their sizes, all of them or some."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.unit.core.node.hosting import TOPIC, HostingBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.node.api import api_35_describe_log_dirs as api
from tidelog.core.wire.messages.api_35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


class WithDirectories(HostingBroker):
    """One directory with a log beside the metadata log, one that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.replica_manager = SimpleNamespace(
            directories=[
                SimpleNamespace(
                    path="/a",
                    offline=None,
                    logs={TopicPartition(each, 0): self.log for each in (TOPIC, METADATA_TOPIC)},
                ),
                SimpleNamespace(path="/b", offline="input/output error", logs={}),
            ]
        )


def described(
    node: HostingBroker, topics: list[DescribableLogDirTopic] | None, version: int = 5
) -> DescribeLogDirsResponse:
    request = DescribeLogDirsRequest(topics=topics)
    return node.ask(api, request, DescribeLogDirsResponse, version)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_logs_are_described_with_their_sizes_and_failed_directories_as_such(version: int) -> None:
    node = WithDirectories()
    node.append(1, 2)
    assert node.log.size_bytes > 0

    answer = described(node, None, version)

    partition = DescribeLogDirsPartition(partition_index=0, partition_size=node.log.size_bytes)
    assert answer.results == [
        DescribeLogDirsResult(
            log_dir="/a", topics=[DescribeLogDirsTopic(name=TOPIC, partitions=[partition])]
        ),
        DescribeLogDirsResult(log_dir="/b", error_code=ErrorCode.KAFKA_STORAGE_ERROR),
    ]


def test_only_what_was_asked_for_is_described() -> None:
    node = WithDirectories()
    other = DescribableLogDirTopic(topic=TOPIC, partitions=[1, 7])
    this = DescribableLogDirTopic(topic=TOPIC, partitions=[0])

    assert described(node, [other]).results[0].topics == []
    assert described(node, []).results[0].topics == []
    assert [topic.name for topic in described(node, [this]).results[0].topics] == [TOPIC]
