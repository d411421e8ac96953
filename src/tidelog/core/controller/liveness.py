"""Who is alive: sessions that end after silence, and how far each broker has read the metadata.

This is not metadata. A controller keeps it while it is active and its successor begins anew, with
a full session for everybody. Time is monotonic and comes in with every call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidelog.core.metadata.cluster import RegisteredBroker


@dataclass(slots=True, kw_only=True)
class Session:
    """One registration of a broker that has been heard of."""

    broker_id: int
    broker_epoch: int
    contact_ms: int
    metadata_end_offset: int = 0
    leaves_at_offset: int | None = None
    """Leaving: it may go when every active broker has read the metadata up to here."""
    is_heard: bool = False
    """Was it heard by us, and is the connection still open? Our own process is always heard."""
    connection: int | None = None


class Sessions:
    """Invariant: at most one session per broker, that of its newest registration."""

    def __init__(self, *, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._sessions: dict[int, Session] = {}

    def start(self, brokers: Iterable[RegisteredBroker], *, now_ms: int) -> None:
        """We have just become active: whoever is not fenced gets a full session."""
        self._sessions = {
            broker.broker_id: Session(
                broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, contact_ms=now_ms
            )
            for broker in brokers
            if not broker.is_fenced
        }

    def __len__(self) -> int:
        return len(self._sessions)

    def clear(self) -> None:
        self._sessions.clear()

    def get(self, broker_id: int) -> Session | None:
        return self._sessions.get(broker_id)

    def touch(
        self, broker_id: int, broker_epoch: int, *, connection: int | None, now_ms: int
    ) -> Session:
        """The broker was heard of."""
        session = self._sessions.get(broker_id)
        if session is None or session.broker_epoch != broker_epoch:
            session = Session(broker_id=broker_id, broker_epoch=broker_epoch, contact_ms=now_ms)
            self._sessions[broker_id] = session
        session.contact_ms = now_ms
        session.is_heard = True
        session.connection = connection
        return session

    def end(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def is_valid(self, broker: RegisteredBroker, *, now_ms: int) -> bool:
        """May the process of this registration be alive?"""
        session = self._sessions.get(broker.broker_id)
        return (
            session is not None
            and session.broker_epoch == broker.broker_epoch
            and now_ms < self._deadline_ms(session)
        )

    def has_connection(self, broker: RegisteredBroker) -> bool:
        """Would we notice if the process of this registration closed its connections?"""
        session = self._sessions.get(broker.broker_id)
        return (
            session is not None
            and session.broker_epoch == broker.broker_epoch
            and (session.is_heard or session.connection is not None)
        )

    def prolong(self, now_ms: int) -> None:
        """Nobody could be heard for a while: everybody gets a full session."""
        for session in self._sessions.values():
            session.contact_ms = now_ms

    def take_expired(self, now_ms: int) -> list[Session]:
        """Those that have ended by now; nobody hears of them again."""
        expired = [s for s in self._sessions.values() if now_ms >= self._deadline_ms(s)]
        for session in expired:
            del self._sessions[session.broker_id]
        return sorted(expired, key=lambda s: (s.contact_ms, s.broker_id))

    def next_deadline_ms(self) -> int | None:
        return min(map(self._deadline_ms, self._sessions.values()), default=None)

    def on_connection_closed(self, connection: int) -> list[Session]:
        """The brokers that were heard on it."""
        closed = [s for s in self._sessions.values() if s.connection == connection]
        for session in closed:
            session.is_heard = False
            session.connection = None
        return closed

    def read_by_all(self, brokers: Iterable[RegisteredBroker]) -> int | None:
        """How far the slowest of the active brokers has read; None: there is none."""
        ends = [
            session.metadata_end_offset
            for broker in brokers
            if broker.is_active
            and (session := self._sessions.get(broker.broker_id)) is not None
            and session.leaves_at_offset is None
        ]
        return min(ends, default=None)

    def _deadline_ms(self, session: Session) -> int:
        return session.contact_ms + self._timeout_ms
