"""Which checkpoints are on this machine, and that they are synced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidelog.spark.sink.checkpoint_sync import local_path, sync_offsets


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("file:/data/check point", "/data/check point"),
        ("file:///data/a%20b", "/data/a b"),
        ("/data/c", "/data/c"),
        ("hdfs://name/data", None),
        ("s3a://bucket/data", None),
    ],
)
def test_only_files_of_this_machine_have_a_path(address: str, path: str | None) -> None:
    assert local_path(address) == path


def test_offsets_and_their_directory_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text("v1")
    (tmp_path / "metadata").write_text("{}")
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}"))
    )

    sync_offsets(f"file:{tmp_path}", 7)

    wanted = ["metadata", "offsets/7", "offsets", "."]
    assert synced == [os.path.normpath(f"{tmp_path}/{name}") for name in wanted]


def test_a_checkpoint_elsewhere_is_left_alone(tmp_path: Path) -> None:
    sync_offsets(f"file:{tmp_path}/not-here", 7)
    sync_offsets("s3a://bucket/data", 7)
