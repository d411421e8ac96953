"""Log lines: what the core and the shell emit as values becomes lines on standard error.

As text (`time LEVEL Event key=value ...`) for people, or as one JSON object per line for machines.
Those are given the monotonic clock, too (`at_us`): the lines of all processes of one machine can be
put in order, whatever happens to the wall clock. Events that a stranger can cause at will are
limited per second, and what was left out is counted.
"""

from __future__ import annotations

import json
import os
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum

LEVELS = ("debug", "info", "warning", "error")

_LEVEL_OF = {
    "ConnectionOpened": "debug",
    "ConnectionClosed": "debug",
    "LinkOpened": "debug",
    "LinkClosed": "debug",
    "PartitionCreated": "debug",
    "PartitionChanged": "debug",
    "SegmentRolled": "debug",
    "ProducersExpired": "debug",
    "ConnectionFailed": "warning",
    "LinkNotAuthenticated": "warning",
    "PeerNotAuthenticated": "warning",
    "ConnectionDropped": "warning",
    "ConnectionRefused": "warning",
    "SocketTrouble": "warning",
    "TailCut": "warning",
    "SegmentDropped": "warning",
    "FileDiscarded": "warning",
    "LogFailed": "error",
    "DirectoryOffline": "error",
    "LogDirectoryFailed": "error",
    "NodeHalted": "error",
    "BrokerFailed": "error",
}
"""How loud an event is, by its name; others are information."""

_ID_BYTES = 16
_LINES_PER_SECOND_MAX = 50
_LIMITED = frozenset(
    {
        "ConnectionFailed",
        "ConnectionDropped",
        "ConnectionRefused",
        "PeerNotAuthenticated",
        "SocketTrouble",
    }
)


def to_standard_error(line: str) -> None:
    """A log that nobody takes (a closed pipe, a full disk) must not stop the broker."""
    with suppress(OSError):
        os.write(2, line.encode("utf-8", "backslashreplace"))


class LogLines:
    """A Trace that writes."""

    def __init__(
        self,
        *,
        form: str = "text",
        level: str = "info",
        write: Callable[[str], None] = to_standard_error,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._write = write
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._line = self._json_line if form == "json" else _text_line
        self._lowest = LEVELS.index(level)
        self._second = 0
        self._counts: dict[str, int] = {}

    def emit(self, event: object) -> None:
        name = type(event).__name__
        level = _LEVEL_OF.get(name, "info")
        if LEVELS.index(level) < self._lowest:
            return
        wall_ns = self._wall_ns()
        if name in _LIMITED and self._is_too_much(name, wall_ns):
            return
        self._write(self._line(wall_ns, level, name, dict(_values(event))))

    def say(self, level: str, name: str, **values: object) -> None:
        """A line without an event type of its own."""
        if LEVELS.index(level) >= self._lowest:
            self._write(self._line(self._wall_ns(), level, name, values))

    def _json_line(self, wall_ns: int, level: str, name: str, values: dict[str, object]) -> str:
        head = {
            "time": _timestamp(wall_ns),
            "at_us": self._monotonic_ns() // 1_000,
            "level": level,
            "event": name,
        }
        return json.dumps(head | {key: _plain(value) for key, value in values.items()}) + "\n"

    def _is_too_much(self, name: str, wall_ns: int) -> bool:
        second = wall_ns // 1_000_000_000
        if second != self._second:
            self._second = second
            counts, self._counts = self._counts, {}
            for limited, count in counts.items():
                if count > _LINES_PER_SECOND_MAX:
                    left_out = count - _LINES_PER_SECOND_MAX
                    self.say("warning", "LinesLeftOut", event=limited, count=left_out)
        self._counts[name] = count = self._counts.get(name, 0) + 1
        return count > _LINES_PER_SECOND_MAX


def _values(event: object) -> Iterator[tuple[str, object]]:
    if is_dataclass(event):
        names = [field.name for field in fields(event)]
    else:
        names = list(getattr(event, "_fields", ()))
    if not names:
        yield "value", event
    for name in names:
        yield name, getattr(event, name)


def _timestamp(wall_ns: int) -> str:
    seconds, rest = divmod(wall_ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1_000_000:03d}Z"


def _text_line(wall_ns: int, level: str, name: str, values: dict[str, object]) -> str:
    pairs = "".join(f" {key}={_text(value)}" for key, value in values.items())
    return f"{_timestamp(wall_ns)} {level.upper():7} {name}{pairs}\n"


def _text(value: object) -> str:
    """Bare where that is clear; otherwise as JSON, so that one event is one line."""
    text = _plain(value)
    if not isinstance(text, str):
        return json.dumps(text)
    is_bare = text and text.isprintable() and not any(letter in ' "=\\' for letter in text)
    return text if is_bare else json.dumps(text)


def _id_text(value: bytes) -> str:
    """As Kafka shows ids to people."""
    return urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def _plain(value: object) -> object:
    """What JSON can say; other values as their text."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return _id_text(value) if len(value) == _ID_BYTES else value.hex()
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset | set):
        return sorted(str(item) for item in value)
    return str(value)
