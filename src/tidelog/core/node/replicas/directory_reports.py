"""Directory reports: the controller learns in which log directory each replica lies.

A broker with one directory seldom has something to report: the controller takes it for granted.
What is reported stands in the metadata afterwards, so a report is wanted as long as the metadata
says otherwise, and it is repeated until the controller has taken it.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.model.alarms import Alarm, Alarms
from tidelog.core.node.controller.controller_channel import ControllerChannel
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tidelog.core.wire.schema import Message

VERSION = 0
RETRY_MS = 50
REPORTS_MAX = 2_000
"""In one request; the rest comes after it. (Kafka's limit is 2250.)"""


class DirectoryReports:
    """Invariant: one request under way or one alarm set while anything is wanted."""

    def __init__(
        self,
        *,
        node_id: int,
        alarms: Alarms,
        channel: ControllerChannel,
        broker_epoch: Callable[[], int | None],
    ) -> None:
        self._node_id = node_id
        self._alarms = alarms
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._wanted: dict[Partition, bytes] = {}
        self._is_asking = False
        self._alarm: Alarm | None = None

    def consider(self, partition: Partition, *, known: bytes, actual: bytes, now_ms: int) -> None:
        """A partition was opened, or the metadata about it changed."""
        if known == actual:
            self._wanted.pop(partition, None)
        else:
            self._wanted[partition] = actual
            self._wake(now_ms)

    def forget(self, partition: Partition) -> None:
        self._wanted.pop(partition, None)

    def _wake(self, at_ms: int) -> None:
        if not self._is_asking and (self._alarm is None or not self._alarm.is_pending):
            self._alarm = self._alarms.at(at_ms, self._ask)

    def _ask(self, now_ms: int) -> None:
        if not self._wanted:
            return
        broker_epoch = self._broker_epoch()
        if broker_epoch is None:
            self._wake(now_ms + RETRY_MS)
            return
        reported = dict(list(self._wanted.items())[:REPORTS_MAX])
        self._is_asking = True

        def then(answer: Message | NoAnswer, now_ms: int) -> None:
            self._is_asking = False
            wait_ms = RETRY_MS
            if isinstance(answer, AssignReplicasToDirsResponse) and not answer.error_code:
                self._take(reported)
                wait_ms = 0
            if self._wanted:
                self._wake(now_ms + wait_ms)

        request = AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=broker_epoch,
            directories=_directories(reported),
        )
        self._channel.ask(request, VERSION, then, now_ms=now_ms)

    def _take(self, reported: dict[Partition, bytes]) -> None:
        """Taken down, or void: then the metadata says so, and we look again when it comes."""
        for partition, directory in reported.items():
            if self._wanted.get(partition) == directory:
                del self._wanted[partition]


def _directories(reported: dict[Partition, bytes]) -> list[DirectoryData]:
    grouped: dict[bytes, dict[bytes, list[PartitionData]]] = {}
    for partition, directory in reported.items():
        topics = grouped.setdefault(directory, {})
        index = PartitionData(partition_index=partition.topic_partition.index)
        topics.setdefault(partition.topic_id, []).append(index)
    return [
        DirectoryData(
            id_=directory,
            topics=[
                TopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )
        for directory, topics in grouped.items()
    ]
