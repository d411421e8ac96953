"""A compacted log beside a dictionary: whatever crashes at whatever operation, they agree.

Each seed writes keys, tombstones, rolls, cleans in small slices, truncates, deletes records, and
crashes: the process dies or the power fails, between any two operations on the disk. Claims: every
record whose key has no later record is there (what a power loss may take is only what was never
reported as synced), nothing is there that was not written, no two records have one offset, and the
segments join without a gap.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from tests.unit.core.storage.compaction_given import COMPACT, keyed
from tests.unit.core.storage.given import Rig, read_all
from tidelog.core.storage import events, log_to_clean
from tidelog.core.storage.batch_filter import BatchFilter
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.log import Log
from tidelog.core.storage.log_cleaner import CleanerSettings, LogCleaner
from tidelog.core.storage.segment_swap import SegmentSwap

ROUNDS = 6
STEPS = 60
KEYS = 7
SEEDS = 100
CAUGHT_WITHIN_SEEDS = 60
Written = tuple[str, str | None]


class ProcessDied(Exception):
    """Nobody catches it: the process is gone between two operations on its disk."""


class CompactionStory:
    """What was written by offset, beside the log; only the newest of each key must be there."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        config = replace(
            COMPACT,
            segment_bytes=self.random.choice([300, 700, 1_500]),
            delete_retention_ms=self.random.choice([0, 5_000, 10**9]),
        )
        self.rig = Rig(config, seed=seed)
        self.leader_epoch = 0
        self.serial = 0
        self.written: dict[int, Written] = {}
        self.is_truncating = self.has_truncated = False
        """In the middle of a truncation; there was one since the last start."""
        self.open()

    def open(self) -> None:
        self.directory: LogDirectory = self.rig.open_directory()
        self.log: Log = self.rig.open_in(self.directory)
        self.cleaner = LogCleaner(
            logs=lambda: [self.log],
            settings=lambda: CleanerSettings(
                map_bytes=24 * self.random.choice([10, 24, 1_000]), backoff_ms=1
            ),
            trace=self.rig.trace,
            slice_work=self.random.choice([1, 4, 400]),
        )

    # Steps.

    def step(self) -> None:
        kind = self.random.random()
        if kind < 0.45:
            self.append()
        elif kind < 0.50:
            self.log.want_sync()
        elif kind < 0.53:
            self.directory.write_checkpoints()
        elif kind < 0.55:
            self.truncate()
        elif kind < 0.57:
            self.delete_records()
        elif kind < 0.60:
            self.rig.wall_ms += 40_000
            self.directory.delete_due_files(self.rig.wall_ms)
        else:
            self.log.advance_high_watermark(
                self.random.randint(self.log.high_watermark, self.log.log_end_offset)
            )
            for _ in range(self.random.randint(1, 8)):
                self.cleaner.run_slice(self.rig.wall_ms)
                self.rig.world.step()
        for _ in range(self.random.randint(0, 4)):
            self.rig.world.step()
        assert self.log.failed is None, self.log.failed
        self.log.check()

    def append(self) -> None:
        pairs: list[Written] = []
        for _ in range(self.random.randint(1, 4)):
            self.serial += 1
            is_tombstone = self.random.random() < 0.2
            value = None if is_tombstone else f"{self.serial}" + "x" * self.random.randint(0, 30)
            pairs.append((f"key-{self.random.randrange(KEYS)}", value))
        view = keyed(*pairs, compression=self.random.randrange(5))
        result = self.log.append_as_leader(
            view, leader_epoch=self.leader_epoch, wall_ms=self.rig.wall_ms, from_client=False
        )
        assert result.error == 0 and result.base_offset is not None
        for at, pair in enumerate(pairs):
            self.written[result.base_offset + at] = pair

    def truncate(self) -> None:
        """As an unclean election does: even what was compacted may go."""
        log = self.log
        self.is_truncating = self.has_truncated = True
        log.truncate_to(self.random.randint(log.log_start_offset, log.log_end_offset))
        self.written = self.read()
        self.is_truncating = False
        self.leader_epoch += 1

    def delete_records(self) -> None:
        log = self.log
        log.delete_records_before(self.random.randint(log.log_start_offset, log.high_watermark))

    # Crashes.

    def crash(self) -> None:
        """At the n-th operation on the disk from now."""
        store, left = self.rig.store, self.random.randint(0, 400)

        def count_operation(path: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise ProcessDied(path)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "count_operation", count_operation)
            with suppress(ProcessDied):
                while True:
                    self.step()
        synced, start = self.log.synced_end_offset, self.log.log_start_offset
        if self.random.random() < 0.7:
            self.rig.lose_power()
        else:
            self.rig.kill()
        self.open()
        self.judge(synced=synced, start=start)
        self.is_truncating = self.has_truncated = False
        self.written = self.read()
        self.leader_epoch += 1

    # Verdicts.

    def read(self) -> dict[int, Written]:
        found: dict[int, Written] = {}
        for record in read_all(self.log):
            assert record.offset not in found, f"two records at {record.offset}"
            key = (record.key or b"").decode()
            found[record.offset] = (key, None if record.value is None else record.value.decode())
        return found

    def judge(self, *, synced: int, start: int) -> None:
        log, found = self.log, self.read()
        assert log.log_end_offset >= synced, "what was synced is gone"
        for before, after in pairwise(log.files.segments):
            assert before.read_end_offset() == after.base_offset, before.base_offset
        assert not self.log.uncleanable
        if self.is_truncating:
            return  # whether it happened or not, what is there is the truth now
        # A power loss may bring back a truncated tail instead of what was written since, unsynced.
        known_end = synced if self.has_truncated else log.log_end_offset
        for offset, pair in found.items():
            assert offset >= known_end or pair == self.written.get(offset, pair), offset
        for key, offset in self.newest(known_end).items():
            if offset < max(start, log.log_start_offset):
                continue
            if self.written[offset][1] is not None:
                assert offset in found, f"the newest value of {key}, at {offset}, is gone"
            elif offset not in found:
                older = [at for at in found if at < offset and found[at][0] == key]
                assert not older, f"{key} was deleted at {offset} and is back at {older}"

    def newest(self, end_offset: int) -> dict[str, int]:
        """The last offset of each key before `end_offset`."""
        return {
            self.written[offset][0]: offset
            for offset in sorted(self.written)
            if offset < end_offset
        }


def tell(seed: int) -> int:
    """One story; how many rounds of compaction were finished in it."""
    story = CompactionStory(seed)
    for _ in range(ROUNDS):
        for _ in range(story.random.randint(1, STEPS)):
            story.step()
        story.judge(synced=story.log.synced_end_offset, start=story.log.log_start_offset)
        story.crash()
    return sum(isinstance(event, events.LogCleaned) for event in story.rig.trace.events)


@pytest.mark.parametrize("seeds", [range(at, at + 10) for at in range(0, SEEDS, 10)], ids=str)
def test_a_compacted_log_is_a_dictionary_that_survives(seeds: range) -> None:
    assert sum(tell(seed) for seed in seeds) > 20


def is_caught() -> bool:
    for seed in range(CAUGHT_WITHIN_SEEDS):
        try:
            tell(seed)
        except AssertionError:
            return True
    return False


def test_an_exchange_that_does_not_wait_for_its_syncs_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SegmentSwap, "_request_sync", lambda swap: setattr(swap, "is_synced", True))

    assert is_caught()


def test_a_cleaner_that_passes_the_fences_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither synced nor known to all replicas: what replaced an older value may be lost."""
    monkeypatch.setattr(log_to_clean, "fence_of", lambda log: log.log_end_offset)

    assert is_caught()


def test_a_cleaner_that_drops_the_newest_of_a_segment_boundary_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the emptied final batch of a segment, a recovery sees a hole and cuts."""
    run = BatchFilter.run
    monkeypatch.setattr(
        BatchFilter,
        "run",
        lambda self, data, header, *, is_final: run(self, data, header, is_final=False),
    )

    assert is_caught()
