"""Leader epochs: which leader's records begin where; how replicas find out where they diverge.

Kept in memory and in `leader-epoch-checkpoint`. The file is rewritten whole at every change, as a
new file under the old name. It may be torn by a power loss, so its count and final newline are
checked, and a torn one is rebuilt from the batches, which carry their leader epochs themselves.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from tidelog.core.formats.text_checkpoints import (
    CorruptCheckpoint,
    parse_leader_epoch,
    read_lines,
    write_lines,
)


class LeaderEpochs:
    """Invariant: leader epochs and start offsets both grow strictly."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    @classmethod
    def decode(cls, text: bytes) -> LeaderEpochs:
        """From the checkpoint's content; CorruptCheckpoint if it is not one."""
        epochs = cls()
        for line in read_lines(text):
            entry = parse_leader_epoch(line)
            if entry is None:
                raise CorruptCheckpoint(f"line {line!r}")
            leader_epoch, start_offset = entry
            if epochs._epochs and (
                leader_epoch <= epochs._epochs[-1] or start_offset <= epochs._starts[-1]
            ):
                raise CorruptCheckpoint(f"line {line!r} is out of order")
            epochs._epochs.append(leader_epoch)
            epochs._starts.append(start_offset)
        return epochs

    def encode(self) -> bytes:
        pairs = zip(self._epochs, self._starts, strict=True)
        return write_lines([f"{leader_epoch} {start}" for leader_epoch, start in pairs])

    @property
    def latest(self) -> int | None:
        return self._epochs[-1] if self._epochs else None

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(leader epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, leader_epoch: int, start_offset: int) -> bool:
        """Records of this leader epoch begin at `start_offset`; True if that is news.

        Entries that contradict it go: they are of leaders whose records were replaced, or of
        leaders that never wrote any.
        """
        assert leader_epoch >= 0 and start_offset >= 0, (leader_epoch, start_offset)
        epochs, starts = self._epochs, self._starts
        if epochs and leader_epoch == epochs[-1] and start_offset >= starts[-1]:
            return False
        while epochs and (epochs[-1] >= leader_epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(leader_epoch)
        starts.append(start_offset)
        return True

    def end_of(self, leader_epoch: int, *, log_end_offset: int) -> tuple[int, int] | None:
        """The largest leader epoch not after the given one, and where its records end.

        None if nothing is known: no entry, or a leader epoch of the future.
        """
        epochs = self._epochs
        if not epochs or leader_epoch < 0:
            return None
        if leader_epoch == epochs[-1]:
            return leader_epoch, log_end_offset
        at = bisect_right(epochs, leader_epoch)
        if at == len(epochs):
            return None
        if at == 0:
            return leader_epoch, self._starts[0]
        return epochs[at - 1], self._starts[at]

    def of_offset(self, offset: int) -> int | None:
        """The leader epoch of the record at `offset`."""
        at = bisect_right(self._starts, offset) - 1
        return None if at < 0 else self._epochs[at]

    def reach_back_to(self, offset: int) -> bool:
        """Whether the leader epoch of the record at `offset` is known."""
        return bool(self._starts) and self._starts[0] <= offset

    def cut_end(self, end_offset: int) -> bool:
        """The log now ends at `end_offset`; True if entries went."""
        kept = len(self._starts)
        while kept and self._starts[kept - 1] >= end_offset:
            kept -= 1
        changed = kept < len(self._starts)
        del self._epochs[kept:], self._starts[kept:]
        return changed

    def cut_start(self, start_offset: int) -> bool:
        """The log now begins at `start_offset`; True if entries changed."""
        at = bisect_right(self._starts, start_offset) - 1
        if at < 0 or (at == 0 and self._starts[0] == start_offset):
            return False
        del self._epochs[:at], self._starts[:at]
        self._starts[0] = start_offset
        return True

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()

    def check(self) -> None:
        assert len(self._epochs) == len(self._starts)
        for entries in (self._epochs, self._starts):
            assert all(before < after for before, after in pairwise(entries))
