"""What broker processes write while a story runs, read back: their logs, and their gates' journals.

A log has one JSON line for each event, a journal one for each request and each answer. An answer
belongs to the last request with its correlation id on its connection, so a node's new life, which
counts its connections anew, confuses nothing. Frames are decoded when they are read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tidelog.core.wire.exchange import decode_request, decode_response
from tidelog.lab.engine import Happening, Host, RequestSeen

_HEAD = ("time", "at_us", "level", "event")
_NODE = "node-"
"""Nodes call themselves so in the headers of their requests."""


class JsonTail:
    """The JSON lines that another process adds to a file, each given once and only when complete.

    What is no JSON object (a traceback) is left out.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._unfinished = b""

    def new_objects(self) -> Iterator[dict[str, Any]]:
        """Everything that was added since the last time."""
        for line in self._new_lines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found

    def _new_lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                added = file.read()
        except FileNotFoundError:
            return []
        self._position += len(added)
        *lines, self._unfinished = (self._unfinished + added).split(b"\n")
        return lines


class BrokerLog:
    """The log of one node over all its lives."""

    def __init__(self, path: Path, *, story_us: Callable[[int], int]) -> None:
        self._tail = JsonTail(path)
        self._story_us = story_us
        self._by_kind: dict[str, list[Happening]] = {}

    def of(self, kind: str) -> list[Happening]:
        """All events of one kind so far, oldest first."""
        for line in self._tail.new_objects():
            name, at_us = line.get("event"), line.get("at_us")
            if isinstance(name, str) and isinstance(at_us, int):
                fields = {key: _frozen(value) for key, value in line.items() if key not in _HEAD}
                happening = Happening(self._story_us(at_us), name, fields)
                self._by_kind.setdefault(name, []).append(happening)
        return list(self._by_kind.get(kind, ()))


def _frozen(value: Any) -> Any:
    """The core's events have tuples where JSON has lists."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class JournalExchange:
    """One request and its answer, as lines until somebody wants to read them."""

    __slots__ = ("_answer", "_request")

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request
        self._answer: dict[str, Any] | None = None

    @property
    def api_key(self) -> int:
        return int(self._request["api_key"])

    @property
    def peer(self) -> Host:
        client_id = str(self._request["client_id"] or "")
        number = client_id.removeprefix(_NODE)
        return int(number) if number != client_id and number.isdecimal() else client_id

    @property
    def sent_us(self) -> int:
        return int(self._request["at_us"])

    def answered(self, answer: dict[str, Any]) -> None:
        self._answer = answer

    def seen(self, story_us: Callable[[int], int]) -> RequestSeen:
        answer = self._answer
        version = int(self._request["version"])
        return RequestSeen(
            at_us=story_us(self.sent_us),
            peer=self.peer,
            api_key=self.api_key,
            version=version,
            request=decode_request(base64.b64decode(self._request["frame"])),
            answer=None
            if answer is None
            else decode_response(base64.b64decode(answer["frame"]), self.api_key, version)[1],
            answered_us=None if answer is None else story_us(int(answer["at_us"])),
        )


class RequestJournal:
    """Everything that one node was asked, over all its lives."""

    def __init__(self, path: Path, *, story_us: Callable[[int], int]) -> None:
        self.path = path
        self._tail = JsonTail(path)
        self._story_us = story_us
        self._exchanges: list[JournalExchange] = []
        self._open: dict[tuple[int, int], JournalExchange] = {}

    def of(self, api_key: int, *, since_us: int, peer: Host | None) -> list[RequestSeen]:
        """Requests of one kind since a moment of the story, oldest first."""
        for line in self._tail.new_objects():
            self._take(line)
        return [
            each.seen(self._story_us)
            for each in self._exchanges
            if each.api_key == api_key
            and peer in (None, each.peer)
            and self._story_us(each.sent_us) >= since_us
        ]

    def _take(self, line: dict[str, Any]) -> None:
        key = (int(line["connection"]), int(line["correlation_id"]))
        if line["direction"] == "request":
            self._open[key] = exchange = JournalExchange(line)
            self._exchanges.append(exchange)
        elif key in self._open:
            self._open.pop(key).answered(line)
