"""Directories of brokers are understood: whose they are, their segments and their checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.replicas import find_replicas, log_directories


def log_directory(path: Path, *, node: int | None = None) -> Path:
    path.mkdir(parents=True)
    if node is not None:
        (path / "meta.properties").write_text(f"#\nnode.id={node}\nversion=1\n")
    return path


def partition(directory: Path, name: str, *segments: int) -> Path:
    path = directory / name
    path.mkdir()
    for base_offset in segments:
        (path / f"{base_offset:020d}.log").write_bytes(b"x" * 10)
    return path


def test_a_node_is_said_or_says_so_itself(tmp_path: Path) -> None:
    said = log_directory(tmp_path / "a")
    own = log_directory(tmp_path / "b", node=7)
    assert log_directories([f"4={said}", str(own)]) == [(4, said), (7, own)]


def test_a_directory_of_tidelog_up_has_them_all(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{}")
    for node in (1, 2):
        log_directory(tmp_path / f"node-{node}" / "data")
    (tmp_path / "node-x").mkdir()
    found = log_directories([str(tmp_path)])
    assert found == [(node, tmp_path / f"node-{node}" / "data") for node in (1, 2)]


def test_a_replica_tells_its_fences(tmp_path: Path) -> None:
    directory = log_directory(tmp_path / "logs", node=1)
    path = partition(directory, "orders-0", 5, 20)
    partition(directory, "orders-1")
    partition(directory, "orders-extra-0", 0)
    (path / "partition.metadata").write_text("version: 0\ntopic_id: yKzAbc\n")
    (path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n4 17\n")
    (directory / "replication-offset-checkpoint").write_text("0\n2\norders 0 21\nother 0 9\n")
    (directory / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n")

    first, second = find_replicas([str(directory)], "orders")

    assert (first.node_id, first.partition, first.topic_id) == (1, 0, "yKzAbc")
    assert (first.log_start_offset, first.high_watermark, first.leader_epoch) == (7, 21, 4)
    assert [(each.base_offset, each.is_newest) for each in first.segments] == [
        (5, False),
        (20, True),
    ]
    assert second.partition == 1 and second.segments == ()
    assert (second.log_start_offset, second.high_watermark, second.leader_epoch) == (0, None, None)


def test_a_log_starts_no_earlier_than_its_first_segment(tmp_path: Path) -> None:
    directory = log_directory(tmp_path / "logs", node=1)
    partition(directory, "orders-0", 30)
    (replica,) = find_replicas([str(directory)], "orders")
    assert replica.log_start_offset == 30


def test_what_is_no_log_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AuditRefused, match="there is no directory"):
        log_directories([str(tmp_path / "nothing")])
    with pytest.raises(AuditRefused, match=r"no data directory .* say NODE="):
        log_directories([str(tmp_path)])
    first, second = log_directory(tmp_path / "a"), log_directory(tmp_path / "b")
    for each in (first, second):
        partition(each, "orders-0", 0)
    with pytest.raises(AuditRefused, match="are both replica 1 of orders-0"):
        find_replicas([f"1={first}", f"1={second}"], "orders")
