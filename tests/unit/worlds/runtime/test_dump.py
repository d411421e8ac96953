"""`dump` tells what is in the files, damage included, and changes nothing."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tidelog.cli.dump import as_text, print_dump
from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import NullTrace
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.wire.compression import Compression
from tidelog.core.wire.records import NewRecord, build
from tidelog.worlds.runtime.dump import Fact, NothingToDump, dump
from tidelog.worlds.runtime.os_disk import OsDisk

WALL_MS = 1_700_000_000_000
SEGMENT = "00000000000000000000.log"


def batch(values: list[bytes | None], **options: object) -> memoryview:
    records = [
        NewRecord(value=value, key=b"key", timestamp_ms=WALL_MS + i, headers=[("h", b"\xff")])
        for i, value in enumerate(values)
    ]
    return memoryview(build(records, **options))  # type: ignore[arg-type]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log directory with one partition of two batches, closed cleanly."""
    root = tmp_path / "data"
    disk = OsDisk([str(root)], descriptors_max=20, wake=lambda: None)
    directory = LogDirectory.open(disk=disk, path=str(root), trace=NullTrace())
    log = directory.open_log(
        TopicPartition("orders", 0),
        topic_id=TopicId(bytes(range(16))),
        config=LogConfig(),
        wall_ms=WALL_MS,
    )
    for view in (
        batch([b"one", b"two", None], producer_id=7, producer_epoch=1, base_sequence=0),
        batch([b"\x00\x01"], compression=Compression.ZSTD),
    ):
        appended = log.append_as_leader(view, leader_epoch=4, wall_ms=WALL_MS)
        assert appended.error == 0, appended
    directory.close_cleanly()
    disk.close()
    return root


def of_kind(facts: list[Fact], kind: str) -> list[Fact]:
    return [fact for fact in facts if fact["kind"] == kind]


def content(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_log_directory_with_everything_in_it(data: Path) -> None:
    before = content(data)
    facts = list(dump(str(data), with_records=True))

    [directory] = of_kind(facts, "log directory")
    assert directory["stopped_cleanly"] and directory["partitions"] == 1
    recovery = next(f for f in of_kind(facts, "checkpoint") if "recovery" in str(f["path"]))
    assert recovery["entries"] == {"orders-0": 4}
    [partition] = of_kind(facts, "partition")
    assert partition["topic_id"] == "AAECAwQFBgcICQoLDA0ODw"
    [leader_epochs] = of_kind(facts, "leader epochs")
    assert leader_epochs["entries"] == [{"leader_epoch": 4, "start_offset": 0}]
    first, second = of_kind(facts, "batch")
    assert (first["base_offset"], first["end_offset"], first["producer_id"]) == (0, 3, 7)
    assert (second["base_offset"], second["compression"]) == (3, "zstd")
    assert second["producer_id"] is None
    assert first["crc_is_valid"] and second["crc_is_valid"]
    assert [r["value"] for r in of_kind(facts, "record")] == ["one", "two", None, "0x0001"]
    assert of_kind(facts, "record")[0]["headers"] == [["h", "0xff"]]
    [producers] = of_kind(facts, "producers")
    assert producers["entries"][0]["next_sequence"] == 3  # type: ignore[index]
    assert content(data) == before


def test_a_partition_or_a_single_file_will_do(data: Path) -> None:
    assert len(of_kind(list(dump(str(data / "orders-0"))), "batch")) == 2
    segment = list(dump(str(data / "orders-0" / SEGMENT)))
    assert [fact["kind"] for fact in segment] == ["segment", "batch", "batch"]


def test_a_flipped_bit_is_shown_and_told_by_the_exit_code(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_dump(str(data), with_records=False, as_json=False) == 0
    path = data / "orders-0" / SEGMENT
    changed = bytearray(path.read_bytes())
    changed[70] ^= 1
    path.write_bytes(changed)

    assert print_dump(str(data), with_records=False, as_json=False) == 1

    assert "WRONG CRC" in capsys.readouterr().out


@pytest.mark.parametrize("tail", [b"x", bytes(61), b"\xff" * 100, struct.pack(">qi", 4, 5000)])
def test_bytes_that_are_no_batch_end_the_segment(data: Path, tail: bytes) -> None:
    path = data / "orders-0" / SEGMENT
    size_bytes = path.stat().st_size
    with path.open("ab") as file:
        file.write(tail)

    facts = list(dump(str(path), with_records=True))

    [end] = of_kind(facts, "no batch")
    assert end["position"] == size_bytes and end["size_bytes"] == len(tail)
    assert len(of_kind(facts, "batch")) == 2


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "orders-0/leader-epoch-checkpoint",
        "orders-0/00000000000000000004.snapshot",
    ],
)
def test_a_torn_file_is_told_and_the_rest_is_shown(data: Path, name: str) -> None:
    (data / name).write_bytes(b"0\n7\nto")

    facts = list(dump(str(data)))

    [torn] = of_kind(facts, "unreadable")
    assert str(torn["path"]).endswith(name)
    assert len(of_kind(facts, "batch")) == 2


def test_indexes_skip_kafkas_padding_and_count_what_is_cut(data: Path) -> None:
    partition = data / "orders-0"
    (partition / "00000000000000000000.index").write_bytes(struct.pack(">ii", 2, 99) + bytes(16))
    (partition / "00000000000000000000.timeindex").write_bytes(struct.pack(">qi", 55, 2) + b"abc")
    (partition / "00000000000000000000.txnindex").write_bytes(struct.pack(">hqqqq", 0, 9, 1, 2, 3))

    facts = list(dump(str(partition)))

    assert of_kind(facts, "offset index")[0]["entries"] == [{"offset": 2, "position": 99}]
    [times] = of_kind(facts, "time index")
    assert times["entries"] == [{"timestamp_ms": 55, "offset": 2}] and times["cut_bytes"] == 3
    [aborted] = of_kind(facts, "aborted transactions")
    assert aborted["entries"] == [
        {"producer_id": 9, "first_offset": 1, "end_offset": 3, "last_stable_offset": 3}
    ]
    assert all(as_text(fact) for fact in facts)


def test_json_is_one_object_per_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_dump(str(data), with_records=True, as_json=True)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == list(dump(str(data), with_records=True))


def test_text_names_offsets_epochs_and_producers(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_dump(str(data), with_records=True, as_json=False)
    shown = capsys.readouterr().out
    for words in (
        "partition orders-0: topic id AAECAwQFBgcICQoLDA0ODw",
        "leader epoch 4 from 0",
        "[0, 3) at 0",
        "producer 7 epoch 1 sequence 0",
        "[3, 4)",
        "zstd",
        '0: key "key", value "one", headers h="0xff", 2023-11-14T22:13:20.000Z',
        "value null",
        "producer 7 epoch 1: next sequence 3, latest batch [0, 3)",
    ):
        assert words in shown


@pytest.mark.parametrize(
    ("name", "reason"), [("nothing", "no such"), ("other", "neither"), ("file.txt", "no file of")]
)
def test_a_wrong_path_is_refused_clearly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, reason: str
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "file.txt").write_text("hello")
    with pytest.raises(NothingToDump, match=reason):
        list(dump(str(tmp_path / name)))
    assert print_dump(str(tmp_path / name), with_records=False, as_json=False) == 2
    assert reason in capsys.readouterr().err
