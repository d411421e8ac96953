"""TransactionLog: the record of `__transaction_state` that holds one transactional id.

Layouts and versions are Kafka's, so that Kafka's tools read them. A tombstone forgets the id.
"""

from __future__ import annotations

from struct import Struct as Packing
from typing import Final

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.transactions.transaction_metadata import TransactionMetadata
from tidelog.core.transactions.transaction_state import BY_NUMBER, TransactionStatus
from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.schema import Message, Struct, array, int8, int16, int32, int64, string

_ABSENT: Final = -1
_KEY_VERSION: Final = 0
_VALUE_VERSIONS: Final = (0, 1)
_VERSION = Packing(">h")


class TransactionLogKey(Message, api_key=0, versions="0", flexible_from=None):
    """Which transactional id."""

    transactional_id: str = string()


class PartitionsSchema(Struct):
    """Partitions of one topic that belong to the transaction."""

    topic: str = string()
    partition_ids: list[int] = array(int32)


class TransactionLogValue(Message, api_key=0, versions="0-1", flexible_from=1):
    """Producer, state and partitions of the id."""

    producer_id: int = int64()
    previous_producer_id: int = int64("1+", tag=0, default=_ABSENT, ignorable=True)
    next_producer_id: int = int64("1+", tag=1, default=_ABSENT, ignorable=True)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16("1+", tag=3, default=_ABSENT, ignorable=True)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", tag=2, default=0, ignorable=True)


def transaction_record(
    transactional_id: str, metadata: TransactionMetadata, *, value_version: int
) -> CoordinatorRecord:
    """Version 0 is for clusters whose transaction version is 0: it has no previous producer id."""
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=_or_absent(metadata.previous_producer_id),
        next_producer_id=_or_absent(metadata.next_producer_id),
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.status.number,
        transaction_partitions=_partitions(metadata),
        transaction_last_update_timestamp_ms=metadata.update_wall_ms,
        transaction_start_timestamp_ms=_or_absent(metadata.start_wall_ms),
        client_transaction_version=metadata.client_version,
    )
    return CoordinatorRecord(
        _key(transactional_id), _VERSION.pack(value_version) + encode(value, value_version)
    )


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_key(transactional_id), None)


def read_transaction_key(key: bytes) -> str | None:
    """The transactional id; None for a kind of record that is not known here."""
    (version,) = _VERSION.unpack_from(key)
    if version != _KEY_VERSION:
        return None
    return decode(TransactionLogKey, memoryview(key)[_VERSION.size :], version).transactional_id


def read_transaction_value(value: bytes) -> TransactionMetadata:
    """Raises MalformedMessage for a version or a state that nobody wrote."""
    (version,) = _VERSION.unpack_from(value)
    if version not in _VALUE_VERSIONS:
        raise MalformedMessage(f"a transaction in version {version}")
    read = decode(TransactionLogValue, memoryview(value)[_VERSION.size :], version)
    status = BY_NUMBER.get(read.transaction_status)
    if status is None:
        raise MalformedMessage(f"a transaction in state {read.transaction_status}")
    return TransactionMetadata(
        producer_id=read.producer_id,
        previous_producer_id=_or_none(read.previous_producer_id),
        next_producer_id=_or_none(read.next_producer_id),
        producer_epoch=read.producer_epoch,
        timeout_ms=read.transaction_timeout_ms,
        status=status,
        partitions=frozenset(
            (each.topic, index)
            for each in read.transaction_partitions or []
            for index in each.partition_ids
        ),
        start_wall_ms=_or_none(read.transaction_start_timestamp_ms),
        update_wall_ms=read.transaction_last_update_timestamp_ms,
        client_version=read.client_transaction_version,
    )


def _key(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(_KEY_VERSION) + encode(key, _KEY_VERSION)


def _partitions(metadata: TransactionMetadata) -> list[PartitionsSchema] | None:
    if metadata.status is TransactionStatus.EMPTY:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(metadata.partitions):
        by_topic.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()]


def _or_absent(number: int | None) -> int:
    return _ABSENT if number is None else number


def _or_none(number: int) -> int | None:
    return None if number == _ABSENT else number
