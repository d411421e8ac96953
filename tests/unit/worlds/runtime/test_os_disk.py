"""The disk of a real process keeps the Disk port's promises, with few descriptors."""

from __future__ import annotations

import errno
import os
import resource
import threading
from pathlib import Path

import pytest

from tidelog.core.storage.disk import DiskError, DiskFull
from tidelog.worlds.runtime.os_disk import OsDisk
from tidelog.worlds.runtime.sync_thread import SyncResult


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def disk(root: str) -> OsDisk:
    return OsDisk([root], descriptors_max=4, wake=lambda: None)


def durable(disk: OsDisk) -> list[SyncResult]:
    """All wishes carried out."""
    for lane in disk._sync_threads.values():
        lane.stop()
    return disk.collect()


def test_append_read_truncate(disk: OsDisk, root: str) -> None:
    file = disk.open(f"{root}/a")
    file.append(b"one", bytearray(b"two"), memoryview(b"three"))
    assert file.size_bytes == 11
    assert file.read(3, 3) == b"two"
    assert file.read(6, 100) == b"three"
    assert file.read(11, 1) == b""

    file.truncate(4)
    file.append(b"!")

    assert file.size_bytes == 5
    assert Path(f"{root}/a").read_bytes() == b"onet!"


def test_an_existing_file_is_opened_with_its_size(disk: OsDisk, root: str) -> None:
    Path(f"{root}/a").write_bytes(b"12345")
    file = disk.open(f"{root}/a")
    file.append(b"6")
    assert file.size_bytes == 6
    assert file.read(0, 10) == b"123456"


def test_more_parts_than_one_system_call_takes(disk: OsDisk, root: str) -> None:
    file = disk.open(f"{root}/a")
    file.append(*[bytes([i % 256]) * 3 for i in range(5000)])
    assert file.size_bytes == 15_000
    assert file.read(3 * 4999, 3) == bytes([4999 % 256]) * 3


def test_one_path_is_one_file(disk: OsDisk, root: str) -> None:
    assert disk.open(f"{root}/a") is disk.open(f"{root}/a")


def test_descriptors_stay_few_and_files_stay_usable(disk: OsDisk, root: str) -> None:
    files = [disk.open(f"{root}/{i}") for i in range(20)]
    for turn in range(3):
        for i, file in enumerate(files):
            file.append(bytes([i]))
            assert file.read(turn, 1) == bytes([i])
            assert disk.open_descriptors <= 4
    assert all(file.size_bytes == 3 for file in files)


def test_the_pool_spares_a_file_in_use_and_never_a_pinned_one(disk: OsDisk, root: str) -> None:
    pinned = disk.open(f"{root}/pinned")
    pinned.pin()
    descriptor = pinned.fd
    for i in range(20):
        disk.open(f"{root}/{i}").append(b"x")
    assert pinned.fd == descriptor

    pinned.close()
    assert pinned.fd == descriptor, "closed only when the pin is gone"
    pinned.unpin()
    assert pinned.fd is None


def test_a_machine_without_descriptors_left_costs_an_idle_file_its_own(
    disk: OsDisk, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = disk.open(f"{root}/idle")
    real_open, refusals = os.open, [errno.EMFILE]

    def scarce(path: str, flags: int, mode: int = 0o777) -> int:
        if refusals:
            number = refusals.pop()
            raise OSError(number, os.strerror(number))
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", scarce)
    disk.open(f"{root}/new").append(b"x")

    assert idle.fd is None
    refusals += [errno.EMFILE] * 10
    with pytest.raises(DiskError):
        disk.open(f"{root}/another")


def test_rename_keeps_the_handle_and_replaces_the_target(disk: OsDisk, root: str) -> None:
    Path(f"{root}/target").write_bytes(b"old")
    file = disk.open(f"{root}/temporary")
    file.append(b"new")

    file.rename(f"{root}/target")
    file.append(b"er")
    file.close()

    assert file.path == f"{root}/target"
    assert file.read(0, 10) == b"newer"
    assert disk.list_names(root) == ["target"]
    assert disk.open(f"{root}/target") is file


def test_files_below_a_renamed_directory_keep_working(disk: OsDisk, root: str) -> None:
    disk.make_directory(f"{root}/topic-0/deep")
    open_file = disk.open(f"{root}/topic-0/a")
    closed_file = disk.open(f"{root}/topic-0/deep/b")
    bystander = disk.open(f"{root}/topic-00")
    closed_file.close()

    disk.rename_directory(f"{root}/topic-0", f"{root}/topic-0.gone-delete")

    open_file.append(b"1")
    closed_file.append(b"2")
    assert Path(f"{root}/topic-0.gone-delete/a").read_bytes() == b"1"
    assert Path(f"{root}/topic-0.gone-delete/deep/b").read_bytes() == b"2"
    assert bystander.path == f"{root}/topic-00"


def test_directories(disk: OsDisk, root: str) -> None:
    disk.make_directory(f"{root}/x/y")
    disk.make_directory(f"{root}/x/y")
    disk.open(f"{root}/x/y/b").append(b"1")
    disk.open(f"{root}/x/a")
    assert disk.list_names(f"{root}/x") == ["a", "y"]
    assert disk.list_names(f"{root}/nothing") == []
    assert disk.is_directory(f"{root}/x") and not disk.is_directory(f"{root}/x/a")
    assert disk.exists(f"{root}/x/a") and not disk.exists(f"{root}/x/z")

    disk.remove_directory(f"{root}/x")
    disk.remove_directory(f"{root}/x")

    assert disk.list_names(root) == []
    assert disk.open_descriptors == 0


def test_remove(disk: OsDisk, root: str) -> None:
    file = disk.open(f"{root}/a")
    file.append(b"old")
    file.remove()
    assert not disk.exists(f"{root}/a")

    again = disk.open(f"{root}/a")
    assert again is not file
    assert again.size_bytes == 0


def test_errors_become_disk_errors(disk: OsDisk, root: str) -> None:
    with pytest.raises(DiskError, match="No such file"):
        disk.open(f"{root}/nowhere/a")
    with pytest.raises(DiskError):
        disk.rename_directory(f"{root}/nowhere", f"{root}/b")
    with pytest.raises(DiskError):
        disk.sync_directory(f"{root}/nowhere")


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, DiskError)]
)
def test_a_full_disk_is_told_from_a_broken_one(
    disk: OsDisk, root: str, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[DiskError]
) -> None:
    file = disk.open(f"{root}/a")

    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", fail)
    monkeypatch.setattr(os, "writev", fail)

    with pytest.raises(DiskError) as one:
        file.append(b"1")
    with pytest.raises(DiskError) as many:
        file.append(b"1", b"2")

    assert type(one.value) is type(many.value) is kind


def test_a_write_cut_short_by_the_system_is_counted_as_far_as_it_came(
    disk: OsDisk, root: str
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = disk.open(f"{root}/a")
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(DiskError):
            file.append(b"123456", b"789012345")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert file.size_bytes == 10 == os.path.getsize(f"{root}/a")


def test_what_was_just_written_is_cached(disk: OsDisk, root: str) -> None:
    file = disk.open(f"{root}/a")
    file.append(bytes(300_000))
    buffer = memoryview(bytearray(1000))
    assert file.read_cached_into(buffer, 299_500) == 500
    assert file.read_cached_into(buffer, 300_000) == 0
    assert file.is_cached(0, 300_000)


def test_a_file_system_that_cannot_tell_what_is_cached_is_read_all_the_same(
    disk: OsDisk, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{root}/a")
    file.append(b"12345")
    real_read = os.preadv

    def read(descriptor: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        if flags:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return real_read(descriptor, buffers, position)

    monkeypatch.setattr(os, "preadv", read)
    buffer = memoryview(bytearray(5))
    assert file.read_cached_into(buffer, 0) == 5
    assert bytes(buffer) == b"12345"


def test_wishes_are_coalesced_and_reported_in_order(
    disk: OsDisk, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first sync runs, others queue up; each file among them is synced once."""
    first, second = disk.open(f"{root}/a"), disk.open(f"{root}/b")
    gate, reached = threading.Event(), threading.Event()
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        synced.append(descriptor)
        reached.set()
        assert gate.wait(20)

    monkeypatch.setattr(os, "fdatasync", sync)
    first.append(b"1")
    first.sync()
    assert reached.wait(20)
    for _ in range(3):
        first.append(b"1")
        first.sync()
        second.append(b"22")
        second.sync()
        disk.sync_directory(root)
    gate.set()

    results = durable(disk)

    assert synced == [first.fd, first.fd, second.fd]
    assert [(r.file, r.size_bytes, r.reason) for r in results] == [
        (first, 1, None),
        (first, 2, None), (second, 2, None),
        (first, 3, None), (second, 4, None),
        (first, 4, None), (second, 6, None),
    ]  # fmt: skip
    assert first.pins == second.pins == 0


def test_a_failed_sync_is_final_for_its_directory(
    disk: OsDisk, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = disk.open(f"{root}/good"), disk.open(f"{root}/bad")
    real_sync = os.fdatasync

    def sync(descriptor: int) -> None:
        if descriptor == bad.fd:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real_sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", sync)
    good.sync()
    bad.sync()
    good.sync()
    bad.sync()

    results = durable(disk)

    assert [(r.file, r.reason) for r in results] == [(good, None), (bad, "Input/output error")]
    assert good.pins == bad.pins == 0


def test_a_failed_sync_of_a_directory_is_reported_with_its_path(
    disk: OsDisk, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", sync)
    disk.sync_directory(root)

    assert [(r.file.path, r.reason) for r in durable(disk)] == [(root, "Input/output error")]


def test_log_directories_do_not_wait_for_each_other(tmp_path: Path) -> None:
    roots = [str(tmp_path / "a"), str(tmp_path / "ab")]
    for root in roots:
        os.mkdir(root)
    disk = OsDisk(roots, descriptors_max=4, wake=lambda: None)
    for root in roots:
        disk.open(f"{root}/x").sync()
    names = {thread.name for thread in threading.enumerate()}
    assert {f"sync {root}" for root in roots} <= names
    disk.close()
