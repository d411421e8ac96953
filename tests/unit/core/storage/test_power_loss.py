"""Whatever a power loss keeps of what was not synced: the log that is found is a prefix.

Each seed writes, syncs, truncates, deletes and rolls at random, loses power at a random moment
(some syncs done, some under way), opens what is left, and goes on. Claims: everything that was
reported as synced is there, what is there was written in this order, and the leader epochs are
those of the batches.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.core.storage.given import SMALL, Rig, batch, read_all
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.log import Log

ROUNDS = 8
STEPS = 40


class Story:
    """The log as it should be, beside the log as it is."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rig = Rig(SMALL, seed=seed)
        self.leader_epoch = 0
        self.serial = 0
        self.records: list[tuple[str, int]] = []
        """(value, leader epoch) by offset, as written in this life."""
        self.start_offset = 0
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
        if self.random.random() < 0.7:
            self.rig.lose_power()
        else:
            self.rig.kill()
            synced = self.log.log_end_offset
        self.directory = self.rig.open_directory()
        self.log = log = self.rig.open_in(self.directory)
        self.judge(synced, start, written)
        self.leader_epoch += 1
        self.records = written[: log.log_end_offset]

    def judge(self, synced: int, start: int, written: list[tuple[str, int]]) -> None:
        """Synced is kept; a truncation may have been undone, but nothing is mixed or missing."""
        log = self.log
        found = read_all(log)
        assert [record.offset for record in found] == list(
            range(log.log_start_offset, log.log_end_offset)
        )
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
@pytest.mark.parametrize("seed", range(60))
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
