"""One flipped bit in a stored batch's header: what it damages is told, what it hides is found."""

from __future__ import annotations

from collections.abc import Iterator
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
    read_values,
)
from tidelog.core.storage.damage import stretches
from tidelog.core.storage.disk import File, read_slice
from tidelog.core.storage.events import IndexRebuilt, TailCut
from tidelog.core.storage.log import Log
from tidelog.core.wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    batches,
    crc_is_valid,
    rebase,
)
from tidelog.core.wire.records import NewRecord, build

pytestmark = pytest.mark.scenario("X-33")

RECORDS = 3
BATCHES = 30
DAMAGED = 4
"""The number of the batch that decays: neither the first of its segment nor the last."""

BASE_OFFSET = range(8)
BATCH_LENGTH = range(8, 12)
LEADER_EPOCH = range(12, 16)
MAGIC = range(16, 17)
LAST_OFFSET_DELTA = range(23, 27)
RECORDS_COUNT = range(57, 61)
LOW_BYTE = {"length": 11, "last offset delta": 26, "base offset": 7}

NO_INDEX = replace(SMALL, index_interval_bytes=10**6)


class Decaying:
    """A log of three records a batch, and the batch of its oldest segment that decays."""

    def __init__(self, rig: Rig | None = None, *, number: int = DAMAGED) -> None:
        self.rig = rig or Rig()
        self.log = self.rig.open()
        for _ in range(BATCHES):
            append(self.log, batch(RECORDS))
        self.file: File = files_of(self.log)[0]
        self.right = self.file.read(0, self.file.size_bytes)
        found = list(batches(self.right))
        assert 0 < number < len(found) - 1
        self.position, self.header = found[number]
        self.offsets = range(self.header.base_offset, self.header.end_offset)

    def flip(self, byte: int, bit: int) -> None:
        """Twice is a repair."""
        self.rig.store.flip_bit(self.file.path, position=self.position + byte, bit=bit)

    def answers(self) -> Iterator[tuple[int, BatchHeader | None]]:
        """To a reader at each offset: the header of the first batch, None if it is told damage."""
        for offset in range(self.log.log_end_offset):
            yield offset, first_header(self.log, offset)


def first_header(log: Log, offset: int) -> BatchHeader | None:
    """What a client makes of the answer: its checks of the bytes are the broker's excuse."""
    try:
        piece = log.read(offset, bytes_max=1, end_offset=log.log_end_offset)
        assert piece is not None
        data = read_slice(piece)
        (_, header) = next(batches(data))
    except (CorruptBatch, StopIteration):
        return None
    return header if crc_is_valid(data, 0, header) else None


def is_honest(decaying: Decaying) -> None:
    for offset, header in decaying.answers():
        if offset in decaying.offsets:
            assert header is None, f"damage was given as the record at {offset}"
        else:
            assert header is not None, f"offset {offset} is sound, and hidden"
            assert header.base_offset <= offset < header.end_offset


@pytest.mark.parametrize("config", [SMALL, NO_INDEX], ids=["indexed", "without an index"])
@pytest.mark.parametrize("byte", [each for each in range(HEADER_BYTES) if each not in LEADER_EPOCH])
def test_any_flipped_bit_of_a_header_is_told_and_hides_nothing(config: object, byte: int) -> None:
    decaying = Decaying(Rig(SMALL if config is SMALL else NO_INDEX))
    for bit in range(8):
        decaying.flip(byte, bit)
        is_honest(decaying)
        decaying.flip(byte, bit)
    assert all(header is not None for _, header in decaying.answers()), "repaired, and served again"


@pytest.mark.parametrize("byte", LEADER_EPOCH)
def test_a_flipped_leader_epoch_hides_nothing(byte: int) -> None:
    """No checksum covers it: followers refuse it, a reader of the leader is given it."""
    decaying = Decaying()
    decaying.flip(byte, 3)
    assert all(header is not None for _, header in decaying.answers())


def test_too_large_a_last_offset_delta_does_not_swallow_the_offsets_behind_it() -> None:
    decaying = Decaying()
    decaying.flip(LOW_BYTE["last offset delta"], 4)
    is_honest(decaying)


def test_too_small_a_last_offset_delta_does_not_make_a_reader_skip_the_rest_of_the_batch() -> None:
    decaying = Decaying()
    decaying.flip(LOW_BYTE["last offset delta"], 1)
    with pytest.raises(CorruptBatch):
        decaying.log.read(decaying.offsets[-1], bytes_max=1, end_offset=BATCHES * RECORDS)
    is_honest(decaying)


def test_a_negative_last_offset_delta_refuses_only_its_own_batch() -> None:
    decaying = Decaying()
    decaying.flip(LAST_OFFSET_DELTA[0], 7)
    is_honest(decaying)


def test_a_length_that_leads_exactly_to_a_later_batch_swallows_none_in_between() -> None:
    """Batches of 128 bytes: the flipped bit makes one of them two."""
    rig = Rig()
    log = rig.open()
    value = "v" * next(n for n in range(200) if len(batch(["v" * n])) == 128)
    append_values(log, *[value] * BATCHES)
    file = files_of(log)[0]
    (position, header) = list(batches(file.read(0, file.size_bytes)))[2]
    rig.store.flip_bit(file.path, position=position + LOW_BYTE["length"], bit=7)
    (_, wrong) = list(batches(file.read(0, file.size_bytes)))[2]
    assert wrong.size_bytes == 2 * header.size_bytes == 256

    told = [first_header(log, offset) for offset in range(BATCHES)]

    assert [offset for offset, each in enumerate(told) if each is None] == [2]


def test_a_walk_past_damage_leaves_the_index_as_it_was() -> None:
    decaying = Decaying()
    segment = decaying.log.files.segments[0]
    entries = segment.offsets.entries()
    assert len(entries) > 2
    decaying.flip(LOW_BYTE["length"], 0)
    is_honest(decaying)
    assert segment.offsets.entries() == entries


def test_a_fence_at_the_damage_leaves_what_is_before_it_readable() -> None:
    decaying = Decaying()
    decaying.flip(MAGIC[0], 0)
    piece = decaying.log.read(0, bytes_max=2**20, end_offset=decaying.offsets[0])
    assert piece is not None
    assert headers_of(read_slice(piece))[-1].end_offset == decaying.offsets[0]


@pytest.mark.parametrize("byte", [*BATCH_LENGTH, *MAGIC, *LAST_OFFSET_DELTA, *BASE_OFFSET])
def test_a_missing_index_is_rebuilt_past_the_damage(byte: int) -> None:
    decaying = Decaying()
    decaying.log.close_cleanly()
    decaying.flip(byte, 1)
    decaying.rig.remove("00000000000000000000.index")
    decaying.rig.kill()

    decaying.log = decaying.rig.open(clean=True)

    assert decaying.rig.trace.of(IndexRebuilt)
    is_honest(decaying)


@pytest.mark.parametrize("byte", [*BATCH_LENGTH, *MAGIC, *LAST_OFFSET_DELTA, *RECORDS_COUNT])
def test_a_clean_restart_cuts_nothing_because_of_a_header_in_the_active_segment(byte: int) -> None:
    decaying = Decaying(Rig(replace(NO_INDEX, segment_bytes=10**6)))
    decaying.log.close_cleanly()
    decaying.flip(byte, 1)
    decaying.rig.kill()

    decaying.log = decaying.rig.open(clean=True)

    assert decaying.log.log_end_offset == BATCHES * RECORDS
    assert not decaying.rig.trace.of(TailCut)
    is_honest(decaying)


def test_a_damaged_batch_at_the_very_end_is_cut_even_after_a_clean_stop() -> None:
    """Only its header could say where the log ends."""
    rig = Rig()
    log = rig.open()
    append_values(log, "a", "b", "c")
    log.close_cleanly()
    file = files_of(log)[0]
    position = [at for at, _ in batches(file.read(0, file.size_bytes))][-1]
    rig.store.flip_bit(file.path, position=position + LOW_BYTE["last offset delta"], bit=2)
    rig.kill()

    assert read_values(rig.open(clean=True)) == ["a", "b"]


@pytest.mark.parametrize("byte", [*BATCH_LENGTH, *MAGIC, *LAST_OFFSET_DELTA, *BASE_OFFSET])
def test_a_truncation_ends_where_it_is_told_although_a_header_before_it_is_damaged(
    byte: int,
) -> None:
    decaying = Decaying()
    decaying.flip(byte, 1)
    end_offset = decaying.offsets[-1] + 1 + RECORDS

    assert decaying.log.truncate_to(end_offset + 1, wall_ms=NOW_MS)
    assert decaying.log.log_end_offset == end_offset
    decaying.log.check()
    append(decaying.log, batch(RECORDS))
    is_honest(decaying)


@pytest.mark.parametrize("byte", [*BATCH_LENGTH, *MAGIC, *LAST_OFFSET_DELTA, *BASE_OFFSET])
def test_a_truncation_into_the_damaged_batch_takes_all_of_it(byte: int) -> None:
    decaying = Decaying()
    decaying.flip(byte, 1)

    assert decaying.log.truncate_to(decaying.offsets[1], wall_ms=NOW_MS)

    assert decaying.log.log_end_offset == decaying.offsets[0]
    assert all(header is not None for _, header in decaying.answers())


def test_retention_goes_by_the_timestamps_of_the_sound_batches() -> None:
    decaying = Decaying(Rig(replace(NO_INDEX, retention_ms=1_000)))
    log = decaying.log
    log.close_cleanly()
    decaying.rig.remove("00000000000000000000.timeindex")
    decaying.flip(MAGIC[0], 5)
    decaying.rig.kill()
    log = decaying.log = decaying.rig.open(clean=True)
    log.advance_high_watermark(log.log_end_offset)

    assert log.enforce_retention(NOW_MS + 500) == 0
    assert log.enforce_retention(NOW_MS + 5_000) > 0


def test_a_record_that_holds_the_bytes_of_a_batch_is_not_taken_for_one() -> None:
    """Mirrors and dumps write such records; the search for the next batch meets this one first."""
    rig = Rig(replace(NO_INDEX, segment_bytes=10**5))
    log = rig.open()
    inner = bytes(batch(["inner"], base_offset=1_000))
    decoy = bytes(batch(["decoy"], base_offset=2, leader_epoch=0))
    view = memoryview(bytearray(_holding(b"x" + decoy + inner[:40])))
    for each in (batch(["a"]), view, batch(["b"]), batch(["c"])):
        append(log, each)
    log.close_cleanly()
    rig.kill()
    log = rig.open(clean=True)
    file = files_of(log)[0]
    position = [at for at, _ in batches(file.read(0, file.size_bytes))][1]
    rig.store.flip_bit(file.path, position=position + LOW_BYTE["length"], bit=0)

    found = list(stretches(file, 0, start_offset=0, base_offset=0))

    assert [(each.start_offset, each.header is None) for each in found] == [
        (0, False), (1, True), (2, False), (3, False),
    ]  # fmt: skip


def test_two_damaged_batches_hide_nothing_between_them() -> None:
    decaying = Decaying(Rig(replace(NO_INDEX, segment_bytes=10**6)))
    decaying.log.close_cleanly()
    decaying.rig.kill()
    log = decaying.rig.open(clean=True)
    positions = [at for at, _ in batches(decaying.right)]
    for number in (4, 9):
        at = positions[number] + LOW_BYTE["length"]
        decaying.rig.store.flip_bit(decaying.file.path, position=at, bit=1)

    told = [first_header(log, number * RECORDS) for number in range(BATCHES)]

    assert [number for number, each in enumerate(told) if each is None] == [4, 9]


def _holding(value: bytes) -> bytes:
    return bytes(build([NewRecord(value=value, key=None, timestamp_ms=NOW_MS)]))


@pytest.mark.parametrize("wrong", [0, -2, -(2**31) + 1])
def test_a_follower_refuses_a_leader_epoch_that_goes_back(wrong: int) -> None:
    """No checksum covers it; in a log it only ever grows."""
    leader, follower = Rig().open(), Rig().open()
    append_values(leader, "a", leader_epoch=1)
    append_values(leader, "b", "c", leader_epoch=2)
    piece = leader.read(0, bytes_max=2**20, end_offset=3)
    assert piece is not None
    data = memoryview(bytearray(read_slice(piece)))
    position = [at for at, _ in batches(data)][1]
    rebase(data, position, base_offset=1, leader_epoch=wrong)

    with pytest.raises(CorruptBatch):
        follower.append_as_follower(data, wall_ms=NOW_MS)
    assert follower.epochs.entries == []
    follower.append_as_follower(data[:position], wall_ms=NOW_MS)
    with pytest.raises(CorruptBatch):
        follower.append_as_follower(data[position:], wall_ms=NOW_MS)
    assert follower.epochs.entries == [(1, 0)]


def test_gaps_of_a_compacted_topic_are_no_damage() -> None:
    """A copy has them between its batches, and batches with fewer records than offsets."""
    log = Rig(replace(SMALL, compact=True, segment_bytes=10**5)).open()
    kept = range(0, 200, 7)
    for offset in kept:
        log.append_as_follower(batch(2, base_offset=offset, leader_epoch=0), wall_ms=NOW_MS)
    log.close_cleanly()
    segment = log.files.segments[0]
    assert segment.tail is None

    for offset in range(kept[-1] + 2):
        header = first_header(log, offset)
        assert header is not None
        assert header.base_offset == next(each for each in kept if each + 2 > offset)
