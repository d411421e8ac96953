"""Kafka's text checkpoints: a version, a count, and so many lines.

A file that a power loss cut or filled with zeros is recognised: its count must be right and its
final line complete.
"""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError

_VERSION = "0"


class CorruptCheckpoint(TidelogError):
    """Not a checkpoint that was written to its end."""


def write_lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines)).encode()


def read_lines(content: bytes) -> list[str]:
    try:
        version, count, *lines = content.decode("utf-8").split("\n")
    except (ValueError, UnicodeDecodeError):
        raise CorruptCheckpoint(f"{len(content)} bytes that are no checkpoint") from None
    if version != _VERSION:
        raise CorruptCheckpoint(f"version {version!r}")
    if not lines or lines[-1]:
        raise CorruptCheckpoint("the final line is not complete")
    lines.pop()
    if not count.isdecimal() or int(count) != len(lines):
        raise CorruptCheckpoint(f"{len(lines)} lines instead of {count!r}")
    return lines
