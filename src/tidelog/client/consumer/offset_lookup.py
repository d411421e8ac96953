"""Offsets by time, or at one end of a partition: asked of leaders until every one is known.

A lookup is one question of a program about several partitions. Leaders that changed are looked up
again; after its time is up a lookup fails as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import CONSUMER_REPLICA_ID


class OffsetAndTimestamp(NamedTuple):
    """Where a time is in a partition."""

    offset: int
    timestamp_ms: int | None
    leader_epoch: int | None


class LookupFailed(NamedTuple):
    """Some partition's offset could not be found out in time, or not at all."""

    reason: str


LookupResult = dict[TopicPartition, OffsetAndTimestamp | None] | LookupFailed
"""None: there is no record of that time or later."""
Answers = dict[TopicPartition, OffsetAndTimestamp | ErrorCode | None]


def send_list_offsets(
    client: Client,
    node: int,
    timestamps: dict[TopicPartition, int],
    then: Callable[[Answers, int], None],
    *,
    is_read_committed: bool,
    now_ms: int,
) -> bool:
    """One request to one leader. False: it speaks no version of it that we do."""
    version = client.connections.version(node, ListOffsetsRequest)
    if version is None:
        return False
    topics: dict[str, ListOffsetsTopic] = {}
    for partition, timestamp_ms in timestamps.items():
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic))
        entry = ListOffsetsPartition(partition_index=partition.index, timestamp=timestamp_ms)
        leader_epoch = client.metadata.leader(partition).leader_epoch
        if leader_epoch is not None:
            entry.current_leader_epoch = leader_epoch
        topic.partitions.append(entry)
    request = ListOffsetsRequest(
        replica_id=CONSUMER_REPLICA_ID,
        isolation_level=int(is_read_committed),
        topics=list(topics.values()),
        timeout_ms=client.config.request_timeout_ms,
    )

    def answered(answer: Message | NoAnswer, now_ms: int) -> None:
        then(_read(answer, timestamps), now_ms)

    client.connections.send(node, request, version, answered, now_ms=now_ms)
    return True


def _read(answer: Message | NoAnswer, timestamps: dict[TopicPartition, int]) -> Answers:
    answers: Answers = dict.fromkeys(timestamps, ErrorCode.NETWORK_EXCEPTION)
    if not isinstance(answer, ListOffsetsResponse):
        return answers
    for topic in answer.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code != ErrorCode.NONE:
                answers[partition] = ErrorCode.from_wire(each.error_code)
            elif each.offset < 0:
                answers[partition] = None
            else:
                answers[partition] = OffsetAndTimestamp(
                    each.offset,
                    each.timestamp if each.timestamp >= 0 else None,
                    each.leader_epoch if each.leader_epoch >= 0 else None,
                )
    return answers


class ListOffsetsLookup:
    """A machine of its own, attached to the client until it has an answer."""

    def __init__(
        self,
        client: Client,
        timestamps: dict[TopicPartition, int],
        then: Callable[[LookupResult, int], None],
        *,
        is_read_committed: bool,
        deadline_ms: int,
    ) -> None:
        self._client = client
        self._missing = dict(timestamps)
        self._then = then
        self._is_read_committed = is_read_committed
        self._deadline_ms = deadline_ms
        self._found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        self._in_flight: set[TopicPartition] = set()
        self._failures = 0
        self._retry_at_ms = 0
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        for partition in timestamps:
            client.refresh.add_topic(partition.topic)
        client.attach(self)

    def run(self, now_ms: int) -> None:
        if not self._missing:
            self._end(self._found, now_ms)
        elif now_ms >= self._deadline_ms:
            names = ", ".join(str(each) for each in self._missing)
            self._end(LookupFailed(f"no offsets in time for {names}"), now_ms)
        elif now_ms >= self._retry_at_ms:
            self._send(now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        return (self._deadline_ms, self._retry_at_ms)

    def _send(self, now_ms: int) -> None:
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for partition, timestamp_ms in self._missing.items():
            leader_id = self._client.metadata.leader(partition).broker_id
            if leader_id is None:
                self._client.refresh.request_update()
            elif partition not in self._in_flight:
                by_leader.setdefault(leader_id, {})[partition] = timestamp_ms
        for leader_id, timestamps in by_leader.items():
            address = self._client.metadata.address(leader_id)
            connections = self._client.connections
            if address is None or not connections.make_usable(leader_id, address, now_ms):
                continue
            self._in_flight.update(timestamps)
            if not send_list_offsets(
                self._client,
                leader_id,
                timestamps,
                self._answered,
                is_read_committed=self._is_read_committed,
                now_ms=now_ms,
            ):
                self._end(LookupFailed(f"broker {leader_id} cannot list offsets"), now_ms)
                return

    def _answered(self, answers: Answers, now_ms: int) -> None:
        self._in_flight.difference_update(answers)
        for partition, answer in answers.items():
            if answer == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._end(LookupFailed(f"{partition}: {answer!r}"), now_ms)
                return
            if isinstance(answer, ErrorCode):
                self._client.refresh.request_update()
                self._retry_at_ms = now_ms + self._back_off.pause_ms(self._failures)
            elif partition in self._missing:
                self._found[partition] = answer
                del self._missing[partition]
        if self._missing:
            self._failures += 1

    def _end(self, result: LookupResult, now_ms: int) -> None:
        if self._client.is_attached(self):
            self._client.detach(self)
            self._then(result, now_ms)
