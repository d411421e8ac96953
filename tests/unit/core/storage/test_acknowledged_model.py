"""Whatever a log goes through, a batch that is sent again is answered with its place, or refused.

A model keeps where each batch stands. Producers number their batches over the end of the sequence
numbers, begin new producer epochs, and send anything again that they ever sent; the log rolls its
segments, is truncated, loses its head, is stopped, killed, and loses its power (X-50).
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest

from tests.unit.core.storage.given import NOW_MS, Rig, batch, files_of, headers_of
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.limits import DEDUP_BATCHES, SEQUENCE_MODULUS
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.log import Log
from tidelog.core.storage.producers import sequence_after

STEPS = 120
PRODUCERS = 3


class Numbered(NamedTuple):
    """A batch as its producer numbers it."""

    producer_id: int
    producer_epoch: int
    sequence: int
    records: int


class SendingAgain:
    """A log, its producers, and where each of their batches stands."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.deletes = seed % 4 == 0
        self.rig = Rig(seed=seed)
        self.directory: LogDirectory = self.rig.open_directory()
        self.log: Log = self.rig.open_in(self.directory)
        self.leader_epoch = 0
        self.sent: list[list[Numbered]] = [[] for _ in range(PRODUCERS)]
        """Of each producer, in its newest producer epoch."""
        self.older: list[Numbered] = []
        self.placed: dict[Numbered, list[int]] = {}
        """Two places, where the first was deleted before the log was read from its disk."""
        self.is_any_deleted = False
        self.answered: dict[str, int] = {"its place": 0, "refused": 0, "appended": 0}

    def step(self) -> None:
        name = self.random.choices(
            ["write", "again", "bump", "truncate", "delete", "stop", "kill", "lose_power", "sync"],
            [40, 40, 2, 4, 2 if self.deletes else 0, 2, 3, 2, 10],
        )[0]
        getattr(self, name)()
        self.log.check()

    def write(self) -> None:
        """The first batch that is not in the log, or a new one."""
        which = self.random.randrange(PRODUCERS)
        mine = self.sent[which]
        gone = [each for each in mine if each not in self.placed]
        if not gone:
            count = self.random.randint(1, 4)
            # The first one begins shortly before the sequence numbers do so anew.
            first = SEQUENCE_MODULUS - 9 if not which and not self.older else 0
            sequence = sequence_after(mine[-1].sequence, mine[-1].records) if mine else first
            older = sum(each.producer_id == which for each in self.older)
            gone = [Numbered(which, mine[-1].producer_epoch if mine else older, sequence, count)]
            mine += gone
        self._send(gone[0])

    def again(self) -> None:
        """Any batch that was ever sent, in this producer epoch or in an older one."""
        known = [each for mine in self.sent for each in mine[-DEDUP_BATCHES - 2 :]]
        known += self.older[-3:]
        if known:
            self._send(self.random.choice(known))

    def _send(self, numbered: Numbered) -> None:
        end_offset = self.log.log_end_offset
        places = self.placed.get(numbered, [])
        result = self.log.append_as_leader(
            batch(
                numbered.records,
                producer_id=numbered.producer_id,
                producer_epoch=numbered.producer_epoch,
                sequence=numbered.sequence,
            ),
            leader_epoch=self.leader_epoch,
            wall_ms=NOW_MS,
        )
        if result.error is not ErrorCode.NONE:
            assert result.base_offset is None
            self.answered["refused"] += 1
        elif result.is_duplicate:
            assert result.base_offset in places, f"{numbered} does not stand there"
            self.answered["its place"] += 1
        else:
            # As in Kafka, a log that is read from its disk knows nothing of what was deleted.
            is_new = not places or self.is_any_deleted
            assert is_new, f"{numbered} stands at {places} and is stored again"
            assert result.base_offset == end_offset
            self.placed[numbered] = [*places, end_offset]
            self.answered["appended"] += 1

    def bump(self) -> None:
        """A producer begins a new epoch, once its old batches are in the log."""
        which = self.random.randrange(PRODUCERS)
        mine = self.sent[which]
        if mine and all(each in self.placed for each in mine):
            self.older += mine[-1:]
            self.sent[which] = []
            self._send_first_of(which, mine[-1].producer_epoch + 1)

    def _send_first_of(self, which: int, producer_epoch: int) -> None:
        self.sent[which] = [Numbered(which, producer_epoch, 0, 2)]
        self._send(self.sent[which][0])

    def truncate(self) -> None:
        """Another leader wrote something else behind this offset."""
        low = max(self.log.log_start_offset, self.log.log_end_offset - 40)
        self.log.truncate_to(self.random.randint(low, self.log.log_end_offset))
        self._forget_cut()

    def delete(self) -> None:
        """Producers are remembered beyond the deletion of their records, until a restart."""
        self.is_any_deleted = True
        self.log.advance_high_watermark(self.log.log_end_offset)
        start = self.random.randint(self.log.log_start_offset, self.log.log_end_offset)
        self.log.delete_records_before(start)

    def sync(self) -> None:
        self.log.want_sync()
        self.rig.finish_syncs()

    def stop(self) -> None:
        self.directory.close_cleanly()
        self.rig.kill()
        self._open()

    def kill(self) -> None:
        if self.random.randrange(2):
            self.directory.write_checkpoints()
            self.rig.finish_syncs()
        self.rig.kill()
        self._open()

    def lose_power(self) -> None:
        self.rig.lose_power()
        self._open()

    def _open(self) -> None:
        self.directory = self.rig.open_directory()
        self.log = self.rig.open_in(self.directory)
        self._forget_cut()

    def _forget_cut(self) -> None:
        """What stands is what the files say, and what was deleted stood where it was stored.

        A power loss may also bring back what was cut, if that was not on the disk yet.
        """
        start = self.log.log_start_offset
        left = {each: [at for at in places if at < start] for each, places in self.placed.items()}
        for file in files_of(self.log):
            for header in headers_of(file.read(0, file.size_bytes)):
                numbers = (header.producer_id, header.producer_epoch, header.base_sequence)
                places = left.setdefault(Numbered(*numbers, header.records_count), [])
                if header.base_offset not in places:
                    places.append(header.base_offset)
        self.placed = {each: places for each, places in left.items() if places}
        self.leader_epoch += 1


@pytest.mark.scenario("X-50")
@pytest.mark.parametrize("chunk", range(4))
def test_a_batch_that_is_sent_again_is_answered_with_its_place_or_refused(chunk: int) -> None:
    answered: dict[str, int] = {}
    for seed in range(10 * chunk, 10 * chunk + 10):
        model = SendingAgain(seed)
        for _ in range(STEPS):
            model.step()
        for kind, count in model.answered.items():
            answered[kind] = answered.get(kind, 0) + count
    assert all(count > 50 for count in answered.values()), answered
