"""The simulated disk loses at a power loss what was not synced, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidelog.core.storage.disk import DiskError, DiskFull
from tidelog.worlds.simulator.disk import SimDisk, SimFile
from tidelog.worlds.simulator.durable_store import DurableStore
from tidelog.worlds.simulator.world import SimWorld

SEEDS = range(60)


class Machine:
    """A store with one process after another on it."""

    def __init__(self, seed: int, *, page_bytes: int = 64) -> None:
        self.world = SimWorld(seed=seed)
        self.store = DurableStore(self.world.random_for("platter"), page_bytes=page_bytes)
        self.synced: list[tuple[str, int]] = []
        self.failed: list[str] = []
        self.disk = self._attach()

    def settle(self) -> None:
        while self.world.step():
            pass

    def kill(self) -> None:
        self.disk.detach()
        self.disk = self._attach()

    def lose_power(self) -> None:
        self.disk.detach()
        self.store.lose_power()
        self.disk = self._attach()

    def content(self, path: str) -> bytes:
        file = self.disk.open(path)
        return file.read(0, file.size_bytes)

    def _attach(self) -> SimDisk:
        return SimDisk(
            world=self.world,
            store=self.store,
            name="disk",
            random=self.world.random_for("sync"),
            on_synced=lambda file, size_bytes: self.synced.append((file.path, size_bytes)),
            on_sync_failed=lambda file, reason: self.failed.append(file.path),
        )


def durable_file(machine: Machine, path: str, content: bytes) -> SimFile:
    file = machine.disk.open(path)
    file.append(content)
    file.sync_now()
    machine.disk.sync_directory_now("")
    return file


def outcomes(act: Callable[[Machine], object]) -> set[object]:
    """What an act leaves behind, over many seeds."""
    return {act(Machine(seed)) for seed in SEEDS}


@pytest.mark.parametrize("seed", SEEDS)
def test_synced_bytes_under_a_synced_name_survive_whatever_else_is_lost(seed: int) -> None:
    machine = Machine(seed)
    file = durable_file(machine, "a.log", b"x" * 100)
    file.append(b"y" * 300)

    machine.lose_power()

    content = machine.content("a.log")
    assert content[:100] == b"x" * 100
    assert 100 <= len(content) <= 400


def test_unsynced_pages_are_lost_in_any_combination() -> None:
    def act(machine: Machine) -> object:
        durable_file(machine, "a.log", b"x" * 64).append(b"y" * 192)
        machine.lose_power()
        content = machine.content("a.log").ljust(256, b"-")
        return tuple(content[page : page + 64] == b"y" * 64 for page in (64, 128, 192))

    seen = outcomes(act)
    assert (False, True, True) in seen, "a hole before surviving pages"
    assert (True, True, True) in seen
    assert (False, False, False) in seen


def test_a_page_may_be_torn() -> None:
    def act(machine: Machine) -> object:
        durable_file(machine, "a.log", b"").append(b"y" * 64)
        machine.lose_power()
        content = machine.content("a.log")
        return len(content) == 64 and b"y\0" in content

    assert outcomes(act) == {True, False}


def test_a_kill_loses_nothing_that_was_appended() -> None:
    machine = Machine(1)
    machine.disk.make_directory("topic-0")
    machine.disk.open("topic-0/a.log").append(b"hello")

    machine.kill()

    assert machine.content("topic-0/a.log") == b"hello"


def test_a_new_name_may_vanish_although_its_bytes_were_synced() -> None:
    def act(machine: Machine) -> object:
        file = machine.disk.open("a.log")
        file.append(b"hello")
        file.sync_now()
        machine.lose_power()
        return machine.disk.exists("a.log")

    assert outcomes(act) == {True, False}


def test_a_lost_directory_takes_its_synced_files_along() -> None:
    def act(machine: Machine) -> object:
        machine.disk.make_directory("topic-0")
        machine.disk.open("topic-0/a.log").append(b"hello")
        machine.disk.sync_directory_now("topic-0")
        machine.lose_power()
        return machine.disk.is_directory("topic-0"), machine.disk.exists("topic-0/a.log")

    assert outcomes(act) == {(True, True), (False, False)}


def test_a_rename_happens_as_a_whole_or_not_at_all() -> None:
    def act(machine: Machine) -> object:
        durable_file(machine, "checkpoint", b"old")
        durable_file(machine, "checkpoint.tmp", b"new").rename("checkpoint")
        machine.lose_power()
        names = tuple(machine.disk.list_names(""))
        return names, machine.content("checkpoint")

    assert outcomes(act) == {
        (("checkpoint", "checkpoint.tmp"), b"old"),
        (("checkpoint",), b"new"),
    }


def test_a_removed_name_may_come_back() -> None:
    def act(machine: Machine) -> object:
        durable_file(machine, "a.log", b"x").remove()
        machine.lose_power()
        return machine.disk.exists("a.log")

    assert outcomes(act) == {True, False}


def test_syncs_take_time_and_are_done_in_order() -> None:
    machine = Machine(1)
    first, second = machine.disk.open("first"), machine.disk.open("second")
    first.append(b"1")
    second.append(b"22")
    first.sync()
    machine.disk.sync_directory("")
    second.sync()
    assert machine.synced == []

    machine.settle()

    assert machine.synced == [("first", 1), ("second", 2)]
    assert machine.world.now_us > 0
    machine.lose_power()
    assert machine.content("first") == b"1"
    assert machine.content("second") == b"22"


def test_a_sync_covers_what_was_there_when_it_began() -> None:
    machine = Machine(1)
    file = machine.disk.open("a.log")
    file.append(b"early")
    file.sync()
    file.append(b"late")
    machine.settle()
    assert machine.synced == [("a.log", 5)]


def test_a_sync_under_way_does_not_undo_a_later_one() -> None:
    """Cut and synced at once while an older sync runs: what that one began with is no news."""

    def act(machine: Machine) -> object:
        file = durable_file(machine, "a.log", b"")
        file.append(b"old" * 40)
        file.sync()
        file.truncate(0)
        file.append(b"new")
        file.sync_now()
        machine.settle()
        machine.lose_power()
        return machine.content("a.log")

    assert outcomes(act) == {b"new"}


def test_a_sync_that_began_before_a_cut_keeps_what_it_began_with() -> None:
    def act(machine: Machine) -> object:
        file = durable_file(machine, "a.log", b"")
        file.append(b"x" * 64)
        file.sync()
        file.truncate(0)
        file.append(b"y" * 64)
        machine.settle()
        machine.lose_power()
        content = machine.content("a.log")
        assert b"\0" not in content, "bytes that were neither written nor synced"
        return content in (b"x" * 64, b"y" * 64) and content[:1]

    assert {b"x", b"y"} <= outcomes(act)


def test_a_file_that_was_renamed_twice_has_one_name() -> None:
    def act(machine: Machine) -> object:
        file = durable_file(machine, "a", b"content")
        file.rename("b")
        file.rename("c")
        machine.lose_power()
        return tuple(machine.disk.list_names(""))

    assert outcomes(act) == {("a",), ("b",), ("c",)}


def test_a_full_disk_writes_a_part_and_says_so() -> None:
    machine = Machine(3)
    file = machine.disk.open("a.log")
    file.append(b"x" * 10)
    machine.store.fill_up(bytes_left=5)

    with pytest.raises(DiskFull):
        file.append(b"y" * 10)

    assert 10 <= file.size_bytes <= 15
    machine.store.heal()
    file.append(b"z")


def test_the_nth_operation_fails_once() -> None:
    machine = Machine(1)
    file = machine.disk.open("a.log")
    machine.store.fail_operation(after=1)
    file.append(b"good")
    with pytest.raises(DiskError):
        file.append(b"bad")
    file.append(b"good")
    assert file.size_bytes == 8


def test_a_failed_sync_drops_pages_and_every_later_wish() -> None:
    def act(machine: Machine) -> object:
        file = durable_file(machine, "a.log", b"x" * 64)
        file.append(b"y" * 64)
        file.sync()
        file.sync()
        machine.store.fail_next_sync()
        machine.settle()
        assert (machine.failed, machine.synced) == (["a.log"], [])
        assert machine.content("a.log")[:64] == b"x" * 64
        return machine.content("a.log")[64:] == b"y" * 64

    assert outcomes(act) == {True, False}


def test_a_flipped_bit_stays_flipped() -> None:
    machine = Machine(1)
    durable_file(machine, "a.log", b"\0\0")
    machine.store.flip_bit("a.log", position=1, bit=3)
    machine.lose_power()
    assert machine.content("a.log") == b"\0\x08"


def test_a_dead_process_cannot_touch_its_files() -> None:
    machine = Machine(1)
    file = machine.disk.open("a.log")
    machine.kill()
    with pytest.raises(AssertionError):
        file.append(b"ghost")


def test_open_files_follow_their_renamed_directory() -> None:
    machine = Machine(1)
    machine.disk.make_directory("t-0")
    file = machine.disk.open("t-0/a.log")
    machine.disk.rename_directory("t-0", "t-0.x-delete")
    file.append(b"still here")
    assert file.path == "t-0.x-delete/a.log"
    assert machine.content("t-0.x-delete/a.log") == b"still here"


def test_a_removed_file_can_no_longer_be_used() -> None:
    machine = Machine(1)
    machine.disk.make_directory("t-0")
    file = machine.disk.open("t-0/a.log")
    machine.disk.remove_directory("t-0")
    with pytest.raises(DiskError):
        file.read(0, 1)
    assert not machine.disk.exists("t-0")
