"""The torn end of a log after a crash is cut; everything before it stays, and writing goes on."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.process.fixtures import StartBroker
from tests.process.wire import EARLIEST, WireClient, batch_of, batches_on_disk, segment_files
from tidelog.core.wire.record_batch import batches

COUNT = 60
BASE_MS = 1_700_000_000_000


def _append(data: bytes) -> Callable[[Path], int]:
    def tear(path: Path) -> int:
        with path.open("ab") as file:
            file.write(data)
        return 0

    return tear


def _cut(bytes_left_of_last: Callable[[int], int]) -> Callable[[Path], int]:
    """Keeps only some bytes of the last batch."""

    def tear(path: Path) -> int:
        position, header = list(batches(memoryview(path.read_bytes())))[-1]
        os.truncate(path, position + bytes_left_of_last(header.size_bytes))
        return 1

    return tear


def _flip(path: Path) -> int:
    """One wrong bit in the last batch."""
    data = bytearray(path.read_bytes())
    data[-3] ^= 0x10
    path.write_bytes(data)
    return 1


TEARS: dict[str, Callable[[Path], int]] = {
    "garbage": _append(random.Random(1).randbytes(777)),
    "zeros": _append(bytes(4096)),
    "a-header-that-promises-more": _append(batch_of(b"x" * 500, base_offset=COUNT)[:100]),
    "one-stray-byte": _append(b"\x00"),
    "cut-by-one-byte": _cut(lambda size: size - 1),
    "cut-in-the-header": _cut(lambda _: 30),
    "cut-to-the-length": _cut(lambda _: 12),
    "a-flipped-bit": _flip,
}


@pytest.mark.scenario("X-32")
def test_whatever_is_torn_at_the_end_is_cut_and_the_rest_serves(
    start_broker: StartBroker,
) -> None:
    """One topic for each way to tear, all in one crash; indexes are thrown away for half of them.

    Offsets, times and sequences before the tear are found as ever, and new records follow.
    """
    broker = start_broker({"log.index.interval.bytes": 512})
    with WireClient(broker.address) as wire:
        for name in TEARS:
            wire.create_topic(name)
            for n in range(COUNT):
                batch = batch_of(b"%d" % n * 30, timestamp_ms=BASE_MS + n)
                assert wire.produce(name, batch).error_code == 0
    broker.kill()
    lost = {}
    for at, (name, tear) in enumerate(TEARS.items()):
        (segment,) = segment_files(broker.log_directory, name)
        lost[name] = tear(segment)
        if at % 2:
            for index in segment.parent.glob("*.*index"):
                index.write_bytes(random.Random(at).randbytes(40))

    broker.start()

    with WireClient(broker.address) as wire:
        for name in TEARS:
            kept = COUNT - lost[name]
            values = [record.value for record in wire.read_all(name)]
            assert values == [b"%d" % n * 30 for n in range(kept)], name
            assert wire.offset_at(name, BASE_MS + 41).offset == 41, name
            assert wire.offset_at(name, EARLIEST).offset == 0
            assert wire.produce(name, batch_of(b"next")).base_offset == kept
            assert wire.fetch(name, 33).records, name
    for name in TEARS:
        stored = [header.base_offset for header, _ in batches_on_disk(broker.log_directory, name)]
        assert stored == list(range(COUNT - lost[name] + 1)), name


@pytest.mark.scenario("X-32")
def test_a_missing_index_is_made_anew_after_a_clean_stop(start_broker: StartBroker) -> None:
    broker = start_broker({"log.index.interval.bytes": 512})
    with WireClient(broker.address) as wire:
        wire.create_topic("orders")
        for n in range(COUNT):
            wire.produce("orders", batch_of(b"%d" % n * 30, timestamp_ms=BASE_MS + n))
    assert broker.stop() in (0, 143)
    for index in (broker.log_directory / "orders-0").glob("*.*index"):
        index.unlink()

    broker.start()

    with WireClient(broker.address) as wire:
        assert wire.offset_at("orders", BASE_MS + 41).offset == 41
        assert [record.offset for record in wire.read_all("orders", start=50)] == list(
            range(50, COUNT)
        )
