"""Reading by offset: whole first batches, fences, old segments, gaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.given import (
    NOW_MS,
    SMALL,
    Rig,
    append,
    append_values,
    batch,
    files_of,
    headers_of,
    read_all,
)
from tidelog.core.storage import dense_tail
from tidelog.core.storage.disk import read_slice
from tidelog.core.storage.log import Log, OffsetOutOfRange
from tidelog.core.wire.record_batch import CorruptBatch


@pytest.fixture
def log() -> Log:
    """Five segments of batches with three records each."""
    log = Rig().open()
    for _ in range(40):
        append(log, batch(3))
    assert len(log.files.segments) == 5
    return log


def read(log: Log, offset: int, *, bytes_max: int = 2**20, end: int | None = None) -> bytes | None:
    end_offset = log.log_end_offset if end is None else end
    piece = log.read(offset, bytes_max=bytes_max, end_offset=end_offset)
    return None if piece is None else read_slice(piece)


def test_every_offset_is_found_in_the_batch_that_holds_it(log: Log) -> None:
    for offset in range(log.log_end_offset):
        data = read(log, offset, bytes_max=1)
        assert data is not None
        (header,) = headers_of(data)
        assert header.base_offset == offset - offset % 3


def test_a_slice_never_leaves_its_segment(log: Log) -> None:
    second = log.files.segments[1]

    data = read(log, 0)

    assert data is not None
    assert headers_of(data)[-1].end_offset == second.base_offset


def test_the_batch_at_the_end_may_be_cut_but_the_first_never(log: Log) -> None:
    size = len(batch(3))

    assert len(read(log, 0, bytes_max=size + 5) or b"") == size + 5
    assert len(read(log, 0, bytes_max=5) or b"") == size
    assert log.read(0, bytes_max=size - 1, end_offset=120, at_least_one=False) is None
    exact = log.read(0, bytes_max=size, end_offset=120, at_least_one=False)
    assert exact is not None and exact.size_bytes == size


def test_nothing_at_or_behind_the_fence_is_read(log: Log) -> None:
    for end in range(0, log.log_end_offset + 1, 3):
        for start in range(0, end, 7):
            data = read(log, start, end=end)
            assert data is not None
            assert headers_of(data)[-1].end_offset <= end
        assert read(log, end, end=end) is None


def test_a_fence_inside_a_batch_leaves_the_whole_batch_out(log: Log) -> None:
    data = read(log, 3, end=10)

    assert data is not None
    assert [header.base_offset for header in headers_of(data)] == [3, 6]
    assert read(log, 9, end=10) is None


def test_a_fence_beyond_the_log_is_the_log_end(log: Log) -> None:
    assert read(log, 119, end=10_000) is not None
    assert read(log, 120, end=10_000) is None


def test_offsets_outside_of_the_log_are_out_of_range(log: Log) -> None:
    log.advance_high_watermark(120)
    log.delete_records_before(50)

    for offset in (-1, 0, 49, 121, 10**9):
        with pytest.raises(OffsetOutOfRange):
            read(log, offset)

    assert read(log, 50) is not None
    assert read(log, 120) is None


def test_an_empty_log_has_nothing_to_read() -> None:
    log = Rig().open()

    assert read(log, 0) is None
    with pytest.raises(OffsetOutOfRange):
        read(log, 1)


def test_reads_at_the_tail_look_into_no_file() -> None:
    rig = Rig(replace(SMALL, segment_bytes=10**6))
    log = rig.open()
    for _ in range(200):
        append(log)
    before = rig.store.operations

    for offset in range(200):
        assert log.read(offset, bytes_max=100, end_offset=150 if offset < 150 else 200)

    assert rig.store.operations == before


def test_more_batches_than_the_dense_tail_remembers_are_found_by_the_index() -> None:
    log = Rig(replace(SMALL, segment_bytes=10**7)).open()
    count = 2 * dense_tail.BATCHES_MAX
    for _ in range(count):
        log.append_as_leader(batch(2), leader_epoch=0, wall_ms=NOW_MS)
    log.check()

    for offset in range(0, 2 * count, 101):
        data = read(log, offset, bytes_max=1, end=2 * count - 300)
        if offset < 2 * count - 300:
            assert data is not None
            assert headers_of(data)[0].base_offset == offset - offset % 2


def test_a_lying_index_is_noticed_and_rebuilt() -> None:
    rig = Rig()
    log = rig.open()
    for _ in range(30):
        append(log)
    segment = log.files.segments[0]
    good = segment.offsets.entries()
    segment.offsets.release()
    rig.overwrite("00000000000000000000.index", b"\0\0\0\x01\0\0\0\x07" * len(good))

    for offset in range(segment.base_offset, log.files.segments[1].base_offset):
        data = read(log, offset, bytes_max=1)
        assert data is not None and headers_of(data)[0].base_offset == offset


@pytest.mark.scenario("X-33")
def test_a_damaged_length_in_an_old_segment_is_an_error_not_wrong_data() -> None:
    rig = Rig()
    log = rig.open()
    for _ in range(30):
        append(log)
    rig.store.flip_bit(files_of(log)[0].path, position=8, bit=6)

    with pytest.raises(CorruptBatch):
        read(log, 0)
    assert headers_of(read(log, 1, bytes_max=1) or b"")[0].base_offset == 1


def test_headers_can_be_walked_from_any_offset(log: Log) -> None:
    assert [header.base_offset for header in log.batch_headers()] == list(range(0, 120, 3))
    assert [header.base_offset for header in log.batch_headers(100)] == list(range(99, 120, 3))


def test_a_reopened_log_reads_the_same(log: Log) -> None:
    rig = Rig()
    first = rig.open()
    append_values(first, *[f"value {at}" for at in range(50)])
    before = read_all(first)
    first.close_cleanly()
    rig.kill()

    for clean in (True, False):
        again = rig.open(clean=clean)
        assert read_all(again) == before
        assert read_all(again, bytes_max=100) == before
        rig.kill()
