"""Finding and checking positions: ListOffsets for those that are lost, leader epochs for the rest.

Both are asked of leaders. An answer counts only if the partition still waits for it, since the
program may have moved the position in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.consumer.config import ConsumerConfig, Reset
from tidelog.client.consumer.errors import LogTruncationError, NoOffset, PartitionReadRefused
from tidelog.client.consumer.offset_lookup import Answers, OffsetAndTimestamp, send_list_offsets
from tidelog.client.consumer.positions import AssignedPartition, FetchPosition, FetchState
from tidelog.client.events import PositionReset, PositionTruncated
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import CONSUMER_REPLICA_ID, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

_TIMESTAMPS = {Reset.EARLIEST: EARLIEST_TIMESTAMP, Reset.LATEST: LATEST_TIMESTAMP}


class PositionFinder:
    """Gets partitions from lost, resetting and validating to reading."""

    def __init__(self, client: Client, config: ConsumerConfig) -> None:
        self._client = client
        self._config = config
        self._deadline_ms: int | None = None
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )

    def run(self, partitions: Iterable[AssignedPartition], now_ms: int) -> None:
        self._deadline_ms = None
        to_reset: dict[int, list[AssignedPartition]] = {}
        to_validate: dict[int, list[AssignedPartition]] = {}
        for partition in partitions:
            if partition.state == FetchState.LOST and partition.error is None:
                self._decide_for_lost(partition)
            if partition.state == FetchState.RESETTING:
                self._choose(partition, to_reset, now_ms)
            elif partition.state == FetchState.VALIDATING:
                self._choose(partition, to_validate, now_ms)
        for leader_id, lost in to_reset.items():
            self._reset(leader_id, lost, now_ms)
        for leader_id, to_check in to_validate.items():
            self._validate(leader_id, to_check, now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def _decide_for_lost(self, partition: AssignedPartition) -> None:
        if self._config.reset == Reset.NONE:
            partition.stuck(NoOffset(partition.name))
        else:
            partition.request_reset(self._config.reset)

    def _choose(
        self,
        partition: AssignedPartition,
        by_leader: dict[int, list[AssignedPartition]],
        now_ms: int,
    ) -> None:
        """Sort it in under its leader, if it may be asked about now."""
        if partition.is_in_flight or partition.error is not None:
            return
        if partition.retry_at_ms > now_ms:
            self._wake_by(partition.retry_at_ms)
            return
        leader_id = self._client.metadata.leader(partition.name).broker_id
        if leader_id is None:
            self._client.refresh.request_update()
            return
        address = self._client.metadata.address(leader_id)
        connections = self._client.connections
        if address is not None and connections.make_usable(leader_id, address, now_ms):
            by_leader.setdefault(leader_id, []).append(partition)

    def _wake_by(self, at_ms: int) -> None:
        if self._deadline_ms is None or at_ms < self._deadline_ms:
            self._deadline_ms = at_ms

    def _failed(self, partition: AssignedPartition, now_ms: int) -> None:
        self._client.refresh.request_update()
        partition.fails(pause_ms=self._back_off.pause_ms(partition.failures), now_ms=now_ms)

    # Resetting

    def _reset(self, leader_id: int, lost: list[AssignedPartition], now_ms: int) -> None:
        by_name = {each.name: each for each in lost}
        resets = {each.name: each.reset for each in lost}
        timestamps = {
            name: _TIMESTAMPS[reset] for name, reset in resets.items() if reset is not None
        }

        def answered(answers: Answers, now_ms: int) -> None:
            for name, answer in answers.items():
                partition = by_name[name]
                if partition.state == FetchState.RESETTING and partition.reset == resets[name]:
                    self._on_offset(partition, answer, now_ms)

        for each in lost:
            each.is_in_flight = True
        if not send_list_offsets(
            self._client,
            leader_id,
            timestamps,
            answered,
            is_read_committed=self._config.is_read_committed,
            now_ms=now_ms,
        ):
            for each in lost:
                each.stuck(PartitionReadRefused(each.name, ErrorCode.UNSUPPORTED_VERSION.name))

    def _on_offset(
        self,
        partition: AssignedPartition,
        answer: OffsetAndTimestamp | ErrorCode | None,
        now_ms: int,
    ) -> None:
        if answer == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            partition.stuck(
                PartitionReadRefused(partition.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED.name)
            )
        elif not isinstance(answer, OffsetAndTimestamp):
            self._failed(partition, now_ms)
        else:
            if answer.leader_epoch is not None:
                self._see(partition.name, answer.leader_epoch)
            policy = partition.reset.value if partition.reset is not None else ""
            # Nothing was read before it, so there is no leader epoch to validate it by.
            partition.seek(
                FetchPosition(
                    offset=answer.offset,
                    offset_epoch=None,
                    leader=self._client.metadata.leader(partition.name),
                )
            )
            self._client.trace.emit(
                PositionReset(partition=str(partition.name), policy=policy, offset=answer.offset)
            )

    def _see(self, name: TopicPartition, leader_epoch: int) -> None:
        if self._client.metadata.see_leader_epoch(name, leader_epoch):
            self._client.refresh.request_update()

    # Validating

    def _validate(self, leader_id: int, to_check: list[AssignedPartition], now_ms: int) -> None:
        version = self._client.connections.version(leader_id, OffsetForLeaderEpochRequest)
        if version is None:
            for each in to_check:
                each.validated()
            return
        topics: dict[str, OffsetForLeaderTopic] = {}
        sent: dict[TopicPartition, tuple[AssignedPartition, FetchPosition]] = {}
        for partition in to_check:
            position = partition.position
            assert position is not None and position.offset_epoch is not None
            assert position.leader.leader_epoch is not None
            name = partition.name
            topic = topics.setdefault(name.topic, OffsetForLeaderTopic(topic=name.topic))
            topic.partitions.append(
                OffsetForLeaderPartition(
                    partition=name.index,
                    current_leader_epoch=position.leader.leader_epoch,
                    leader_epoch=position.offset_epoch,
                )
            )
            sent[name] = (partition, position)
            partition.is_in_flight = True
        request = OffsetForLeaderEpochRequest(
            replica_id=CONSUMER_REPLICA_ID, topics=list(topics.values())
        )

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            ends = _ends(answer)
            for name, (partition, position) in sent.items():
                if partition.state == FetchState.VALIDATING and partition.position == position:
                    self._on_epoch_end(partition, position, ends.get(name), now_ms)

        self._client.connections.send(leader_id, request, version, answered, now_ms=now_ms)

    def _on_epoch_end(
        self,
        partition: AssignedPartition,
        position: FetchPosition,
        epoch_end: EpochEndOffset | None,
        now_ms: int,
    ) -> None:
        """The log of the position's leader epoch ends here; is the position still inside?"""
        if epoch_end is None or epoch_end.error_code != ErrorCode.NONE:
            error = ErrorCode.from_wire(epoch_end.error_code) if epoch_end is not None else None
            if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                partition.stuck(PartitionReadRefused(partition.name, error.name))
            else:
                self._failed(partition, now_ms)
        elif epoch_end.end_offset < 0 or epoch_end.leader_epoch < 0:
            self._truncated(partition, position, None, None)
        elif epoch_end.end_offset < position.offset:
            self._truncated(partition, position, epoch_end.end_offset, epoch_end.leader_epoch)
        else:
            partition.validated()

    def _truncated(
        self,
        partition: AssignedPartition,
        position: FetchPosition,
        divergence: int | None,
        divergence_epoch: int | None,
    ) -> None:
        self._client.trace.emit(
            PositionTruncated(
                partition=str(partition.name), position=position.offset, divergence=divergence
            )
        )
        if self._config.reset == Reset.NONE:
            partition.stuck(
                LogTruncationError(
                    partition.name,
                    offset=position.offset,
                    divergence=divergence,
                    divergence_epoch=divergence_epoch,
                )
            )
        elif divergence is None:
            partition.request_reset(self._config.reset)
        else:
            partition.seek(
                FetchPosition(
                    offset=divergence, offset_epoch=divergence_epoch, leader=position.leader
                )
            )
            partition.validated()


def _ends(answer: Message | NoAnswer) -> dict[TopicPartition, EpochEndOffset]:
    if not isinstance(answer, OffsetForLeaderEpochResponse):
        return {}
    return {
        TopicPartition(topic.topic, each.partition): each
        for topic in answer.topics
        for each in topic.partitions
    }
