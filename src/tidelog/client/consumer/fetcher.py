"""The fetcher: one request at a time to each broker, for all partitions that are read from it.

A broker with records that the program has not taken yet is not asked again, so a slow program stops
the flow. After an error a partition pauses, where Java asks again at once and lets the round trip
be the pause.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.cluster_metadata import STALE_METADATA, leader_from_wire
from tidelog.client.consumer.config import ConsumerConfig, Reset
from tidelog.client.consumer.errors import CorruptRecords, OutOfRange, PartitionReadRefused
from tidelog.client.consumer.fetch_session import (
    FetchSessionHandler,
    FetchSessionRequest,
    PartitionFetch,
)
from tidelog.client.consumer.fetched_records import FetchedRecords
from tidelog.client.consumer.positions import AssignedPartition
from tidelog.client.events import LeaderHinted, ReadReplicaChosen
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from tidelog.core.wire.schema import Message

_TOPIC_IDS_FROM = 13
_SESSIONS_FROM = 7
_READ_ELSEWHERE = STALE_METADATA | {ErrorCode.OFFSET_NOT_AVAILABLE}
_WAIT_FOR_IT = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})


class ConsumerFetcher:
    """Fills `fetched`; the consumer takes records out of it and removes what is empty."""

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        partitions: dict[TopicPartition, AssignedPartition],
    ) -> None:
        self._client = client
        self._config = config
        self._partitions = partitions
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._in_flight: set[int] = set()
        self.fetched: dict[TopicPartition, tuple[int, FetchedRecords]] = {}
        """With the broker that it came from."""
        self._deadline_ms: int | None = None
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )

    def run(self, now_ms: int) -> None:
        self._deadline_ms = None
        full = {
            node for name, (node, _) in self.fetched.items() if self._partitions[name].may_fetch
        }
        wanted: dict[int, dict[TopicPartition, PartitionFetch]] = {}
        for partition in self._partitions.values():
            node = self._node_for(partition, now_ms)
            if node is not None and node not in full and node not in self._in_flight:
                wanted.setdefault(node, {})[partition.name] = self._fetched_partition(partition)
        for node, partitions in wanted.items():
            address = self._client.metadata.address(node)
            assert address is not None
            if self._client.connections.make_usable(node, address, now_ms):
                self._send(node, partitions, now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def close(self, now_ms: int) -> None:
        """End the sessions with brokers that can be reached."""
        for node, session in self._sessions.items():
            closing = session.closing()
            if closing is not None and self._client.connections.is_usable(node):
                version = self._version(node, ())
                if version is not None:
                    request = fetch_request(self._config, closing)
                    self._client.connections.send(
                        node, request, version, lambda answer, now_ms: None, now_ms=now_ms
                    )
        self._sessions.clear()

    # Which broker to ask for what

    def _node_for(self, partition: AssignedPartition, now_ms: int) -> int | None:
        if not partition.may_fetch or partition.name in self.fetched:
            return None
        assert partition.position is not None
        if partition.retry_at_ms > now_ms:
            if self._deadline_ms is None or partition.retry_at_ms < self._deadline_ms:
                self._deadline_ms = partition.retry_at_ms
            return None
        leader_id = partition.position.leader.broker_id
        if leader_id is None or leader_id not in self._client.metadata.brokers:
            self._client.refresh.request_update()
            return None
        replica_id = partition.read_replica(now_ms)
        if replica_id is None:
            return leader_id
        if not self._is_online(partition.name, replica_id):
            partition.leave_read_replica()
            self._client.refresh.request_update()
            return leader_id
        return replica_id

    def _is_online(self, name: TopicPartition, replica_id: int) -> bool:
        metadata = self._client.metadata
        topic = metadata.topics.get(name.topic)
        facts = topic.partitions.get(name.index) if topic is not None else None
        is_offline = facts is not None and replica_id in facts.offline
        return replica_id in metadata.brokers and not is_offline

    def _fetched_partition(self, partition: AssignedPartition) -> PartitionFetch:
        assert partition.position is not None
        return PartitionFetch(
            self._client.metadata.topic_id(partition.name.topic),
            partition.position.offset,
            partition.position.leader.leader_epoch,
            self._config.partition_bytes_max,
        )

    def _version(self, node: int, wanted: Iterable[PartitionFetch]) -> int | None:
        """Topic ids need all of them to be known."""
        has_ids = all(each.topic_id is not None for each in wanted)
        newest = None if has_ids else _TOPIC_IDS_FROM - 1
        return self._client.connections.version(node, FetchRequest, at_most=newest)

    def _send(self, node: int, wanted: dict[TopicPartition, PartitionFetch], now_ms: int) -> None:
        session = self._sessions.setdefault(node, FetchSessionHandler())
        version = self._version(node, [*wanted.values(), *session.partitions.values()])
        if version is None:
            for name in wanted:
                error = ErrorCode.UNSUPPORTED_VERSION.name
                self._partitions[name].stuck(PartitionReadRefused(name, error))
            return
        if version < _SESSIONS_FROM:
            session.on_no_answer()
        sent = session.request(wanted)
        self._in_flight.add(node)
        self._client.connections.send(
            node,
            fetch_request(self._config, sent),
            version,
            lambda answer, now_ms: self._answered(node, sent, wanted, answer, now_ms),
            now_ms=now_ms,
        )

    # Answers

    def _answered(
        self,
        node: int,
        sent: FetchSessionRequest,
        wanted: dict[TopicPartition, PartitionFetch],
        answer: Message | NoAnswer,
        now_ms: int,
    ) -> None:
        self._in_flight.discard(node)
        session = self._sessions.get(node)
        if session is None:
            return
        if not isinstance(answer, FetchResponse):
            session.on_no_answer()
            for name in wanted:
                if name in self._partitions:
                    self._partitions[name].leave_read_replica()
            return
        error = ErrorCode.from_wire(answer.error_code)
        if not session.on_answer(sent, error=error, session_id=answer.session_id):
            if error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                self._client.refresh.request_update()
            if error != ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._pause(wanted, now_ms)
            return
        names_by_id = {each.topic_id: name.topic for name, each in wanted.items()}
        for topic in answer.responses:
            topic_name = names_by_id.get(bytes(topic.topic_id), topic.topic)
            for data in topic.partitions:
                partition = self._partitions.get(TopicPartition(topic_name, data.partition_index))
                if partition is not None and partition.name in wanted:
                    self._take_hint(partition, data, answer)
                    self._on_partition(node, partition, wanted[partition.name], data, now_ms)

    def _pause(self, names: Iterable[TopicPartition], now_ms: int) -> None:
        for name in names:
            partition = self._partitions.get(name)
            if partition is not None and partition.may_fetch:
                pause_ms = self._back_off.pause_ms(partition.failures)
                partition.fails(pause_ms=pause_ms, now_ms=now_ms)

    def _on_partition(
        self,
        node: int,
        partition: AssignedPartition,
        wanted: PartitionFetch,
        data: PartitionData,
        now_ms: int,
    ) -> None:
        position = partition.position
        if position is None or not partition.may_fetch or position.offset != wanted.offset:
            return  # the program has moved on
        if data.error_code != ErrorCode.NONE:
            self._refused(partition, wanted, ErrorCode.from_wire(data.error_code), now_ms)
            return
        partition.succeeds()
        partition.high_watermark = _known(data.high_watermark)
        partition.last_stable_offset = _known(data.last_stable_offset)
        partition.log_start_offset = _known(data.log_start_offset)
        if data.preferred_read_replica >= 0:
            until_ms = now_ms + self._client.config.metadata_max_age_ms
            partition.choose_read_replica(data.preferred_read_replica, until_ms=until_ms)
            self._client.trace.emit(
                ReadReplicaChosen(
                    partition=str(partition.name), replica_id=data.preferred_read_replica
                )
            )
        if data.records:
            aborted = None
            if self._config.is_read_committed:
                listed = data.aborted_transactions or ()
                aborted = [(each.first_offset, each.producer_id) for each in listed]
            fetched = FetchedRecords(
                partition.name,
                bytes(data.records),
                offset=wanted.offset,
                aborted=aborted,
                checks_crcs=self._config.checks_crcs,
            )
            self.fetched[partition.name] = (node, fetched)

    def _refused(
        self, partition: AssignedPartition, wanted: PartitionFetch, error: ErrorCode, now_ms: int
    ) -> None:
        name = partition.name
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            # A follower may lag behind: only the leader's answer counts.
            if partition.leave_read_replica():
                return
            if self._config.reset == Reset.NONE:
                partition.stuck(OutOfRange(name, wanted.offset))
            else:
                partition.request_reset(self._config.reset)
        elif error == ErrorCode.CORRUPT_MESSAGE:
            partition.stuck(CorruptRecords(name, wanted.offset, "the broker says so"))
        elif error in _READ_ELSEWHERE:
            partition.leave_read_replica()
            self._client.refresh.request_update()
            self._pause([name], now_ms)
        elif error in _WAIT_FOR_IT:
            self._client.refresh.request_update()
            self._pause([name], now_ms)
        else:
            partition.stuck(PartitionReadRefused(name, error.name))

    def _take_hint(
        self, partition: AssignedPartition, data: PartitionData, answer: FetchResponse
    ) -> None:
        hint = data.current_leader
        leader = leader_from_wire(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
        if data.error_code not in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
        ):
            return
        if self._client.metadata.learn_leader(partition.name, leader, answer.node_endpoints):
            assert leader.broker_id is not None and leader.leader_epoch is not None
            self._client.trace.emit(
                LeaderHinted(
                    partition=str(partition.name),
                    leader_id=leader.broker_id,
                    leader_epoch=leader.leader_epoch,
                )
            )


def _known(offset: int) -> int | None:
    return offset if offset >= 0 else None


def fetch_request(config: ConsumerConfig, session: FetchSessionRequest) -> FetchRequest:
    """Partitions of one topic stand together."""
    topics: dict[str, FetchTopic] = {}
    for name, fetched in session.partitions.items():
        topic = topics.setdefault(
            name.topic, FetchTopic(topic=name.topic, topic_id=fetched.topic_id or ZERO_TOPIC_ID)
        )
        partition = FetchPartition(
            partition=name.index,
            fetch_offset=fetched.offset,
            partition_max_bytes=fetched.bytes_max,
        )
        if fetched.leader_epoch is not None:
            partition.current_leader_epoch = fetched.leader_epoch
        topic.partitions.append(partition)
    forgotten: dict[tuple[str, bytes | None], ForgottenTopic] = {}
    for name, topic_id in session.forgotten:
        topic_forgotten = forgotten.setdefault(
            (name.topic, topic_id),
            ForgottenTopic(topic=name.topic, topic_id=topic_id or ZERO_TOPIC_ID),
        )
        topic_forgotten.partitions.append(name.index)
    return FetchRequest(
        max_wait_ms=config.fetch_wait_ms,
        min_bytes=config.fetch_bytes_min,
        max_bytes=config.fetch_bytes_max,
        isolation_level=int(config.is_read_committed),
        session_id=session.session_id,
        session_epoch=session.session_number,
        topics=list(topics.values()),
        forgotten_topics_data=list(forgotten.values()),
        rack_id=config.client.client_rack,
    )
