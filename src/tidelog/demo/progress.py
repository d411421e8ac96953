"""How far the pipeline has come, by what Spark wrote down in its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

_SOURCE_LINE = 2
"""Of an offsets file: the version, the settings, then the end of each source."""


class PipelineProgress:
    """Of one sink's query: a batch is planned in `offsets` first, and done when in `commits`."""

    def __init__(self, checkpoint: Path, sink: str) -> None:
        self._offsets = checkpoint / "sinks" / sink / "offsets"
        self._commits = checkpoint / "sinks" / sink / "commits"

    @property
    def done(self) -> int | None:
        """The newest batch that is done."""
        return _newest(self._commits)

    @property
    def under_way(self) -> int | None:
        """The batch that is planned and not done."""
        planned, done = _newest(self._offsets), self.done
        return planned if planned is not None and planned != done else None

    @property
    def records(self) -> int:
        """Of the topic, all partitions together, that batches which are done have read."""
        return sum(self._positions().values())

    def has_reached(self, ends: Mapping[int, int]) -> bool:
        """Whether what is done covers the topic up to these offsets, by partition."""
        positions = self._positions()
        return bool(positions) and all(positions.get(each, 0) >= end for each, end in ends.items())

    def _positions(self) -> dict[int, int]:
        done = self.done
        return {} if done is None else positions_in((self._offsets / str(done)).read_text())


def positions_in(offsets: str) -> dict[int, int]:
    """Up to where a batch read, by the text of its offsets file; its one source reads one topic."""
    told = json.loads(offsets.splitlines()[_SOURCE_LINE])
    by_index = next(of for topic, of in told.items() if not topic.startswith("("))
    return {int(index): int(offset) for index, offset in by_index.items()}


def _newest(directory: Path) -> int | None:
    if not directory.is_dir():
        return None
    numbers = [int(each.name) for each in directory.iterdir() if each.name.isdecimal()]
    return max(numbers, default=None)
