"""What `tidelog produce` sends: lines of a file, or generated records with names of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidelog.core.model.exceptions import TidelogError


class Given(NamedTuple):
    """One record's key and value."""

    key: bytes | None
    value: bytes | None


class BadLine(TidelogError):
    """A line that is no record; those before it were sent."""


def from_lines(
    lines: Iterable[bytes], *, separator: bytes | None = None, null_marker: bytes | None = None
) -> Iterator[Given]:
    """One record for each line, without its end; the key stands before the first separator."""
    for number, line in enumerate(lines, start=1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        key: bytes | None = None
        if separator is not None:
            key, found, text = text.partition(separator)
            if not found:
                raise BadLine(f"line {number} has no {separator.decode()!r} between key and value")
        yield Given(
            None if key is not None and key == null_marker else key,
            None if text == null_marker else text,
        )


def generated(count: int, *, size_bytes: int, run: str) -> Iterator[Given]:
    """Values that are found nowhere else: `RUN-NUMBER`, filled up to the size."""
    for number in range(count):
        yield Given(None, f"{run}-{number} ".encode().ljust(size_bytes, b"."))


class Pace:
    """At most so many records per second, counted from the first."""

    def __init__(self, records_per_s: float | None) -> None:
        self._records_per_s = records_per_s
        self._began_s: float | None = None

    def pause_s(self, sent: int, now_s: float) -> float:
        """How long to wait before the next one, when so many were sent."""
        if self._began_s is None:
            self._began_s = now_s
        if self._records_per_s is None:
            return 0.0
        return max(0.0, self._began_s + sent / self._records_per_s - now_s)
