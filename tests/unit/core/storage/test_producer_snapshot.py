"""Producer snapshots: Kafka's bytes, and no torn one believed."""

from __future__ import annotations

import pytest

from tidelog.core.formats.producer_snapshots import CorruptSnapshot
from tidelog.core.storage.producer_snapshot import decode, encode
from tidelog.core.storage.producers import ProducerStateEntry, RememberedBatch


def producers() -> list[ProducerStateEntry]:
    plain = ProducerStateEntry(5, 2)
    plain.remember(RememberedBatch(0, 3, 10, 13, 99))
    plain.remember(RememberedBatch(2**31 - 1, 4, 13, 18, 100))
    marked = ProducerStateEntry(6, 0)
    marked.coordinator_epoch = 8
    marked.timestamp_ms = 70
    busy = ProducerStateEntry(7, 1)
    busy.remember(RememberedBatch(0, 1, 20, 21, 101))
    busy.transaction_first_offset = 20
    return [plain, marked, busy]


def test_a_snapshot_keeps_the_latest_batch_of_each_producer() -> None:
    plain, marked, busy = decode(encode(producers()))

    assert (plain.producer_id, plain.producer_epoch, plain.timestamp_ms) == (5, 2, 100)
    assert plain.batches == [RememberedBatch(2**31 - 1, 4, 13, 18, 100)]
    assert (marked.batches, marked.coordinator_epoch, marked.timestamp_ms) == ([], 8, 70)
    assert (busy.transaction_first_offset, busy.coordinator_epoch) == (20, None)


def test_the_bytes_are_version_checksum_count_and_46_for_each_producer() -> None:
    data = encode(producers())

    assert len(data) == 10 + 3 * 46
    assert data[:2] == b"\0\x01"
    assert data[6:10] == b"\0\0\0\x03"
    assert decode(encode([])) == []


@pytest.mark.parametrize("size", range(0, 148, 7))
def test_a_cut_snapshot_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptSnapshot):
        decode(encode(producers())[:size])


@pytest.mark.parametrize("at", range(0, 148, 5))
def test_a_flipped_bit_is_noticed(at: int) -> None:
    data = bytearray(encode(producers()))
    data[at] ^= 16

    with pytest.raises(CorruptSnapshot):
        decode(bytes(data))


def test_a_page_of_zeros_is_corrupt() -> None:
    with pytest.raises(CorruptSnapshot):
        decode(bytes(148))
