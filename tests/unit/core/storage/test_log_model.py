"""A log beside a plain list: whatever is done to both, they agree."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.unit.core.storage.given import NOW_MS, SMALL, Rig, batch, read_all
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.log import Log

STEPS = 150


class Model:
    """The log as a list of values by offset, from `start` on."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        config = replace(SMALL, retention_bytes=6_000 if seed % 3 else None, retention_ms=None)
        self.rig = Rig(config, seed=seed)
        self.directory: LogDirectory = self.rig.open_directory()
        self.log: Log = self.rig.open_in(self.directory)
        self.values: list[str] = []
        self.start = 0
        self.leader_epoch = 0
        self.sequence = 0
        self.serial = 0

    def step(self) -> None:
        name = self.random.choices(
            ["append", "retry", "read", "truncate", "delete", "retain", "stop", "kill", "sync"],
            [40, 5, 20, 4, 4, 4, 3, 3, 10],
        )[0]
        getattr(self, name)()
        self.log.check()
        self.directory.check()

    def append(self) -> None:
        count = self.random.randint(1, 5)
        values = [f"{self.serial + at}:{'y' * self.random.randint(0, 40)}" for at in range(count)]
        self.serial += count
        view = batch(
            values,
            producer_id=1,
            producer_epoch=self.leader_epoch,
            sequence=self.sequence,
            compression=self.random.randrange(5),
        )
        self.final = bytes(view)
        result = self.log.append_as_leader(view, leader_epoch=self.leader_epoch, wall_ms=NOW_MS)
        assert (result.error, result.is_duplicate) == (0, False)
        assert result.base_offset == len(self.values)
        self.values += values
        self.sequence += count

    def retry(self) -> None:
        if not self.sequence:
            return
        result = self.log.append_as_leader(
            memoryview(bytearray(self.final)), leader_epoch=self.leader_epoch, wall_ms=NOW_MS
        )
        assert (result.error, result.is_duplicate) == (0, True)
        assert result.end_offset == len(self.values)

    def read(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (
            self.start,
            len(self.values),
        )
        offset = self.random.randint(self.start, len(self.values))
        found = read_all(
            self.log, start_offset=offset, bytes_max=self.random.choice([1, 300, 10**6])
        )
        assert [record.offset for record in found] == list(range(offset, len(self.values)))
        assert [(record.value or b"").decode() for record in found] == self.values[offset:]

    def truncate(self) -> None:
        end_offset = self.random.randint(self.start, len(self.values))
        self.log.truncate_to(end_offset)
        assert self.start <= end_offset
        assert self.log.log_end_offset <= end_offset
        assert end_offset - self.log.log_end_offset < 5, "only the batch of that offset goes"
        del self.values[self.log.log_end_offset :]
        self.start = min(self.start, self.log.log_end_offset)
        self._new_leader()

    def delete(self) -> None:
        self.log.advance_high_watermark(len(self.values))
        self.start = self.random.randint(self.start, len(self.values))
        assert self.log.delete_records_before(self.start) == self.start

    def retain(self) -> None:
        self.log.advance_high_watermark(len(self.values))
        self.log.enforce_retention(NOW_MS)
        limit = self.log.config.retention_bytes
        assert limit is None or self.log.size_bytes < limit + self.log.config.segment_bytes
        self.start = max(self.start, self.log.log_start_offset)
        self.directory.write_checkpoints()
        self.rig.finish_syncs()
        self.rig.wall_ms += 30_000
        self.directory.delete_due_files(self.rig.wall_ms)

    def sync(self) -> None:
        self.log.want_sync()
        self.rig.finish_syncs()
        assert self.log.synced_end_offset == len(self.values)

    def stop(self) -> None:
        self.directory.close_cleanly()
        self._restart()
        assert self.directory.was_clean
        self._lead_on()

    def kill(self) -> None:
        self.directory.write_checkpoints()
        self.rig.finish_syncs()
        self._restart()
        assert not self.directory.was_clean
        self._lead_on()

    def _restart(self) -> None:
        self.rig.kill()
        self.directory = self.rig.open_directory()
        self.log = self.rig.open_in(self.directory)
        self.read()

    def _lead_on(self) -> None:
        """The final batch is known to a restarted log unless it was deleted."""
        if self.start < len(self.values) and self.sequence:
            self.retry()
        else:
            self._new_leader()

    def _new_leader(self) -> None:
        self.leader_epoch += 1
        self.sequence = 0


@pytest.mark.parametrize("seed", range(40))
def test_the_log_is_a_list_that_survives(seed: int) -> None:
    model = Model(seed)
    for _ in range(STEPS):
        model.step()
    model.read()
