"""The files of a partition on a real disk: read, torn, flipped, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.core.wire.record_batch import batches, crc_is_valid
from tidelog.core.wire.records import NewRecord, build
from tidelog.lab.engines.partition_files import PartitionFiles

NAME = "00000000000000000000.log"


def batch(base_offset: int) -> bytes:
    data = build([NewRecord(value=b"v" * 20, timestamp_ms=1)])
    data[0:8] = base_offset.to_bytes(8, "big")
    return bytes(data)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    partition = tmp_path / "data" / "orders-0"
    partition.mkdir(parents=True)
    (partition / NAME).write_bytes(b"".join(map(batch, range(3))))
    (partition / "x.snapshot").write_bytes(b"s")
    (tmp_path / "data" / "meta.properties").write_text("id")
    return tmp_path / "data"


def test_files_are_read_by_their_names(disk: Path) -> None:
    files = PartitionFiles([disk])
    assert files.read("orders", 0).keys() == {NAME, "x.snapshot"}
    assert files.read("orders", 1) == {}


def test_a_kind_of_file_is_removed(disk: Path) -> None:
    files = PartitionFiles([disk])
    files.delete("orders", 0, suffix=".snapshot")
    assert files.read("orders", 0).keys() == {NAME}


def test_a_flipped_bit_spoils_one_batch(disk: Path) -> None:
    files = PartitionFiles([disk])
    files.flip_bit("orders", 0, offset=1)
    data = files.read("orders", 0)[NAME]
    assert [crc_is_valid(data, at, header) for at, header in batches(data)] == [True, False, True]
    with pytest.raises(AssertionError, match="offset 9"):
        files.flip_bit("orders", 0, offset=9)


def test_a_torn_end_is_shorter_by_so_much(disk: Path) -> None:
    files = PartitionFiles([disk])
    before = files.read("orders", 0)[NAME]
    files.tear("orders", 0, bytes_off=7)
    assert files.read("orders", 0)[NAME] == before[:-7]


def test_a_wiped_disk_is_empty(disk: Path) -> None:
    PartitionFiles([disk]).wipe()
    assert list(disk.iterdir()) == []
