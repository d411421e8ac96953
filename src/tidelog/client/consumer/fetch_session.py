"""Fetch sessions (KIP-227), the reader's side: requests name only what changed.

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


class PartitionFetch(NamedTuple):
    """What a session fetches of one partition."""

    topic_id: bytes | None
    offset: int
    leader_epoch: int | None
    bytes_max: int


class FetchSessionRequest(NamedTuple):
    """One request: the session's numbers, the partitions that are new, and those no longer read."""

    session_id: int
    session_number: int
    partitions: dict[TopicPartition, PartitionFetch]
    forgotten: list[tuple[TopicPartition, bytes | None]]


class FetchSessionHandler:
    """One broker's session."""

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._next_number = _FIRST
        self.partitions: dict[TopicPartition, PartitionFetch] = {}
        """What the broker takes the session to be, once it has got the last request."""

    def request(self, wanted: dict[TopicPartition, PartitionFetch]) -> FetchSessionRequest:
        if self._next_number == _FIRST:
            self.partitions = dict(wanted)
            return FetchSessionRequest(self._session_id, _FIRST, dict(wanted), [])
        known = self.partitions
        changed = {name: each for name, each in wanted.items() if known.get(name) != each}
        forgotten = [
            (each, had.topic_id)
            for each, had in known.items()
            if each not in wanted or wanted[each].topic_id != had.topic_id
        ]
        self.partitions = dict(wanted)
        return FetchSessionRequest(self._session_id, self._next_number, changed, forgotten)

    def on_answer(self, request: FetchSessionRequest, *, error: ErrorCode, session_id: int) -> bool:
        """Returns False if the answer is unusable: then the next request starts a new session."""
        if error != ErrorCode.NONE:
            forgets = error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._restart(NO_SESSION if forgets else self._session_id)
            return False
        if session_id == NO_SESSION:
            self._restart(NO_SESSION)
        else:
            self._session_id = session_id
            self._next_number = request.session_number % INT32_MAX + 1
        return True

    def on_no_answer(self) -> None:
        self._restart(self._session_id)

    def closing(self) -> FetchSessionRequest | None:
        """The request that ends it; None if there is none to be ended."""
        if self._session_id == NO_SESSION:
            return None
        return FetchSessionRequest(self._session_id, FINAL_SESSION_EPOCH, {}, [])

    def _restart(self, session_id: int) -> None:
        """A full request with the old id closes the old session on the way."""
        self._session_id = session_id
        self._next_number = _FIRST
