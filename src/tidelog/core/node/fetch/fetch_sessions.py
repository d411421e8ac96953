"""Incremental fetch sessions (KIP-227): what each client watches, so that it need not say it again.

A session's `pending` holds the partitions to look at for the next answer: those that the client
just moved, and those that changed since they were last answered. A quiet partition costs nothing,
however many of them a session has.
"""

from __future__ import annotations

from collections import OrderedDict
from random import Random
from typing import TYPE_CHECKING, Protocol

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.node.connections.request import ParkedForData
from tidelog.core.node.connections.request_timeouts import RequestTimeouts
from tidelog.core.node.replicas.isr_changes import IsrChanges
from tidelog.core.node.replicas.partition_lookup import PartitionHost
from tidelog.core.node.replicas.replica_selector import ReplicaSelector
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.log import Log
from tidelog.core.wire.fast_fields import Topic
from tidelog.core.wire.fetch_fast import FetchCall, FetchedPartition
from tidelog.core.wire.sentinels import (
    FINAL_SESSION_EPOCH,
    INITIAL_SESSION_EPOCH,
    NO_SESSION,
    next_session_epoch,
)

if TYPE_CHECKING:
    from tidelog.core.node.fetch.fetch_answers import ParkedFetch

RACKS_FROM = 11
TOPIC_IDS_FROM = 13


class FetchHost(PartitionHost, Protocol):
    """What the serving of Fetch uses of its broker."""

    fetch_bytes_max: int
    dirty_fetches: list[ParkedForData]
    """Assembled again at the end of the tick."""
    fetch_sessions: FetchSessions
    timeouts: RequestTimeouts
    isr_changes: IsrChanges
    replica_selector: ReplicaSelector | None
    held_replicas: frozenset[tuple[int, TopicPartition]]
    """A fault for tests: followers that get nothing of a partition."""

    def touch(self, partition: Partition, /) -> None:
        """Settle it at the end of the tick."""

    def on_log_failed(self, log: Log, /) -> None: ...


class SessionPartition:
    """One partition of one session: where its client reads, and what it was last sent."""

    __slots__ = (
        "call",
        "fences",
        "partition",
        "session",
        "sent_high_watermark",
        "sent_log_start",
        "topic",
    )

    def __init__(self, session: FetchSession, topic: Topic, call: FetchedPartition) -> None:
        self.session = session
        self.topic = topic
        self.call = call
        self.partition: Partition | None = None
        self.sent_high_watermark: int | None = None
        self.sent_log_start: int | None = None
        self.fences = Fences(self) if session.is_follower else None

    def on_partition_changed(self) -> None:
        session = self.session
        session.pending[self] = None
        if session.parked is not None:
            session.parked.on_data()

    def on_isr_changed(self) -> None:
        """Whether it is outside is seen when its next request comes."""
        self.session.outsiders[self] = None

    def watch(self, partition: Partition | None) -> None:
        if partition is not self.partition:
            self.unwatch()
            self.partition = partition
        if partition is not None:
            if self.fences is not None:
                partition.follower_watchers[self] = None
                partition.watchers[self.fences] = None
            else:
                partition.watchers[self] = None

    def unwatch(self) -> None:
        if self.partition is not None:
            self.partition.watchers.pop(self, None)
            if self.fences is not None:
                self.partition.watchers.pop(self.fences, None)
                self.partition.follower_watchers.pop(self, None)


class Fences:
    """A follower hears of a moved high watermark with its next answer, and is not woken for it.

    At once only if clients read from followers: otherwise it would double the number of fetches.
    """

    __slots__ = ("_entry",)

    def __init__(self, entry: SessionPartition) -> None:
        self._entry = entry

    def on_partition_changed(self) -> None:
        session = self._entry.session
        session.pending[self._entry] = None
        if session.parked is not None and session.parked.node.replica_selector is not None:
            session.parked.on_data()


class FetchSession:
    """Invariant: every entry that its client does not know yet is in `pending`."""

    __slots__ = (
        "entries",
        "id",
        "is_follower",
        "may_read_from_followers",
        "next_session_epoch",
        "outsiders",
        "parked",
        "pending",
        "sends_all",
        "used_at_ms",
        "uses_topic_ids",
        "wants_id",
    )

    def __init__(
        self,
        *,
        version: int,
        wants_id: bool = False,
        is_follower: bool = False,
    ) -> None:
        self.id = NO_SESSION
        self.is_follower = is_follower
        self.may_read_from_followers = version >= RACKS_FROM
        """Only a client that can be sent to a follower may read from one."""
        self.wants_id = wants_id
        self.next_session_epoch = 1
        self.uses_topic_ids = version >= TOPIC_IDS_FROM
        self.entries: dict[tuple[Topic, int], SessionPartition] = {}
        self.pending: dict[SessionPartition, None] = {}
        self.outsiders: dict[SessionPartition, None] = {}
        """Where a follower is not in sync: each of its requests asks anew to be let in."""
        self.parked: ParkedFetch | None = None
        self.sends_all = True
        self.used_at_ms = 0

    def update(self, call: FetchCall) -> None:
        """Take over what the client sent; what it did not name stays as it was."""
        for topic, partitions in call.topics:
            for partition in partitions:
                key = (topic, partition.partition_index)
                entry = self.entries.get(key)
                if entry is None:
                    entry = self.entries[key] = SessionPartition(self, topic, partition)
                else:
                    if (
                        self.is_follower
                        or entry.call.current_leader_epoch != partition.current_leader_epoch
                    ):
                        entry.sent_high_watermark = None  # an answer before may not have counted
                    entry.call = partition
                self.pending[entry] = None
        for topic, indexes in call.forgotten:
            for index in indexes:
                entry = self.entries.pop((topic, index), None)
                if entry is not None:
                    self.pending.pop(entry, None)
                    self.outsiders.pop(entry, None)
                    entry.unwatch()

    def close(self) -> None:
        for entry in self.entries.values():
            entry.unwatch()
        self.entries.clear()
        self.pending.clear()
        self.outsiders.clear()

    def check(self) -> None:
        assert all(entry.session is self for entry in self.entries.values())
        assert set(self.pending) <= set(self.entries.values()), "pending but not watched"


class FetchSessions:
    """The bounded cache of sessions, least recently used first."""

    def __init__(self, *, slots: int, evict_after_ms: int, random: Random) -> None:
        self._slots = slots
        self._evict_after_ms = evict_after_ms
        self._random = random
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def context(self, call: FetchCall, version: int, now_ms: int) -> FetchSession | ErrorCode:
        """The session that this request is about, updated; or why there is none."""
        if call.session_epoch in (INITIAL_SESSION_EPOCH, FINAL_SESSION_EPOCH):
            self.remove(call.session_id)
            session = FetchSession(
                version=version,
                wants_id=call.session_epoch == INITIAL_SESSION_EPOCH,
                is_follower=call.replica_id >= 0,
            )
            session.used_at_ms = now_ms
            session.update(call)
            return session
        found = self._sessions.get(call.session_id)
        if found is None or found.is_follower != (call.replica_id >= 0):
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND  # a reader never reads as a follower
        if found.next_session_epoch != call.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if found.uses_topic_ids != (version >= TOPIC_IDS_FROM):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        found.update(call)
        if not found.entries:
            self.remove(found.id)
            return FetchSession(version=version, is_follower=found.is_follower)
        found.next_session_epoch = next_session_epoch(found.next_session_epoch)
        found.used_at_ms = now_ms
        self._sessions.move_to_end(found.id)
        return found

    def keep(self, session: FetchSession, now_ms: int) -> None:
        """Give a new session an id, if there is room or someone idle to make room.

        A follower has the right of way: without a session it would name all its partitions in
        every request.
        """
        session.wants_id = False
        if len(self._sessions) >= self._slots and not (
            self._evict_one(now_ms) or (session.is_follower and self._evict_a_client())
        ):
            return
        session_id = self._random.randrange(1, 2**31)
        while session_id in self._sessions:
            session_id = self._random.randrange(1, 2**31)
        session.id = session_id
        session.used_at_ms = now_ms
        self._sessions[session_id] = session

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None and session.parked is None:
            session.close()
        elif session is not None:
            session.id = NO_SESSION

    def _evict_one(self, now_ms: int) -> bool:
        for session_id, session in self._sessions.items():
            if session.parked is None and now_ms - session.used_at_ms > self._evict_after_ms:
                self.remove(session_id)
                return True
            return False
        return False

    def _evict_a_client(self) -> bool:
        for session_id, session in self._sessions.items():
            if session.parked is None and not session.is_follower:
                self.remove(session_id)
                return True
        return False

    def check(self) -> None:
        assert len(self._sessions) <= self._slots
        for session_id, session in self._sessions.items():
            assert session.id == session_id
            session.check()
