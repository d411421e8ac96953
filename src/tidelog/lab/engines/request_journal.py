"""The journal of a node's fault gate, read back: what the node was asked, and what it answered.

One JSON line for each request and each answer. An answer belongs to the last request with its
correlation id on its connection, so a node's new life, which counts its connections anew, confuses
nobody. Frames are decoded when somebody looks at them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidelog.core.wire.exchange import decode_request, decode_response
from tidelog.lab.engine import Host, RequestSeen
from tidelog.lab.engines.line_tail import JsonTail

_NODE = "node-"
"""Nodes call themselves so in the headers of their requests."""


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
    def asked_us(self) -> int:
        return int(self._request["at_us"])

    def answered(self, answer: dict[str, Any]) -> None:
        self._answer = answer

    def seen(self, story_us: Callable[[int], int]) -> RequestSeen:
        answer = self._answer
        version = int(self._request["version"])
        return RequestSeen(
            at_us=story_us(self.asked_us),
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
            and self._story_us(each.asked_us) >= since_us
        ]

    def _take(self, line: dict[str, Any]) -> None:
        key = (int(line["connection"]), int(line["correlation_id"]))
        if line["direction"] == "request":
            self._open[key] = exchange = JournalExchange(line)
            self._exchanges.append(exchange)
        elif key in self._open:
            self._open.pop(key).answered(line)
