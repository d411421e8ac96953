"""The fake broker's Fetch: sessions, leader epochs, a wait for records, and read replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.unit.client.fake_log import FakePartition, check_epoch
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_01_fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from tidelog.core.wire.record_batch import read_header
from tidelog.core.wire.schema import Message

if TYPE_CHECKING:
    from tests.unit.client.fake_cluster import FakeBroker, FakeCluster

LOOK_AGAIN_MS = 2


def named(cluster: FakeCluster, topic: Any, *, by: str) -> str:
    """The name of a topic that may be meant by its id."""
    names = {topic_id: name for name, topic_id in cluster.topics.items()}
    return names.get(bytes(topic.topic_id)) or str(getattr(topic, by))


def fetch(cluster: FakeCluster, broker: FakeBroker, request: Any) -> Message | Parked:
    """A session's partitions, or an error if there is no such session."""
    if request.session_epoch == -1 and request.session_id == 0:
        wanted = {
            TopicPartition(named(cluster, topic, by="topic"), each.partition): each
            for topic in request.topics
            for each in topic.partitions
        }
        return Parked(request, 0, wanted)
    if request.session_epoch == -1:
        broker.sessions.pop(request.session_id, None)
        return FetchResponse()
    if request.session_epoch == 0:
        broker.sessions.pop(request.session_id, None)
        session_id = 100 * broker.id + len(cluster.seen)
        broker.sessions[session_id] = {}
    else:
        session_id = request.session_id
        if session_id not in broker.sessions:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    session = broker.sessions[session_id]
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.pop(TopicPartition(named(cluster, topic, by="topic"), index), None)
    for topic in request.topics:
        for each in topic.partitions:
            name = TopicPartition(named(cluster, topic, by="topic"), each.partition)
            session[name] = each
    return Parked(request, session_id, session)


class Parked:
    """A fetch that waits for records until its time is up."""

    def __init__(self, request: Any, session_id: int, session: dict[TopicPartition, Any]) -> None:
        self._request = request
        self._session_id = session_id
        self._session = session

    def wait(
        self, cluster: FakeCluster, broker: FakeBroker, reply: Callable[[Message], None]
    ) -> None:
        until_ms = cluster.clock.now_ms + self._request.max_wait_ms

        def look() -> None:
            if not broker.is_up or broker.is_silent:
                return
            answer, is_worth_it = self._read(cluster, broker)
            if is_worth_it or cluster.clock.now_ms >= until_ms:
                reply(answer)
            else:
                cluster.clock.after(LOOK_AGAIN_MS, look)

        look()

    def _read(self, cluster: FakeCluster, broker: FakeBroker) -> tuple[FetchResponse, bool]:
        answer = FetchResponse(session_id=self._session_id)
        is_full = self._request.session_epoch <= 0
        is_worth_it = False
        for name, asked in self._session.items():
            data = self._partition(cluster, broker, cluster.partitions[name], asked, answer)
            data.partition_index = name.index
            has_news = bool(data.records or data.error_code or data.preferred_read_replica >= 0)
            is_worth_it |= has_news
            if has_news or is_full:
                topic_id = cluster.topics[name.topic]
                answer.responses.append(
                    FetchableTopicResponse(topic=name.topic, topic_id=topic_id, partitions=[data])
                )
        return answer, is_worth_it

    def _partition(
        self,
        cluster: FakeCluster,
        broker: FakeBroker,
        partition: FakePartition,
        asked: Any,
        answer: FetchResponse,
    ) -> PartitionData:
        data = PartitionData(high_watermark=-1)
        is_follower = partition.leader != broker.id and partition.preferred_replica == broker.id
        error = check_epoch(partition, broker.id, asked.current_leader_epoch)
        if is_follower and error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            error = ErrorCode.NONE
        data.error_code = error
        if error != ErrorCode.NONE:
            self._hint(cluster, partition, data, answer)
            return data
        end_offset = partition.high_watermark
        if is_follower:
            end_offset -= partition.follower_lag
        if not partition.log_start_offset <= asked.fetch_offset <= end_offset:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            return data
        data.high_watermark = data.last_stable_offset = end_offset
        data.log_start_offset = partition.log_start_offset
        if partition.preferred_replica not in (None, broker.id) and self._request.rack_id:
            data.preferred_read_replica = partition.preferred_replica or -1
            return data
        found = [
            batch
            for batch in partition.log
            if read_header(batch).end_offset > asked.fetch_offset
            and read_header(batch).end_offset <= end_offset
        ]
        data.records = b"".join(found)
        if self._request.isolation_level:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                for producer_id, first_offset in partition.aborted
            ]
        return data

    def _hint(
        self,
        cluster: FakeCluster,
        partition: FakePartition,
        data: PartitionData,
        answer: FetchResponse,
    ) -> None:
        if not cluster.gives_hints or partition.leader is None:
            return
        leader = cluster.brokers[partition.leader]
        data.current_leader = LeaderIdAndEpoch(
            leader_id=leader.id, leader_epoch=partition.leader_epoch
        )
        answer.node_endpoints = [NodeEndpoint(node_id=leader.id, host=leader.host, port=9092)]
