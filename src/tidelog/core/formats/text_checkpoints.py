"""Kafka's text checkpoints: a version, a count, and so many lines of offsets or leader epochs.

A file that a power loss cut or filled with zeros is recognised: its count must be right and its
final line complete.
"""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import TopicPartition

Offsets = dict[TopicPartition, int]

_VERSION = "0"
_HEAD_LINES = 2


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


def lines_so_far(content: bytes) -> list[str]:
    """The lines of a checkpoint that need not be complete, for a reader beside a running broker."""
    return content.decode("utf-8", "replace").splitlines()[_HEAD_LINES:]


def encode_offsets(offsets: Offsets) -> bytes:
    return write_lines([f"{one.topic} {one.index} {offset}" for one, offset in offsets.items()])


def decode_offsets(content: bytes) -> Offsets:
    """CorruptCheckpoint if a line is none; an empty file has no offsets."""
    offsets: Offsets = {}
    for line in read_lines(content) if content else ():
        entry = parse_offset(line)
        if entry is None:
            raise CorruptCheckpoint(f"line {line!r}")
        offsets[entry[0]] = entry[1]
    return offsets


def parse_offset(line: str) -> tuple[TopicPartition, int] | None:
    """Partition and offset; None if the line says something else."""
    fields = line.split(" ")
    if len(fields) != 3 or not fields[1].isdecimal() or not fields[2].isdecimal():
        return None
    return TopicPartition(fields[0], int(fields[1])), int(fields[2])


def parse_leader_epoch(line: str) -> tuple[int, int] | None:
    """Leader epoch and start offset; None if the line says something else."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdecimal() for field in fields):
        return None
    return int(fields[0]), int(fields[1])
