"""How far the pipeline has come, by what Spark wrote down in its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

_SOURCE_LINE = 2
"""Of an offsets file: the version, the settings, then the end of each source."""


class Progress:
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

    def has_reached(self, ends: Mapping[int, int]) -> bool:
        """Whether what is done covers a topic up to these offsets, by partition."""
        done = self.done
        if done is None:
            return False
        return reaches((self._offsets / str(done)).read_text(), ends)


def reaches(offsets: str, ends: Mapping[int, int]) -> bool:
    """By the text of an offsets file, whose one source reads one topic."""
    lines = offsets.splitlines()
    told = json.loads(lines[_SOURCE_LINE])
    by_index = next(of for topic, of in told.items() if not topic.startswith("("))
    return all(by_index.get(str(index), 0) >= end for index, end in ends.items())


def _newest(directory: Path) -> int | None:
    if not directory.is_dir():
        return None
    return max(
        (int(each.name) for each in directory.iterdir() if each.name.isdecimal()), default=None
    )
