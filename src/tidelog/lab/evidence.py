"""Evidence: what brokers answer and disks hold, as values in which placeholders are None.

The versions are some that Apache Kafka 4 also speaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.core.formats import file_names
from tidelog.core.formats.producer_snapshots import decode_snapshot
from tidelog.core.formats.text_checkpoints import lines_so_far, parse_leader_epoch
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_01_fetch import FetchRequest, FetchResponse, PartitionData
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from tidelog.core.wire.messages.api_75_describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
)
from tidelog.core.wire.messages.api_75_describe_topic_partitions import (
    TopicRequest as TopicToDescribe,
)
from tidelog.core.wire.record_batch import CorruptBatch, batches, crc_is_valid
from tidelog.core.wire.records import iterate
from tidelog.core.wire.schema import Message
from tidelog.lab.engine import RequestSeen

INT32_VALUES = 2**31

DESCRIBE_VERSION = 0
LIST_OFFSETS_VERSION = 7
FETCH_VERSION = 16
DESCRIBE_PRODUCERS_VERSION = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic of the story."""

    name: str
    topic_id: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A partition as a broker's metadata has it. Lists without an order are sorted."""

    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible: tuple[int, ...]
    last_known: tuple[int, ...]
    offline: tuple[int, ...]
    error: ErrorCode


class LogEntry(NamedTuple):
    """One record as it lies on a disk."""

    offset: int
    leader_epoch: int
    payload: str
    producer_id: int | None = None
    sequence: int | None = None
    producer_epoch: int | None = None


class FollowerFetch(NamedTuple):
    """One fetch of a follower as it concerns one partition."""

    at_us: int
    offset: int
    last_fetched_leader_epoch: int | None
    current_leader_epoch: int | None
    answered_us: int | None
    answer: PartitionData | None
    """None: no answer, or none about this partition."""

    @property
    def diverged(self) -> tuple[int, int] | None:
        """(leader epoch, end offset) where the leader says that the logs part."""
        if self.answer is None or self.answer.diverging_epoch.epoch < 0:
            return None
        return self.answer.diverging_epoch.epoch, self.answer.diverging_epoch.end_offset


class ProducerEntry(NamedTuple):
    """What a replica remembers of a producer."""

    producer_epoch: int
    sequence: int | None


def describe(topic: Topic) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=[TopicToDescribe(name=topic.name)])


def descriptions(answer: Message) -> list[Description]:
    """Every partition of the answer to `describe`, by its index."""
    assert isinstance(answer, DescribeTopicPartitionsResponse), answer
    by_index = sorted(answer.topics[0].partitions, key=lambda each: each.partition_index)
    return [_description(each) for each in by_index]


def _description(partition: DescribeTopicPartitionsResponsePartition) -> Description:
    return Description(
        leader=partition.leader_id if partition.leader_id >= 0 else None,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(sorted(partition.isr_nodes)),
        eligible=tuple(sorted(partition.eligible_leader_replicas or ())),
        last_known=tuple(sorted(partition.last_known_elr or ())),
        offline=tuple(sorted(partition.offline_replicas)),
        error=ErrorCode(partition.error_code),
    )


def follower_fetches(
    topic: Topic, seen: Iterable[RequestSeen], index: int = 0
) -> Iterator[FollowerFetch]:
    """Those requests that name the partition, which in a session is where something changed."""
    for each in seen:
        request, answer = each.request, each.answer
        assert isinstance(request, FetchRequest), request
        requested = [
            partition
            for by_topic in request.topics
            if by_topic.topic_id == topic.topic_id
            for partition in by_topic.partitions
            if partition.partition == index
        ]
        answers = [
            partition
            for by_topic in (answer.responses if isinstance(answer, FetchResponse) else ())
            if by_topic.topic_id == topic.topic_id
            for partition in by_topic.partitions
            if partition.partition_index == index
        ]
        for partition in requested:
            yield FollowerFetch(
                at_us=each.at_us,
                offset=partition.fetch_offset,
                last_fetched_leader_epoch=_or_none(partition.last_fetched_epoch),
                current_leader_epoch=_or_none(partition.current_leader_epoch),
                answered_us=each.answered_us,
                answer=answers[0] if answers else None,
            )


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


def describe_producers(topic: Topic, index: int) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[TopicRequest(name=topic.name, partition_indexes=[index])]
    )


def known_producers(answer: Message) -> dict[int, ProducerEntry]:
    """Producer id → its epoch and the last sequence that the replica has of it."""
    assert isinstance(answer, DescribeProducersResponse), answer
    found = answer.topics[0].partitions[0]
    assert found.error_code == ErrorCode.NONE, ErrorCode(found.error_code)
    return {
        each.producer_id: ProducerEntry(each.producer_epoch, each.last_sequence)
        for each in found.active_producers
    }


def segments(files: Mapping[str, bytes]) -> bytes:
    """The bytes of a partition's segments, one behind the other."""
    return b"".join(files[name] for name in sorted(files) if name.endswith(file_names.LOG))


def entries(records: bytes | memoryview | None) -> Iterator[LogEntry]:
    """The records of a log or of an answer up to the first bad byte; control records left out."""
    view = memoryview(records or b"")
    try:
        for position, header in batches(view):
            if not crc_is_valid(view, position, header):
                return
            if header.is_control:
                continue
            for number, record in enumerate(iterate(view, position)):
                is_numbered = header.producer_id >= 0 and header.base_sequence >= 0
                yield LogEntry(
                    offset=record.offset,
                    leader_epoch=header.leader_epoch,
                    payload=(record.value or b"").decode(errors="replace"),
                    producer_id=header.producer_id if is_numbered else None,
                    sequence=(header.base_sequence + number) % INT32_VALUES
                    if is_numbered
                    else None,
                    producer_epoch=header.producer_epoch if is_numbered else None,
                )
    except CorruptBatch:
        return


def leader_epochs(files: Mapping[str, bytes]) -> dict[int, int]:
    """Leader epoch → start offset, from the file `leader-epoch-checkpoint` of a replica."""
    content = files.get(file_names.LEADER_EPOCHS, b"")
    return dict(filter(None, map(parse_leader_epoch, lines_so_far(content))))


def producer_snapshots(files: Mapping[str, bytes]) -> dict[int, ProducerEntry]:
    """Producer id → its epoch and last sequence, from the newest `.snapshot` file of a replica."""
    names = sorted(name for name in files if name.endswith(file_names.SNAPSHOT))
    assert names, "there is no producer snapshot"
    return {
        each.producer_id: ProducerEntry(each.producer_epoch, each.sequence)
        for each in decode_snapshot(files[names[-1]])
    }
