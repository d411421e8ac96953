"""AddPartitionsToTxn (api key 24), versions 0 to 5.

Clients of the older protocol add partitions to their transaction before they write to them. From
version 4 on it is a partition's leader that asks, for clients: whether the partition belongs to the
transaction (`verify_only`), or that it shall from now on (Produce 12 and later).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.limits import EPOCH_PER_TRANSACTION
from tidelog.core.model.topic_name import is_internal_topic
from tidelog.core.node.coordinators.topic_coordinator import CoordinatorCall
from tidelog.core.transactions.transaction_calls import (
    AddPartitionsCall,
    PartitionErrors,
    VerifyPartitionsCall,
)
from tidelog.core.transactions.transaction_metadata import CLASSIC, Partition
from tidelog.core.transactions.transaction_shard import TransactionShard
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 24
VERSIONS = range(6)
WAITS_FOR_METADATA = True

FIRST_VERSION_OF_BROKERS = 4
_FIRST_VERSION_WITH_FENCED = 2

Call = CoordinatorCall[TransactionShard, AddPartitionsToTxnResult]


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(AddPartitionsToTxnRequest)
    version = request.version
    transactions = call.transactions
    if version < FIRST_VERSION_OF_BROKERS:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=call.v3_and_below_transactional_id,
                producer_id=call.v3_and_below_producer_id,
                producer_epoch=call.v3_and_below_producer_epoch,
                topics=call.v3_and_below_topics,
            )
        ]
    refused = [_refuse(node.image, each, version) for each in transactions]
    calls = [
        _call(each, version)
        for each, refusal in zip(transactions, refused, strict=True)
        if refusal is None
    ]

    def combine(answers: list[AddPartitionsToTxnResult]) -> AddPartitionsToTxnResponse:
        decided = iter(answers)
        results = [next(decided) if refusal is None else refusal for refusal in refused]
        if version >= FIRST_VERSION_OF_BROKERS:
            return AddPartitionsToTxnResponse(results_by_transaction=results)
        (only,) = results
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=only.topic_results)

    node.transaction_coordinator.submit_calls(request, calls, combine=combine, now_ms=now_ms)


def _partitions(transaction: AddPartitionsToTxnTransaction) -> list[Partition]:
    return [(topic.name, index) for topic in transaction.topics for index in topic.partitions]


def _refuse(
    image: ClusterImage, transaction: AddPartitionsToTxnTransaction, version: int
) -> AddPartitionsToTxnResult | None:
    """One partition that may not be added, and none of the transaction's is."""
    wanted = _partitions(transaction)
    errors = {partition: _refuse_partition(image, partition, version) for partition in wanted}
    if any(errors.values()):
        not_tried = ErrorCode.OPERATION_NOT_ATTEMPTED
        return _result(transaction, {each: errors[each] or not_tried for each in wanted})
    if transaction.transactional_id:
        return None
    return _result(transaction, dict.fromkeys(wanted, ErrorCode.INVALID_REQUEST))


def _refuse_partition(image: ClusterImage, partition: Partition, version: int) -> ErrorCode:
    if version < FIRST_VERSION_OF_BROKERS and is_internal_topic(partition[0]):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED  # clients add a group by its name
    is_known = image.partition(*partition) is not None
    return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _call(transaction: AddPartitionsToTxnTransaction, version: int) -> Call:
    transactional_id = transaction.transactional_id
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    partitions = frozenset(_partitions(transaction))

    def refuse(error: ErrorCode) -> AddPartitionsToTxnResult:
        if error is ErrorCode.PRODUCER_FENCED and version < _FIRST_VERSION_WITH_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return _result(transaction, dict.fromkeys(partitions, error))

    def add(shard: TransactionShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        by_broker = version >= FIRST_VERSION_OF_BROKERS
        return shard.add_partitions(
            AddPartitionsCall(
                transactional_id=transactional_id,
                producer=producer,
                partitions=partitions,
                client_version=EPOCH_PER_TRANSACTION if by_broker else CLASSIC,
                answer=refuse,
            ),
            reply_to,
            now_ms,
        )

    def verify(shard: TransactionShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        return shard.verify_partitions(
            VerifyPartitionsCall(
                transactional_id=transactional_id,
                producer=producer,
                partitions=partitions,
                answer=lambda errors: _result(transaction, errors),
            ),
            reply_to,
            now_ms,
        )

    operation = verify if transaction.verify_only else add
    return CoordinatorCall(transactional_id, operation, refuse)


def _result(
    transaction: AddPartitionsToTxnTransaction, errors: PartitionErrors
) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=[_topic_result(topic, errors) for topic in transaction.topics],
    )


def _topic_result(
    topic: AddPartitionsToTxnTopic, errors: PartitionErrors
) -> AddPartitionsToTxnTopicResult:
    return AddPartitionsToTxnTopicResult(
        name=topic.name,
        results_by_partition=[
            AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=errors[topic.name, index]
            )
            for index in topic.partitions
        ],
    )
