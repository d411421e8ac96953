"""Fetch sessions (KIP-227), the reader's side: a broker is told only what changed.

The session's number counts requests. Any doubt, on either side, begins a new session with a request
that names every partition.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.limits import INT32_MAX
from tidelog.core.wire.sentinels import FINAL_SESSION_EPOCH

NO_SESSION = 0
_FIRST = 0


class FetchedPartition(NamedTuple):
    """What is wanted of one partition."""

    topic_id: bytes | None
    offset: int
    leader_epoch: int | None
    bytes_max: int


class FetchSessionRequest(NamedTuple):
    """One request: the session's numbers, what is new, and what is wanted no more."""

    session_id: int
    session_number: int
    wanted: dict[TopicPartition, FetchedPartition]
    forgotten: list[tuple[TopicPartition, bytes | None]]


class FetchSessionHandler:
    """One broker's session."""

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._next_number = _FIRST
        self.partitions: dict[TopicPartition, FetchedPartition] = {}
        """What the broker believes that we want, once it has got the last request."""

    def ask(self, wanted: dict[TopicPartition, FetchedPartition]) -> FetchSessionRequest:
        if self._next_number == _FIRST:
            self.partitions = dict(wanted)
            return FetchSessionRequest(self._session_id, _FIRST, dict(wanted), [])
        known = self.partitions
        changed = {each: want for each, want in wanted.items() if known.get(each) != want}
        forgotten = [
            (each, had.topic_id)
            for each, had in known.items()
            if each not in wanted or wanted[each].topic_id != had.topic_id
        ]
        self.partitions = dict(wanted)
        return FetchSessionRequest(self._session_id, self._next_number, changed, forgotten)

    def on_answer(self, asked: FetchSessionRequest, *, error: ErrorCode, session_id: int) -> bool:
        """False: the answer says nothing, and the next request begins anew."""
        if error != ErrorCode.NONE:
            forgets = error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._begin_anew(NO_SESSION if forgets else self._session_id)
            return False
        if session_id == NO_SESSION:
            self._begin_anew(NO_SESSION)
        else:
            self._session_id = session_id
            self._next_number = asked.session_number % INT32_MAX + 1
        return True

    def on_no_answer(self) -> None:
        self._begin_anew(self._session_id)

    def closing(self) -> FetchSessionRequest | None:
        """The request that ends it; None if there is none to be ended."""
        if self._session_id == NO_SESSION:
            return None
        return FetchSessionRequest(self._session_id, FINAL_SESSION_EPOCH, {}, [])

    def _begin_anew(self, session_id: int) -> None:
        """A full request with the old id closes the old session on the way."""
        self._session_id = session_id
        self._next_number = _FIRST
