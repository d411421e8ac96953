"""TxnOffsetCommit (api key 28), versions 0 to 5: offsets of a group, as part of a transaction.

They are written to the group's partition of `__consumer_offsets`, and count when the transaction's
marker says commit. Before the first ones the transaction's coordinator is asked whether that
partition belongs to the transaction; from version 5 on the question itself adds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.groups.transactional_offsets import (
    commit_transactional_offsets,
    refused_offsets,
)
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.storage.verification import NOT_REQUIRED, Verification
from tidelog.core.transactions.transaction_calls import PartitionErrors
from tidelog.core.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tidelog.core.wire.sentinels import NO_SEQUENCE

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 28
VERSIONS = range(6)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_LOADING = 2
_FIRST_VERSION_WITH_ABORTABLE = 4
_FIRST_VERSION_THAT_ADDS = 5
_FOR_CLIENTS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(TxnOffsetCommitRequest)
    known, unknown = _sort_out(node.image, call)
    commit = _Commit(node, request, known, unknown)
    if not known.topics:
        request.answer(TxnOffsetCommitResponse(topics=unknown))
    elif not call.group_id:
        commit.refuse(ErrorCode.INVALID_GROUP_ID)
    else:
        commit.verify(now_ms)


class _Commit:
    """One request on its way: verified, then decided by the group's shard."""

    def __init__(
        self,
        node: Node,
        request: Request,
        known: TxnOffsetCommitRequest,
        unknown: list[TxnOffsetCommitResponseTopic],
    ) -> None:
        self._node = node
        self._request = request
        self._known = known
        self._unknown = unknown

    def verify(self, now_ms: int) -> None:
        """Ask the transaction's coordinator, unless the transaction is open here already."""
        node, call, version = self._node, self._known, self._request.version
        index = node.group_coordinator.partition_of(call.group_id)
        partition = node.partition(OFFSETS_TOPIC, index)
        if partition is None or partition.leadership is None:
            self.refuse(ErrorCode.NOT_COORDINATOR)
            return
        adds_partition = version >= _FIRST_VERSION_THAT_ADDS
        if not adds_partition and not node.settings.boolean(
            "transaction.partition.verification.enable"
        ):
            self._decide(NOT_REQUIRED, now_ms)
            return
        verification = partition.log.producers.begin_verification(
            call.producer_id,
            call.producer_epoch,
            NO_SEQUENCE,
            adds_partition=adds_partition,
            wall_ms=node.wall_ms(now_ms),
        )
        if verification is None:
            self._decide(None, now_ms)
            return

        def on_verified(errors: PartitionErrors, now_ms: int) -> None:
            error = errors[OFFSETS_TOPIC, index]
            if error is ErrorCode.NONE:
                self._decide(verification, now_ms)
            else:
                self.refuse(error)

        node.transaction_verifier.verify(
            call.transactional_id,
            ProducerIdAndEpoch(call.producer_id, call.producer_epoch),
            [(OFFSETS_TOPIC, index)],
            adds_partitions=adds_partition,
            then=on_verified,
            now_ms=now_ms,
        )

    def _decide(self, verification: Verification | None, now_ms: int) -> None:
        def write(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
            outcome = commit_transactional_offsets(
                shard, self._known, version=self._request.version, reply_to=reply_to, now_ms=now_ms
            )
            outcome.verification = verification
            for _, answer in outcome.replies:
                assert isinstance(answer, TxnOffsetCommitResponse)
                answer.topics = self._unknown + answer.topics
            return outcome

        self._node.group_coordinator.submit(
            self._request, self._known.group_id, write, refuse=self._refusal, now_ms=now_ms
        )

    def refuse(self, error: ErrorCode) -> None:
        self._request.answer(self._refusal(error))

    def _refusal(self, error: ErrorCode) -> TxnOffsetCommitResponse:
        version = self._request.version
        error = _FOR_CLIENTS.get(error, error)
        is_loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if is_loading and version < _FIRST_VERSION_WITH_LOADING:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        is_abortable = error is ErrorCode.TRANSACTION_ABORTABLE
        if is_abortable and version < _FIRST_VERSION_WITH_ABORTABLE:
            error = ErrorCode.INVALID_TXN_STATE
        refused = refused_offsets(self._known, error)
        return TxnOffsetCommitResponse(topics=self._unknown + refused.topics)


def _sort_out(
    image: ClusterImage, call: TxnOffsetCommitRequest
) -> tuple[TxnOffsetCommitRequest, list[TxnOffsetCommitResponseTopic]]:
    """What exists, and the answers for what does not."""
    known: list[TxnOffsetCommitRequestTopic] = []
    unknown: list[TxnOffsetCommitResponseTopic] = []
    for topic in call.topics:
        there = [p for p in topic.partitions if image.partition(topic.name, p.partition_index)]
        missing = [p for p in topic.partitions if p not in there]
        if missing:
            unknown.append(
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=each.partition_index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        )
                        for each in missing
                    ],
                )
            )
        if there:
            topic.partitions = there
            known.append(topic)
    call.topics = known
    return call, unknown
