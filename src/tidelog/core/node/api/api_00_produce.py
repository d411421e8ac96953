"""Produce (api key 0), versions 3 to 13; advertised from 0, because older librdkafka asks for it.

Appends one batch per partition to the leader's log. `acks=0` is never answered (an error closes the
connection instead), `acks=1` is answered after the append, `acks=all` only once the high watermark
has passed the batch; until then it is parked (replication/produce_purgatory.py). With too few
in-sync replicas `acks=all` is refused before anything is appended. Kafka's
NOT_ENOUGH_REPLICAS_AFTER_APPEND cannot happen: the high watermark does not pass a batch while there
are too few, so the request times out.

The first batch of a transaction waits until its coordinator has said that the partition belongs to
it (coordinators/transaction_verifier.py). What the same connection sends behind it waits as well,
as in Kafka, which takes one request of a connection at a time.

A broker that stood still for so long that others may lead by now appends nothing until it has heard
from the controller (broker/session_watch.py); its clients look the leader up and try again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import INTERNAL_TOPICS
from tidelog.core.node.connections.request import Request
from tidelog.core.node.coordinators.produce_verification import (
    ProduceVerification,
    Verified,
    for_producers,
)
from tidelog.core.node.replicas.partition_lookup import (
    endpoints_of,
    leader_of,
    refuse_unhosted,
)
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.log_append import Appended
from tidelog.core.storage.validation import BatchRefusal, single_batch
from tidelog.core.storage.verification import NOT_REQUIRED, Verification
from tidelog.core.transactions.transaction_calls import PartitionErrors
from tidelog.core.wire.fast_fields import INT, Endpoint, Topic
from tidelog.core.wire.produce_fast import (
    ProduceCall,
    ProducePartitionAnswer,
    decode_produce,
    encode_produce_answer,
)
from tidelog.core.wire.record_batch import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
)
from tidelog.core.wire.sentinels import ACKS_ALL, NO_NODE, NO_TIMESTAMP, UNKNOWN_OFFSET

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

API_KEY = 0
VERSIONS = range(3, 14)
ADVERTISED = range(14)
ZSTD = 4
ZSTD_FROM = 7
LENGTH_POSITION = 8
MAGIC_POSITION = 16
ATTRIBUTES_POSITION = 22
"""The lower byte, which has the codec and the transactional bit."""
WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)

_NONE = ErrorCode.NONE
SEVERAL_PRODUCERS = "a transactional request has records of several producers"
UNCONFIRMED = "the broker was paused and has not heard yet whether it still leads"


Answers = list[tuple[Topic, list[ProducePartitionAnswer]]]
Wait = tuple[Partition, list[ProducePartitionAnswer], int, int]
"""A partition, its topic's answers, which of them, and the end offset to be covered."""


class ParkedProduce:
    """An `acks=all` request whose partitions are not all covered yet."""

    __slots__ = (
        "_has_error", "_left", "is_done", "node", "request", "timeout_ms", "topics", "waits",
    )  # fmt: skip

    def __init__(
        self,
        node: Node,
        request: Request,
        topics: Answers,
        waits: list[Wait],
        timeout_ms: int,
        has_error: bool,
    ) -> None:
        self.node = node
        self.request = request
        self.topics = topics
        self.waits = waits
        self.timeout_ms = max(timeout_ms, 0)
        self.is_done = False
        self._left = len(waits)
        self._has_error = has_error

    def on_covered(self) -> None:
        self._left -= 1
        if self._left == 0 and not self.is_done:
            self._finish()

    def on_expired(self, now_ms: int) -> None:
        """What is not covered by now is answered as timed out: its fate is unknown."""
        if self.is_done:
            return
        self._has_error = True
        for partition, answers, at, end_offset in self.waits:
            if answers[at].error_code == 0 and partition.log.high_watermark < end_offset:
                answers[at] = answers[at]._replace(error_code=ErrorCode.REQUEST_TIMED_OUT)
        self._finish()
        for partition, _, _, _ in self.waits:
            partition.purgatory.drop_done()

    def on_partition_gone(self, partition: object, code: ErrorCode) -> None:
        """A partition was deleted or is led by another; the others are waited for."""
        self._has_error = True
        for each, answers, at, end_offset in self.waits:
            if each is partition and each.log.high_watermark < end_offset:
                leader = _leader(each) if code is ErrorCode.NOT_LEADER_OR_FOLLOWER else None
                answers[at] = _refused(answers[at].partition_index, code, leader)
        self.on_covered()

    def _finish(self) -> None:
        self.is_done = True
        self.node.timeouts.discard(self, timeout_ms=self.timeout_ms)
        _answer(self.node, self.request, self.topics, has_error=self._has_error)


def handle(node: Node, request: Request, now_ms: int) -> None:
    assert request.body is not None
    call = decode_produce(request.body, request.version)
    acks = call.acks
    if acks not in (ACKS_ALL, 0, 1):
        _refuse_all(node, request, call, ErrorCode.INVALID_REQUIRED_ACKS)
        return
    if not node.session_watch.is_confirmed:
        _refuse_unconfirmed(node, request, call)
        return
    if call.transactional_id is not None:
        _verify(node, request, call, call.transactional_id, now_ms)
        return
    _append_and_answer(node, request, call, None, now_ms)


def _append_and_answer(
    node: Node, request: Request, call: ProduceCall, verified: Verified | None, now_ms: int
) -> None:
    """`verified` has what is known of the partitions of a transactional request."""
    version, acks = request.version, call.acks
    wall_ms = node.wall_ms(now_ms)
    topics: Answers = []
    waits: list[Wait] = []
    has_error = False
    for topic, partitions in call.topics:
        answers: list[ProducePartitionAnswer] = []
        for index, records in partitions:
            partition = node.find_partition(topic, index)
            if partition is None:
                answers.append(_unhosted(node, topic, index))
                has_error = True
                continue
            verification: Verification | None = NOT_REQUIRED
            if verified is not None:
                verdict = verified.get((topic, index))
                if isinstance(verdict, ErrorCode):
                    code, message = for_producers(verdict, version)
                    answers.append(_refused(index, code)._replace(error_message=message))
                    has_error = True
                    continue
                verification = verdict
            answer, end_offset = _append(
                node, partition, index, records, version, wall_ms, verification,
                verified is not None, acks,
            )  # fmt: skip
            answers.append(answer)
            if end_offset is None:
                has_error = True
            elif end_offset > partition.log.high_watermark:
                waits.append((partition, answers, len(answers) - 1, end_offset))
        if answers:
            topics.append((topic, answers))
    if acks == 0:
        if has_error:
            request.close("error in a produce request with acks=0")
        else:
            request.answer_nothing()
    elif acks == 1 or not waits:
        _answer(node, request, topics, has_error=has_error)
    else:
        parked = ParkedProduce(node, request, topics, waits, call.timeout_ms, has_error)
        _park(node, parked)


def _verify(
    node: Node, request: Request, call: ProduceCall, transactional_id: str, now_ms: int
) -> None:
    """Append at once where the transaction is open already; otherwise ask its coordinator."""
    version = request.version
    verification = ProduceVerification(node, call, version=version, wall_ms=node.wall_ms(now_ms))
    if len(verification.producers) > 1:
        _refuse_all(node, request, call, ErrorCode.INVALID_PRODUCER_ID_MAPPING, SEVERAL_PRODUCERS)
        return
    if not verification.unknown:
        _append_and_answer(node, request, call, verification.verified, now_ms)
        return
    assert request.body is not None
    body = bytearray(request.body)
    node.hold(request)

    def on_verified(errors: PartitionErrors, now_ms: int) -> None:
        verification.note(errors)
        copied = decode_produce(memoryview(body), version)
        if node.session_watch.is_confirmed:
            _append_and_answer(node, request, copied, verification.verified, now_ms)
        else:  # the broker stood still while it waited for the answer
            _refuse_unconfirmed(node, request, copied)
        node.release(request, now_ms)

    (producer,) = verification.producers
    node.transaction_verifier.verify(
        transactional_id,
        producer,
        verification.unknown,
        adds_partitions=verification.adds_partitions,
        then=on_verified,
        now_ms=now_ms,
    )


def _refuse_unconfirmed(node: Node, request: Request, call: ProduceCall) -> None:
    """Others may lead by now, so nobody is named."""
    if call.acks == 0:
        request.close(UNCONFIRMED)
        return
    _refuse_all(node, request, call, ErrorCode.NOT_LEADER_OR_FOLLOWER, UNCONFIRMED)


def _refuse_all(
    node: Node, request: Request, call: ProduceCall, code: ErrorCode, message: str | None = None
) -> None:
    """The same refusal for every partition."""
    topics = [
        (topic, [_refused(index, code)._replace(error_message=message) for index, _ in parts])
        for topic, parts in call.topics
    ]
    _answer(node, request, topics)


def _append(
    node: Node,
    partition: Partition,
    index: int,
    records: memoryview | None,
    version: int,
    wall_ms: int,
    verification: Verification | None,
    is_transactional: bool,
    acks: int,
) -> tuple[ProducePartitionAnswer, int | None]:
    """The answer, and the end offset that an `acks=all` request waits for (None: refused)."""
    batch = _one_batch(records)
    if isinstance(batch, BatchRefusal):
        message = batch.message if batch.error == ErrorCode.CORRUPT_MESSAGE else None
        return _refused(index, batch.error)._replace(error_message=message), None
    code = _refuse_batch(partition, batch[ATTRIBUTES_POSITION], version, is_transactional)
    if code is not _NONE:
        leader = _leader(partition) if code is ErrorCode.NOT_LEADER_OR_FOLLOWER else None
        return _refused(index, code, leader), None
    if partition.is_under_minimum and acks == ACKS_ALL:
        refused = _refused(index, ErrorCode.NOT_ENOUGH_REPLICAS)
        return refused._replace(log_start_offset=partition.log.log_start_offset), None
    result = partition.log.append_as_leader(
        batch, leader_epoch=partition.leader_epoch, wall_ms=wall_ms, verification=verification
    )
    if result.error is not _NONE:
        return _append_refused(node, partition, index, result), None
    node.touch(partition)
    base_offset, append_time_ms = result.base_offset, result.log_append_time_ms
    assert base_offset is not None
    answer = ProducePartitionAnswer(
        index,
        0,
        base_offset,
        NO_TIMESTAMP if append_time_ms is None else append_time_ms,
        partition.log.log_start_offset,
    )
    return answer, result.end_offset


def _one_batch(records: memoryview | None) -> memoryview | BatchRefusal:
    """Exactly one batch of format 2 per partition; a partial one behind it is left out."""
    if records is None:
        return BatchRefusal(ErrorCode.INVALID_RECORD, "no records")
    if (
        len(records) >= HEADER_BYTES
        and records[MAGIC_POSITION] == MAGIC
        and INT.unpack_from(records, LENGTH_POSITION)[0] + LENGTH_PREFIX_BYTES == len(records)
    ):
        return records
    found = single_batch(records)
    return found if isinstance(found, BatchRefusal) else found[0]


def _refuse_batch(
    partition: Partition, attributes: int, version: int, is_transactional: bool
) -> ErrorCode:
    """The first reason to say no that needs neither the whole header nor the log."""
    if partition.topic_partition.topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION  # only coordinators write there
    if version < ZSTD_FROM and attributes & COMPRESSION_MASK == ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if attributes & TRANSACTIONAL_BIT and not is_transactional:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if partition.leadership is None:
        if partition.log.failed is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return _NONE


def _append_refused(
    node: Node, partition: Partition, index: int, result: Appended
) -> ProducePartitionAnswer:
    if result.error == ErrorCode.KAFKA_STORAGE_ERROR:
        node.on_log_failed(partition.log)
    refused = _refused(index, result.error)._replace(
        error_message=result.message, record_errors=result.record_errors
    )
    if result.error in WITHOUT_LOG_START:
        return refused
    return refused._replace(log_start_offset=partition.log.log_start_offset)


def _park(node: Node, parked: ParkedProduce) -> None:
    for partition, _, _, end_offset in parked.waits:
        partition.purgatory.park(parked, required_end_offset=end_offset)
    node.newly_parked.append(parked)


def _unhosted(node: Node, topic: Topic, index: int) -> ProducePartitionAnswer:
    """Another broker's, an unknown id, or a partition that its topic does not have."""
    code = refuse_unhosted(node, topic, index)
    if code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return _refused(index, code)
    return _refused(index, code, leader_of(node, topic, index))


def _leader(partition: Partition) -> tuple[int, int]:
    return (NO_NODE if partition.leader_id is None else partition.leader_id), partition.leader_epoch


def _refused(
    index: int, code: ErrorCode, leader: tuple[int, int] | None = None
) -> ProducePartitionAnswer:
    return ProducePartitionAnswer(
        index, code, UNKNOWN_OFFSET, NO_TIMESTAMP, UNKNOWN_OFFSET, current_leader=leader
    )


def _answer(node: Node, request: Request, topics: Answers, *, has_error: bool = True) -> None:
    endpoints: list[Endpoint] = []
    if has_error:
        leaders = {
            answer.current_leader[0]
            for _, answers in topics
            for answer in answers
            if answer.current_leader is not None
        }
        endpoints = endpoints_of(node, leaders)
    request.answer_bytes(encode_produce_answer(topics, request.version, endpoints=endpoints))
