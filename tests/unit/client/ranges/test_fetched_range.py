"""How much of an answer a range may use: whole batches that begin before its end."""

from __future__ import annotations

import pytest

from tidelog.client.ranges.fetched_range import WholeBatches, whole_batches
from tidelog.core.wire.record_batch import CorruptBatch, UnsupportedMagic, rebase
from tidelog.core.wire.records import NewRecord, build


def batch(base_offset: int, records: int = 1, leader_epoch: int = 3) -> bytes:
    made = bytearray(build([NewRecord(b"value", timestamp_ms=1) for _ in range(records)]))
    rebase(made, 0, base_offset=base_offset, leader_epoch=leader_epoch)
    return bytes(made)


FIRST, SECOND = batch(10, records=5), batch(20, records=2, leader_epoch=4)


@pytest.mark.parametrize(
    ("records", "end_offset", "expected"),
    [
        (FIRST, 100, WholeBatches(len(FIRST), 15, 3)),
        (FIRST + SECOND, 100, WholeBatches(len(FIRST + SECOND), 22, 4)),
        # A batch that begins at or after the end is not wanted, and nothing lies in the gap.
        (FIRST + SECOND, 20, WholeBatches(len(FIRST), 20, 3)),
        (FIRST + SECOND, 17, WholeBatches(len(FIRST), 17, 3)),
        # One that reaches over the end is.
        (FIRST + SECOND, 12, WholeBatches(len(FIRST), 12, 3)),
        (FIRST, 12, WholeBatches(len(FIRST), 15, 3)),
        # The gap reaches over the whole range.
        (SECOND, 15, WholeBatches(0, 15, -1)),
        # A batch that is cut comes again.
        (FIRST + SECOND[:-1], 100, WholeBatches(len(FIRST), 15, 3)),
        (FIRST + SECOND[:61], 100, WholeBatches(len(FIRST), 15, 3)),
        (FIRST + SECOND[:20], 100, WholeBatches(len(FIRST), 15, 3)),
        (FIRST[:-1], 100, None),
        (FIRST[:8], 100, None),
        (b"", 100, None),
    ],
)
def test_whole_batches(records: bytes, end_offset: int, expected: WholeBatches | None) -> None:
    assert whole_batches(memoryview(records), end_offset=end_offset) == expected


def test_a_batch_that_cannot_be_one_is_refused() -> None:
    damaged = FIRST[:8] + (7).to_bytes(4, "big") + FIRST[12:]
    with pytest.raises(CorruptBatch):
        whole_batches(memoryview(damaged), end_offset=100)


def test_messages_of_the_old_format_are_refused() -> None:
    old = FIRST[:16] + b"\x01" + FIRST[17:]
    with pytest.raises(UnsupportedMagic):
        whole_batches(memoryview(old), end_offset=100)
