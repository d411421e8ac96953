"""Records of `__transaction_state`: Kafka's bytes, and back."""

from __future__ import annotations

import pytest

from tidelog.core.transactions.transaction_metadata import TransactionMetadata
from tidelog.core.transactions.transaction_records import (
    read_transaction_key,
    read_transaction_value,
    transaction_record,
    transaction_tombstone,
)
from tidelog.core.transactions.transaction_state import TransactionStatus
from tidelog.core.wire.malformed import MalformedMessage

ONGOING = TransactionMetadata(
    producer_id=4000,
    previous_producer_id=4000,
    producer_epoch=3,
    timeout_ms=60_000,
    status=TransactionStatus.ONGOING,
    partitions=frozenset({("b", 1), ("a", 2), ("a", 0)}),
    start_wall_ms=1_000,
    update_wall_ms=2_000,
    client_version=2,
)
EMPTY = TransactionMetadata(
    producer_id=1,
    previous_producer_id=1,
    producer_epoch=0,
    timeout_ms=5,
    status=TransactionStatus.EMPTY,
    update_wall_ms=9,
)


def test_the_bytes_are_those_of_kafkas_schema() -> None:
    record = transaction_record("pay", ONGOING, value_version=1)

    assert record.key == bytes.fromhex("0000 0003") + b"pay"
    assert record.value == bytes.fromhex(
        "0001"  # version
        "0000000000000fa0 0003 0000ea60 01"  # producer, epoch, timeout, ongoing
        "03"  # two topics: a with 0 and 2, b with 1
        "02 61 03 00000000 00000002 00"
        "02 62 02 00000001 00"
        "00000000000007d0 00000000000003e8"  # updated, begun
        "02 00 08 0000000000000fa0 02 02 0002"  # tags: previous producer id, client's version
    )


def test_an_id_without_a_transaction_has_no_partitions_at_all() -> None:
    record = transaction_record("pay", EMPTY, value_version=0)

    assert record.value == bytes.fromhex(
        "0000 0000000000000001 0000 00000005 00 ffffffff 0000000000000009 ffffffffffffffff"
    )


@pytest.mark.parametrize("metadata", [ONGOING, EMPTY])
def test_what_is_written_is_read(metadata: TransactionMetadata) -> None:
    record = transaction_record("pay", metadata, value_version=1)

    assert read_transaction_key(record.key) == "pay"
    assert record.value is not None
    assert read_transaction_value(record.value) == metadata
    assert transaction_tombstone("pay") == type(record)(record.key, None)


def test_what_nobody_writes_is_refused() -> None:
    record = transaction_record("pay", EMPTY, value_version=0)
    assert record.value is not None
    assert read_transaction_key(b"\x00\x01" + record.key[2:]) is None, "a kind of the future"
    with pytest.raises(MalformedMessage, match="version 2"):
        read_transaction_value(b"\x00\x02" + record.value[2:])
    with pytest.raises(MalformedMessage, match="state 9"):
        read_transaction_value(record.value[:16] + b"\x09" + record.value[17:])
