"""Frames come out whole and in order however the bytes came in, and memory follows the bytes."""

from __future__ import annotations

from random import Random

import pytest

from tidelog.core.wire.frames import (
    FIRST_BYTES,
    POOL_BYTES_MAX,
    SCRATCH_BYTES,
    SHORT_BYTES_MAX,
    BadFrame,
    FrameReader,
    PartialFrameBudget,
)

MIB = 2**20
REQUEST_BYTES_MAX = 10 * MIB


def new_budget(bytes_max: int = 64 * MIB) -> PartialFrameBudget:
    return PartialFrameBudget(bytes_max, request_bytes_max=REQUEST_BYTES_MAX)


def new_reader(budget: PartialFrameBudget) -> FrameReader:
    return FrameReader(REQUEST_BYTES_MAX, budget)


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big", signed=True) + payload


def feed(reader: FrameReader, data: bytes, chunk_bytes: int | None = None) -> list[bytes]:
    """Write like a socket would: never more than the buffer takes."""
    frames = []
    rest = memoryview(data)
    while rest and not reader.starved:
        space = reader.buffer()
        assert len(space) > 0
        count = min(len(space), len(rest), chunk_bytes or len(rest))
        space[:count] = rest[:count]
        rest = rest[count:]
        reader.wrote(count)
        while (frame := reader.next_frame()) is not None:
            frames.append(bytes(frame))
    return frames


SIZES = [0, 1, 3, 4, 5, 100, FIRST_BYTES - 5, FIRST_BYTES - 4, FIRST_BYTES, SCRATCH_BYTES - 4,
         SCRATCH_BYTES - 3, SCRATCH_BYTES, SCRATCH_BYTES + 1, 300_000]  # fmt: skip


@pytest.mark.parametrize("chunk_bytes", [None, 1, 2, 3, 5, 1000, 4096, 65536])
def test_frames_come_out_whole_however_the_bytes_are_cut(chunk_bytes: int | None) -> None:
    random = Random(1)
    sizes = SIZES if chunk_bytes is None or chunk_bytes > 100 else SIZES[:9]
    payloads = [random.randbytes(size) for size in sizes + list(reversed(sizes))]
    budget = new_budget()

    got = feed(new_reader(budget), b"".join(framed(p) for p in payloads), chunk_bytes)

    assert got == payloads
    assert budget.used_bytes == 0


@pytest.mark.parametrize("seed", range(20))
def test_many_connections_share_one_scratch_buffer_without_mixing_their_bytes(seed: int) -> None:
    random = Random(seed)
    budget = new_budget()
    readers = [new_reader(budget) for _ in range(8)]
    payloads = [
        [random.randbytes(random.choice([3, 50, 900, 70_000])) for _ in range(30)] for _ in readers
    ]
    streams = [b"".join(framed(p) for p in mine) for mine in payloads]
    got: list[list[bytes]] = [[] for _ in readers]

    while any(streams):
        index = random.randrange(len(readers))
        count = random.choice([1, 7, 500, 30_000, 200_000])
        got[index] += feed(readers[index], streams[index][:count])
        streams[index] = streams[index][count:]

    assert got == payloads
    assert budget.used_bytes == 0


def test_a_frame_is_writable_and_excludes_its_size() -> None:
    reader = new_reader(new_budget())
    reader.buffer()[:7] = framed(b"abc")
    reader.wrote(7)

    frame = reader.next_frame()

    assert frame is not None
    frame[0:1] = b"A"
    assert bytes(frame) == b"Abc"


@pytest.mark.parametrize("size", [-1, -(2**31), REQUEST_BYTES_MAX + 1, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused_before_anything_is_allocated(size: int) -> None:
    budget = new_budget()
    reader = new_reader(budget)

    with pytest.raises(BadFrame, match=str(size)):
        feed(reader, size.to_bytes(4, "big", signed=True))

    reader.close()
    assert budget.used_bytes == 0


def test_a_parked_reader_keeps_whole_frames_for_later_and_frees_the_scratch_buffer() -> None:
    budget = new_budget()
    reader, other = new_reader(budget), new_reader(budget)
    data = framed(b"one") + framed(b"two") + framed(b"three") + framed(b"four")[:5]
    reader.buffer()[: len(data)] = data
    reader.wrote(len(data))
    assert bytes(reader.next_frame() or b"") == b"one"

    reader.park()
    assert feed(other, framed(b"x" * 1000)) == [b"x" * 1000]

    assert bytes(reader.next_frame() or b"") == b"two"
    reader.park()
    assert bytes(reader.next_frame() or b"") == b"three"
    assert reader.next_frame() is None
    assert feed(reader, framed(b"four")[5:]) == [b"four"]
    assert budget.used_bytes == 0


def test_memory_follows_the_bytes_that_came_not_the_size_that_was_promised() -> None:
    budget = new_budget()
    readers = [new_reader(budget) for _ in range(100)]

    for reader in readers:
        feed(reader, (REQUEST_BYTES_MAX).to_bytes(4, "big") + b"x")

    assert budget.used_bytes == 100 * FIRST_BYTES
    arrived = 4 + 1
    for step in (10_000, 100_000, 1_000_000):
        feed(readers[0], bytes(step))
        arrived += step
        assert arrived <= readers[0].held_bytes <= 4 * arrived


def test_a_connection_that_finished_a_long_request_gets_its_buffer_at_once() -> None:
    reader = new_reader(new_budget())
    feed(reader, framed(bytes(1_000_000)))

    feed(reader, framed(bytes(1_000_000))[:SCRATCH_BYTES])

    assert reader.held_bytes == MIB


def test_trust_ends_where_requests_are_called_long() -> None:
    reader = new_reader(new_budget())
    feed(reader, framed(bytes(REQUEST_BYTES_MAX)))

    feed(reader, framed(bytes(REQUEST_BYTES_MAX))[:5])

    assert reader.held_bytes == SHORT_BYTES_MAX


def test_used_up_budget_starves_all_but_one_and_that_one_feeds_the_next() -> None:
    """Fifty half-sent requests of 10 MiB under a budget of 64 MiB: all finish, one by one."""
    budget = new_budget(64 * MIB)
    whole = framed(bytes(REQUEST_BYTES_MAX))
    readers = {new_reader(budget): 0 for _ in range(50)}
    finished = 0
    highest_bytes = 0

    for _ in range(3000):
        for reader in list(readers):
            if reader.starved:
                continue
            space = reader.buffer()
            count = min(len(space), len(whole) - readers[reader], 2 * MIB)
            space[:count] = whole[readers[reader] : readers[reader] + count]
            readers[reader] += count
            reader.wrote(count)
            if reader.next_frame() is not None:
                assert reader.next_frame() is None
                finished += 1
                del readers[reader]
            highest_bytes = max(highest_bytes, budget.used_bytes)
        budget.feed()
        if not readers:
            break

    assert finished == 50
    assert highest_bytes <= 64 * MIB
    assert budget.used_bytes == 0 and not budget.waiting


def test_short_requests_pass_while_long_ones_wait_for_memory() -> None:
    budget = new_budget(64 * MIB)
    promise = framed(bytes(REQUEST_BYTES_MAX))
    for _ in range(30):
        feed(new_reader(budget), promise[: 8 * MIB])
    assert len(budget.waiting) > 10

    short = new_reader(budget)

    assert feed(short, framed(bytes(2 * MIB))) == [bytes(2 * MIB)]


def test_a_long_request_grows_in_place_once_it_proved_long() -> None:
    """Copying a hundred megabytes again and again would cost time and twice the memory."""
    lengths: list[int] = []

    def new_buffer(size_bytes: int) -> memoryview:
        lengths.append(size_bytes)
        return memoryview(bytearray(size_bytes))

    budget = PartialFrameBudget(
        64 * MIB, request_bytes_max=REQUEST_BYTES_MAX, new_buffer=new_buffer
    )

    feed(new_reader(budget), framed(bytes(REQUEST_BYTES_MAX)))

    assert [length for length in lengths if length > SHORT_BYTES_MAX] == [REQUEST_BYTES_MAX + 4]


def test_a_closed_reader_makes_room_for_a_starved_one() -> None:
    budget = new_budget(REQUEST_BYTES_MAX + SCRATCH_BYTES)
    promise = framed(bytes(REQUEST_BYTES_MAX))
    holder, waiter = new_reader(budget), new_reader(budget)
    feed(holder, promise[: MIB + 1])
    feed(waiter, promise[: MIB + 1])
    assert waiter.starved and not holder.starved
    assert budget.feed() == []

    holder.close()

    assert budget.feed() == [waiter]
    assert not waiter.starved


def test_a_closed_waiter_leaves_the_queue() -> None:
    budget = new_budget(REQUEST_BYTES_MAX + SCRATCH_BYTES)
    promise = framed(bytes(REQUEST_BYTES_MAX))
    holder, waiter = new_reader(budget), new_reader(budget)
    feed(holder, promise[: MIB + 1])
    feed(waiter, promise[: MIB + 1])

    waiter.close()

    assert not budget.waiting
    assert budget.used_bytes == holder.held_bytes


def test_spare_buffers_are_bounded_and_can_be_given_back() -> None:
    budget = new_budget()
    readers = [new_reader(budget) for _ in range(20)]
    half = framed(bytes(2 * MIB))
    for reader in readers:
        feed(reader, half[: MIB + MIB // 2])
    for reader in readers:
        reader.close()

    assert budget.pooled_bytes <= POOL_BYTES_MAX
    budget.trim()
    assert budget.pooled_bytes == 0
