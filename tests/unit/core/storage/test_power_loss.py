"""Whatever a power loss keeps of what was not synced: the log that is found is a prefix.

Each seed writes, syncs, truncates, deletes and rolls at random, loses power at a random moment
(some syncs done, some under way), opens what is left, and goes on. Claims: everything that was
reported as synced is there, what is there was written in this order and begins where the log began
at some time, and the leader epochs are those of the batches.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.unit.core.storage.given import (
    DIRECTORY,
    ROOT,
    SMALL,
    Rig,
    append,
    append_values,
    batch,
    read_all,
    read_values,
)
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.log import Log
from tidelog.worlds.simulator.durable_store import DirectoryNode

ROUNDS = 8
STEPS = 40


class Story:
    """The log as it should be, beside the log as it is."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.decays = seed % 2 == 1
        self.rig = Rig(SMALL, seed=seed)
        self.leader_epoch = 0
        self.serial = 0
        self.records: list[tuple[str, int]] = []
        """(value, leader epoch) by offset, as written in this life."""
        self.start_offset_max = 0
        """Of the log since the last power loss: no record is gone from its head before that."""
        self.directory: LogDirectory = self.rig.open_directory()
        self.log: Log = self.rig.open_in(self.directory)

    def step(self) -> None:
        kind = self.random.random()
        log = self.log
        if kind < 0.6:
            self.append()
        elif kind < 0.75:
            log.want_sync()
        elif kind < 0.80:
            self.directory.write_checkpoints()
        elif kind < 0.84 and log.log_end_offset > log.log_start_offset:
            self.truncate()
        elif kind < 0.88:
            log.advance_high_watermark(log.log_end_offset)
            log.delete_records_before(self.random.randint(log.log_start_offset, log.log_end_offset))
        elif kind < 0.90:
            self.directory.delete_due_files(self.rig.wall_ms)
            self.rig.wall_ms += 40_000
        elif kind < 0.92:
            offset = self.random.randint(0, log.log_end_offset + 20)
            log.start_anew_at(offset)
            self.records = [("gone", -1)] * offset
            self.leader_epoch += 1
        for _ in range(self.random.randint(0, 3)):
            self.rig.world.step()
        log.check()
        self.start_offset_max = max(self.start_offset_max, log.log_start_offset)

    def append(self) -> None:
        count = self.random.randint(1, 4)
        values = [f"{self.serial + at}{'x' * self.random.randint(0, 60)}" for at in range(count)]
        self.serial += count
        view = batch(values, producer_id=7, producer_epoch=self.leader_epoch, sequence=-1)
        result = self.log.append_as_leader(
            view, leader_epoch=self.leader_epoch, wall_ms=self.rig.wall_ms, from_client=False
        )
        assert result.error == 0
        assert result.base_offset == len(self.records)
        self.records += [(value, self.leader_epoch) for value in values]

    def truncate(self) -> None:
        self.log.truncate_to(
            self.random.randint(self.log.log_start_offset, self.log.log_end_offset)
        )
        del self.records[self.log.log_end_offset :]
        self.leader_epoch += 1

    def crash(self) -> None:
        synced, start = self.log.synced_end_offset, self.log.log_start_offset
        written = list(self.records)
        has_power = self.random.random() >= 0.7
        if not has_power:
            self.rig.lose_power()
            self.lose_checkpoints()
        else:
            self.rig.kill()
            synced = self.log.log_end_offset
        self.directory = self.rig.open_directory()
        self.log = log = self.rig.open_in(self.directory)
        self.judge(synced, start, written)
        if not has_power:
            self.start_offset_max = log.log_start_offset
        self.leader_epoch += 1
        self.records = written[: log.log_end_offset]

    def lose_checkpoints(self) -> None:
        """In every other story: they save work, and no record hangs on them."""
        for name in self.rig.names(ROOT):
            is_checkpoint = name.endswith("-offset-checkpoint")
            if self.decays and is_checkpoint and self.random.random() < 0.4:
                self.rig.disk.open(f"{ROOT}/{name}").remove()

    def judge(self, synced: int, start: int, written: list[tuple[str, int]]) -> None:
        """Synced is kept; a truncation may have been undone, but nothing is mixed or missing."""
        log = self.log
        found = read_all(log)
        assert [record.offset for record in found] == list(
            range(log.log_start_offset, log.log_end_offset)
        )
        assert log.log_start_offset <= self.start_offset_max
        by_offset = {record.offset: (record.value or b"").decode() for record in found}
        if synced > start:  # a log that has just started anew has nothing to keep
            assert log.log_end_offset >= synced
            assert log.log_start_offset <= start
        for offset in range(max(start, log.log_start_offset), synced):
            assert by_offset[offset] == written[offset][0], offset
        self.judge_epochs()

    def judge_epochs(self) -> None:
        seen: list[tuple[int, int]] = []
        for header in self.log.batch_headers():
            if not seen or seen[-1][0] != header.leader_epoch:
                start = max(header.base_offset, self.log.log_start_offset)
                seen.append((header.leader_epoch, start))
        entries = self.log.epochs.entries
        assert [entry for entry in entries if entry[1] < self.log.log_end_offset] == seen


@pytest.mark.scenario("X-32")
@pytest.mark.parametrize("seed", range(110))
def test_a_power_loss_at_any_moment_leaves_a_usable_prefix(seed: int) -> None:
    story = Story(seed)
    for _ in range(ROUNDS):
        for _ in range(story.random.randint(1, STEPS)):
            story.step()
        story.crash()
        # What was found after a truncation that a power loss undid is the new truth.
        story.records = [("gone", -1)] * story.log.log_start_offset + [
            ((record.value or b"").decode(), -1) for record in read_all(story.log)
        ]


def segments_with(rig: Rig, count: int) -> Log:
    """A log whose syncs are all asked for, and none is done."""
    log = rig.open_in(rig.open_directory())
    while len(log.files.segments) < count:
        append(log)
    return log


def durable_segments(rig: Rig) -> list[str]:
    directory = rig.store.find(DIRECTORY)
    assert isinstance(directory, DirectoryNode)
    return sorted(name for name in directory.durable_names if name.endswith(".log"))


def name_of(log: Log, at: int) -> str:
    return log.files.segments[at].file.path.rpartition("/")[2]


def test_the_first_segment_has_a_durable_name_before_the_second_has_any() -> None:
    rig = Rig(SMALL)
    log = segments_with(rig, 1)
    assert durable_segments(rig) == []

    while len(log.files.segments) < 2:
        append(log)

    assert durable_segments(rig) == [name_of(log, 0)]


def test_what_becomes_the_first_segment_has_a_durable_name_before_the_head_is_deleted() -> None:
    rig = Rig(SMALL)
    log = segments_with(rig, 4)
    assert name_of(log, 2) not in durable_segments(rig)
    log.advance_high_watermark(log.log_end_offset)

    log.delete_records_before(log.files.segments[2].base_offset)

    assert name_of(log, 0) in durable_segments(rig)


def test_a_cut_takes_the_first_segment_last() -> None:
    """So whatever a power loss brings back begins where the log began."""
    rig = Rig(SMALL)
    log = segments_with(rig, 3)
    rig.finish_syncs()
    first = name_of(log, 0)
    assert len(durable_segments(rig)) == 3

    log.truncate_to(0)

    assert durable_segments(rig) == [first]


@pytest.mark.parametrize("seed", range(20))
def test_a_log_that_lost_its_power_with_all_syncs_under_way_still_begins_at_its_beginning(
    seed: int,
) -> None:
    rig = Rig(SMALL, seed=seed)
    segments_with(rig, 4)

    rig.lose_power()

    log = rig.open_in(rig.open_directory())
    assert log.log_start_offset == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_truncated_segment_does_not_come_back_behind_what_was_written_after_a_restart(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1. Segments 0 and n; all is synced. A truncation to n renames the second; the process dies.

    2. The restart appends to the first one. The power fails and undoes the rename.
    3. The second segment would be taken for the continuation, and the first be trusted: torn.
    """
    rig = Rig(SMALL, seed=seed)
    log = segments_with(rig, 2)
    append(log)
    log.want_sync()
    rig.finish_syncs()
    boundary = log.files.segments[1].base_offset
    with monkeypatch.context() as patch:
        patch.setattr(Log, "begin_segment", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            log.truncate_to(boundary)
    rig.kill()
    rig.config = replace(SMALL, segment_bytes=10_000)
    log = rig.open_in(rig.open_directory())
    assert log.log_end_offset == boundary
    append_values(log, "new")

    rig.lose_power()

    log = rig.open_in(rig.open_directory())
    assert read_values(log)[boundary:] in ([], ["new"])
