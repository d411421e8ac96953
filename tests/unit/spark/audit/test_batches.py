"""Bytes of a log become rows: every sound record once, with the leader epoch of its batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import pyarrow as pa
import pytest

from tidelog.core.wire.control_records import end_txn_marker
from tidelog.core.wire.records import NewRecord, build
from tidelog.spark.audit.batches import Judged, Tail, Walked, digests, rows, walk
from tidelog.spark.audit.transactions import ABORTED, COMMITTED, TransactionMarker


def batch(base_offset: int, *values: bytes | None, **more: object) -> bytes:
    records = [
        NewRecord(value, key=b"k", timestamp_ms=1_000 + number)
        for number, value in enumerate(values)
    ]
    given = {"base_offset": base_offset, "leader_epoch": 3, **more}
    return bytes(build(records, **given))  # type: ignore[arg-type]


def marker(base_offset: int, producer_id: int, *, commit: bool) -> bytes:
    return bytes(
        build(
            [end_txn_marker(commit=commit, coordinator_epoch=0)],
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    )


def walked(data: bytes) -> tuple[list[Walked], Tail]:
    tail = Tail()
    return list(walk(memoryview(data), tail)), tail


def table(data: bytes, judged: Iterable[Judged], **fences: int) -> list[dict[str, object]]:
    found = list(rows(memoryview(data), list(judged), partition=2, **fences))
    result: list[dict[str, object]] = pa.Table.from_batches(found).to_pylist() if found else []
    return result


def test_a_walk_meets_every_batch_and_marker() -> None:
    data = batch(0, b"a", b"b", producer_id=9, producer_epoch=0, transactional=True)
    data += marker(2, 9, commit=False) + batch(3, b"c")
    found, tail = walked(data)
    assert [each.header.base_offset for each in found] == [0, 2, 3]
    assert [each.marker for each in found] == [None, TransactionMarker(2, 9, False), None]
    assert all(each.is_sound for each in found)
    assert (tail.position, tail.reason) == (len(data), None)


def test_a_wrong_checksum_is_told_and_the_walk_goes_on() -> None:
    first, second = batch(0, b"abcdef"), batch(1, b"x")
    damaged = bytearray(first + second)
    damaged[len(first) - 3] ^= 1
    found, tail = walked(bytes(damaged))
    assert [each.is_sound for each in found] == [False, True] and tail.reason is None


@pytest.mark.parametrize(
    ("behind", "reason"), [(batch(1, b"x")[:40], "a batch that is cut"), (bytes(100), "magic 0")]
)
def test_bytes_that_are_no_batch_end_the_walk(behind: bytes, reason: str) -> None:
    first = batch(0, b"a")
    found, tail = walked(first + behind)
    assert len(found) == 1 and tail.position == len(first)
    assert tail.reason is not None and reason in tail.reason


@pytest.mark.parametrize("compression", [0, 1, 4])
def test_rows_have_key_digest_time_and_epoch(compression: int) -> None:
    data = batch(10, b"a", None, b"", compression=compression) + batch(
        20, b"z", leader_epoch=5, log_append_time_ms=77
    )
    found, _ = walked(data)
    judged = [Judged(found[0], COMMITTED, True), Judged(found[1], ABORTED, False)]
    first, second, third, fourth = table(data, judged)
    assert first == {
        "partition": 2,
        "offset": 10,
        "leader_epoch": 3,
        "key": b"k",
        "digest": hashlib.sha256(b"a").digest(),
        "timestamp_ms": 1_000,
        "state": COMMITTED,
        "is_visible": True,
    }
    assert second["digest"] is None and third["digest"] == hashlib.sha256(b"").digest()
    assert third["timestamp_ms"] == 1_002
    assert (fourth["offset"], fourth["leader_epoch"], fourth["state"]) == (20, 5, ABORTED)
    assert fourth["timestamp_ms"] is None, "the broker's time is not the producer's"


def test_only_what_is_asked_for_is_unpacked() -> None:
    data = batch(0, b"a", b"b") + batch(2, b"c") + batch(3, b"d", b"e")
    found, _ = walked(data)
    judged = [Judged(each, COMMITTED, True) for each in (found[0], found[2])]
    offsets = [row["offset"] for row in table(data, judged, start_offset=1, end_offset=4)]
    assert offsets == [1, 3]
    assert table(data, []) == []


@pytest.mark.parametrize(
    "values", [[], [b"a"], [None], [b"", b""], [None, b"x", None, b"yz"], [b""]]
)
def test_digests_are_those_of_the_values(values: list[bytes | None]) -> None:
    wanted = [None if each is None else hashlib.sha256(each).digest() for each in values]
    assert digests(pa.array(values, pa.binary())).to_pylist() == wanted
    padded = pa.array([b"before", *values, b"after"], pa.binary())
    assert digests(padded.slice(1, len(values))).to_pylist() == wanted
