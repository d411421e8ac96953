"""What must be verified of a transactional Produce before it may be appended."""

from __future__ import annotations

from typing import Protocol

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.node.settings import NodeSettings
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.validation import BatchRefusal, single_batch
from tidelog.core.storage.verification import NOT_REQUIRED, Verification
from tidelog.core.transactions.transaction_calls import PartitionErrors
from tidelog.core.transactions.transaction_metadata import Partition as TransactionPartition
from tidelog.core.wire.fast_fields import Topic
from tidelog.core.wire.produce_fast import ProduceCall
from tidelog.core.wire.record_batch import TRANSACTIONAL_BIT, BatchHeader

ABORTABLE_FROM = 11
ADDS_PARTITIONS_FROM = 12
"""The first version of clients that leave it to the leader to add partitions to transactions."""
_NOT_VERIFIED_YET = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)

Verified = dict[tuple[Topic, int], Verification | ErrorCode]
"""By the topic as the request names it: what its first append is verified by, or why it is not."""


class ProduceHost(Protocol):
    """What is used of the node."""

    @property
    def settings(self) -> NodeSettings: ...

    def find_partition(self, topic: Topic, index: int, /) -> Partition | None: ...


class ProduceVerification:
    """One request: what is known of its partitions, and what its coordinator must be asked."""

    def __init__(self, node: ProduceHost, call: ProduceCall, *, version: int, wall_ms: int) -> None:
        self.adds_partitions = version >= ADDS_PARTITIONS_FROM
        self.verified: Verified = {}
        self.unknown: dict[TransactionPartition, list[tuple[Topic, int]]] = {}
        """Partitions by their names, each with its keys in `verified`."""
        self.producers: set[ProducerIdAndEpoch] = set()
        is_required = self.adds_partitions or node.settings.boolean(
            "transaction.partition.verification.enable"
        )
        for topic, partitions in call.topics:
            for index, records in partitions:
                partition = node.find_partition(topic, index)
                if partition is None or partition.leadership is None:
                    continue  # refused when it is appended
                if not is_required:
                    self.verified[topic, index] = NOT_REQUIRED
                    continue
                header = _transactional_header(records)
                if header is not None:
                    self._begin(partition, topic, index, header, wall_ms)

    def _begin(
        self, partition: Partition, topic: Topic, index: int, header: BatchHeader, wall_ms: int
    ) -> None:
        self.producers.add(ProducerIdAndEpoch(header.producer_id, header.producer_epoch))
        verification = partition.log.producers.begin_verification(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            adds_partition=self.adds_partitions,
            wall_ms=wall_ms,
        )
        if verification is not None:
            self.verified[topic, index] = verification
            name = partition.topic_partition.topic
            self.unknown.setdefault((name, index), []).append((topic, index))

    def note(self, errors: PartitionErrors) -> None:
        """What the coordinator has answered."""
        for partition, code in errors.items():
            if code is not ErrorCode.NONE:
                self.verified.update(dict.fromkeys(self.unknown[partition], code))


def _transactional_header(records: memoryview | None) -> BatchHeader | None:
    """Of a batch that belongs to a transaction; None: of another, or of none that can be read."""
    if records is None:
        return None
    found = single_batch(records)
    if isinstance(found, BatchRefusal):
        return None
    header = found[1]
    is_transactional = header.attributes & TRANSACTIONAL_BIT and header.producer_id >= 0
    return header if is_transactional else None


def for_producers(code: ErrorCode, version: int) -> tuple[ErrorCode, str | None]:
    """Error and message for a partition that could not be verified.

    Clients retry after NOT_ENOUGH_REPLICAS, and do not ask for metadata first.
    """
    if code in _NOT_VERIFIED_YET or (
        code is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_PARTITIONS_FROM
    ):
        message = f"the transaction could not be verified: {code.name}"
        return ErrorCode.NOT_ENOUGH_REPLICAS, message
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_FROM:
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.INVALID_TXN_STATE:
        return code, "the partition was not added to the transaction"
    return code, None
