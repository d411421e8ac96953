"""Reports of directories: asked once, in one request, and again until the controller took them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from tests.unit.core.metadata.given import DIRECTORY, topic_id
from tests.unit.core.node.brokers import NUMBER, Brokers
from tidelog.core.metadata.records import PartitionChangeRecord
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.node.replicas.directory_reports import RETRY_MS, DirectoryReports
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from tidelog.core.wire.schema import Message

UNASSIGNED, ONE, TWO = bytes(16), b"1" * 16, b"2" * 16
Then = Callable[[Message | NoAnswer, int], None]


class Bench:
    """A node as far as reports know it, and a controller that answers when it is told to."""

    def __init__(self) -> None:
        self.broker_epoch: int | None = 5
        self.asked: list[tuple[AssignReplicasToDirsRequest, Then]] = []
        self.now_ms = 1_000
        self.alarms = Alarms()
        self.reports = DirectoryReports(
            node_id=1,
            alarms=self.alarms,
            channel=cast("Any", SimpleNamespace(ask=self._ask)),
            broker_epoch=lambda: self.broker_epoch,
        )

    def _ask(
        self, request: AssignReplicasToDirsRequest, version: int, then: Then, *, now_ms: int
    ) -> None:
        self.asked.append((request, then))

    def consider(self, partition: Partition, *, known: bytes, actual: bytes) -> None:
        self.reports.consider(partition, known=known, actual=actual, now_ms=self.now_ms)

    def run(self, *, after_ms: int = 0) -> None:
        self.now_ms += after_ms
        self.alarms.run(self.now_ms)

    def answer(self, message: Message | NoAnswer) -> None:
        self.asked[-1][1](message, self.now_ms)

    def told(self) -> list[tuple[bytes, bytes, list[int]]]:
        return told(self.asked[-1][0])


def told(request: AssignReplicasToDirsRequest) -> list[tuple[bytes, bytes, list[int]]]:
    """Directory, topic, partitions."""
    return [
        (directory.id_, topic.topic_id, [each.partition_index for each in topic.partitions])
        for directory in request.directories
        for topic in directory.topics
    ]


def partition(index: int) -> Partition:
    found = SimpleNamespace(topic_id=b"t" * 16, topic_partition=TopicPartition("t", index))
    return cast("Partition", _Hashable(**vars(found)))


class _Hashable(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]


def test_even_the_only_directory_is_told_when_the_metadata_names_another() -> None:
    cluster = Brokers(1, 2, grants_proposals=False)
    assert not cluster.controller_requests, "both are where the metadata says"

    cluster.apply(
        PartitionChangeRecord(
            partition_id=0, topic_id=topic_id(NUMBER), directories=[DIRECTORY, UNASSIGNED]
        )
    )
    cluster.pass_time(1)

    (request,) = cluster.controller_requests
    report = cast("AssignReplicasToDirsRequest", request.request)
    assert (request.asker, report.broker_id, report.broker_epoch) == (2, 2, 2)
    assert told(report) == [(DIRECTORY, topic_id(NUMBER), [0])]


def test_all_that_is_new_goes_in_one_request_and_is_told_once() -> None:
    bench = Bench()
    for index, actual in enumerate((ONE, TWO, ONE)):
        bench.consider(partition(index), known=UNASSIGNED, actual=actual)
    bench.run()

    assert bench.told() == [(ONE, b"t" * 16, [0, 2]), (TWO, b"t" * 16, [1])]
    assert (bench.asked[0][0].broker_id, bench.asked[0][0].broker_epoch) == (1, 5)
    bench.answer(AssignReplicasToDirsResponse())
    bench.run(after_ms=10_000)
    assert len(bench.asked) == 1


def test_what_the_metadata_knows_is_not_told() -> None:
    bench = Bench()
    known = partition(0)
    bench.consider(known, known=UNASSIGNED, actual=ONE)
    bench.consider(known, known=ONE, actual=ONE)
    deleted = partition(1)
    bench.consider(deleted, known=UNASSIGNED, actual=TWO)
    bench.reports.forget(deleted)
    bench.run()

    assert bench.asked == []


def test_without_an_answer_or_a_controller_it_is_told_again() -> None:
    bench = Bench()
    bench.consider(partition(0), known=UNASSIGNED, actual=ONE)
    bench.run()
    bench.answer(NoAnswer("closed"))
    bench.run()
    assert len(bench.asked) == 1
    bench.run(after_ms=RETRY_MS)
    bench.answer(AssignReplicasToDirsResponse(error_code=ErrorCode.NOT_CONTROLLER))
    bench.run(after_ms=RETRY_MS)

    assert len(bench.asked) == 3
    assert bench.told() == [(ONE, b"t" * 16, [0])]


def test_nothing_is_told_before_the_broker_is_registered() -> None:
    bench = Bench()
    bench.broker_epoch = None
    bench.consider(partition(0), known=UNASSIGNED, actual=ONE)
    bench.run()
    assert bench.asked == []

    bench.broker_epoch = 6
    bench.run(after_ms=RETRY_MS)
    assert bench.asked[0][0].broker_epoch == 6


def test_what_changed_while_it_was_asked_is_told_after_the_answer() -> None:
    bench = Bench()
    moved = partition(0)
    bench.consider(moved, known=UNASSIGNED, actual=ONE)
    bench.run()
    bench.consider(moved, known=UNASSIGNED, actual=TWO)
    bench.answer(AssignReplicasToDirsResponse())
    bench.run()

    assert bench.told() == [(TWO, b"t" * 16, [0])]
