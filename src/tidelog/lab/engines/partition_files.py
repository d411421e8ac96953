"""The files of one partition on a node's disk: reading them, and doing them harm.

A running broker may remove a segment while somebody looks; what is gone by then is not shown.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tidelog.core.formats import file_names
from tidelog.core.wire.record_batch import batches

_FLIPPED_BIT = 1 << 3
_FROM_THE_END_BYTES = 2
"""The flipped bit lies in the last record of its batch."""


class PartitionFiles:
    """The directories in which one node keeps its partitions."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories

    def read(self, topic: str, index: int) -> dict[str, bytes]:
        """Every file of a partition by its name."""
        found: dict[str, bytes] = {}
        for path in self._paths(topic, index):
            with suppress(FileNotFoundError, IsADirectoryError):
                found[path.name] = path.read_bytes()
        return found

    def delete(self, topic: str, index: int, *, suffix: str) -> None:
        for path in self._paths(topic, index):
            if path.name.endswith(suffix):
                path.unlink()

    def flip_bit(self, topic: str, index: int, *, offset: int) -> None:
        """In the batch that holds this offset."""
        for path in self._segments(topic, index):
            for position, header in batches(path.read_bytes()):
                if header.base_offset <= offset < header.end_offset:
                    _flip(path, position + header.size_bytes - _FROM_THE_END_BYTES)
                    return
        raise AssertionError(f"offset {offset} is not on this disk")

    def tear(self, topic: str, index: int, *, bytes_off: int) -> None:
        """The newest segment loses its last bytes."""
        path = [each for each in self._segments(topic, index) if each.stat().st_size][-1]
        os.truncate(path, path.stat().st_size - bytes_off)

    def wipe(self) -> None:
        """Nothing is left, not even the identity of the directory."""
        for directory in self._directories:
            shutil.rmtree(directory)
            directory.mkdir()

    def _paths(self, topic: str, index: int) -> list[Path]:
        found: list[Path] = []
        for directory in self._directories:
            with suppress(FileNotFoundError):
                found += (directory / f"{topic}-{index}").iterdir()
        return sorted(found)

    def _segments(self, topic: str, index: int) -> list[Path]:
        return [path for path in self._paths(topic, index) if path.suffix == file_names.LOG]


def _flip(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ _FLIPPED_BIT]))
