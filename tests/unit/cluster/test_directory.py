"""A cluster's directory: its plan survives, and a bad one is refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidelog.cluster.cluster_options import ClusterOptions
from tidelog.cluster.directory import ClusterDirectory, locked, take_lock
from tidelog.cluster.errors import ClusterError


def written(path: Path) -> ClusterDirectory:
    directory = ClusterDirectory(path)
    directory.write_plan(
        ClusterOptions(brokers=4, racks=("a", "b"), settings={"x": True}).settle(None)
    )
    return directory


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = ClusterOptions(brokers=4, racks=("a", "b"), settings={"x": True}).settle(None)
    ClusterDirectory(tmp_path).write_plan(plan)
    assert ClusterDirectory(tmp_path).read_plan() == plan


def test_a_cluster_has_one_secret_that_only_its_owner_reads(tmp_path: Path) -> None:
    directory, other = ClusterDirectory(tmp_path / "one"), ClusterDirectory(tmp_path / "two")
    for each in (directory, other):
        each.make()
        each.make_secret()
    secret = directory.read_secret()

    directory.make_secret()

    assert directory.read_secret() == secret != other.read_secret()
    assert len(bytes.fromhex(secret)) == 32
    assert directory.secret_path.stat().st_mode & 0o777 == 0o600


def test_without_a_plan_there_is_no_cluster(tmp_path: Path) -> None:
    assert not ClusterDirectory(tmp_path).has_plan
    with pytest.raises(ClusterError, match="there is no cluster in"):
        ClusterDirectory(tmp_path).read_plan()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"version": 1}', '{"version": 1, "nodes": 3}']
)
def test_a_damaged_plan_is_told_by_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(ClusterError, match=r"cluster\.json is damaged"):
        ClusterDirectory(tmp_path).read_plan()


def test_a_plan_of_another_release_is_not_touched(tmp_path: Path) -> None:
    directory = written(tmp_path)
    told = json.loads(directory.plan_path.read_text())
    directory.plan_path.write_text(json.dumps({**told, "version": 2}))
    with pytest.raises(ClusterError, match="is of format 2; this release knows 1"):
        directory.read_plan()


def test_sockets_move_to_a_short_place_when_the_path_is_too_long(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    directory = written(long)
    try:
        assert len(str(directory.gate(1))) < 100
        again = ClusterDirectory(long)
        again.read_plan()
        assert again.gate(1) == directory.gate(1)
        assert again.gate(1) != again.gate(2)
    finally:
        assert directory.sockets is not None
        directory.sockets.rmdir()


def test_the_end_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path)
    assert directory.last_log_lines(1, 3) == []
    directory.node(1).mkdir()
    directory.log(1).write_text("".join(f"line {each}\n" for each in range(50_000)))
    assert directory.last_log_lines(1, 2) == ["line 49998", "line 49999"]


def test_a_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterError, match="cannot use"):
        ClusterDirectory(tmp_path / "file").make()


def test_a_lock_is_taken_once(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"):
        assert take_lock(tmp_path / "lock") is None
    assert take_lock(tmp_path / "lock") is not None
