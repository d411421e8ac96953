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

from tidelog.core.wire.codec import decode
from tidelog.core.wire.headers import read_request_header, read_response_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Message
from tidelog.lab.engine import Host, RequestSeen
from tidelog.lab.engines.line_tail import JsonTail

_NODE = "node-"
"""Nodes call themselves so in the headers of their requests."""


class Exchange:
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
        return RequestSeen(
            at_us=story_us(self.asked_us),
            peer=self.peer,
            api_key=self.api_key,
            version=int(self._request["version"]),
            request=self._decoded_request(),
            answer=None if answer is None else self._decoded_answer(answer),
            answered_us=None if answer is None else story_us(int(answer["at_us"])),
        )

    def _decoded_request(self) -> Message:
        view = memoryview(base64.b64decode(self._request["frame"]))
        header = read_request_header(view)
        kind = MESSAGES[header.api_key][0]
        return decode(kind, view, header.api_version, header.body_position)

    def _decoded_answer(self, answer: dict[str, Any]) -> Message:
        view = memoryview(base64.b64decode(answer["frame"]))
        version = int(self._request["version"])
        _, position = read_response_header(view, self.api_key, version)
        return decode(MESSAGES[self.api_key][1], view, version, position)


class RequestJournal:
    """Everything that one node was asked, over all its lives."""

    def __init__(self, path: Path, *, story_us: Callable[[int], int]) -> None:
        self.path = path
        self._tail = JsonTail(path)
        self._story_us = story_us
        self._exchanges: list[Exchange] = []
        self._open: dict[tuple[int, int], Exchange] = {}

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
            self._open[key] = exchange = Exchange(line)
            self._exchanges.append(exchange)
        elif key in self._open:
            self._open.pop(key).answered(line)
