"""The links over which this broker follows: one per leader, for all partitions that it copies.

There is one fetch under way at a time, by an incremental session (KIP-227): a request mentions only
the partitions whose offsets moved. Its answer is appended at once, and the next request, which
acknowledges it, leaves in the same tick; where a record must be synced before it counts
(`tidelog.fsync`), it leaves when all that was appended is synced.

A partition that is new to the session does not wait for that: a second request mentions it, and the
leader answers the first one at once. Otherwise the first `acks=all` write to a new partition would
wait until the fetch that was under way when it was made has waited long enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.copying import Copy, Key
from tidelog.core.node.fetch.fetch_sessions import INITIAL, NO_SESSION, next_session_epoch
from tidelog.core.node.metadata import cluster_view
from tidelog.core.replication import events
from tidelog.core.replication.follower import back_off_ms
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.fetch_fast import FetchedPartition
from tidelog.core.wire.fetch_follower import FetchAnswer, decode_fetch_answer, encode_fetch_call
from tidelog.core.wire.links import Link, NoAnswer

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

FETCH = 1
FETCH_VERSION = 18
UNKNOWN_BROKER_EPOCH = -1

_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_ENDED = ("closed", "reset")
"""By the other side, after it was open."""


class FollowerLinks:
    """All links. Invariant: a partition is copied over at most one of them."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._links: dict[int, FollowerLink] = {}
        self.awake: dict[FollowerLink, None] = {}

    def follow(self, partition: Partition) -> None:
        """A new leader epoch: begin to copy from whoever leads now, if anybody does."""
        self.forget(partition)
        leader_id = partition.leader_id
        if leader_id is None:
            return
        link = self._links.get(leader_id)
        if link is None:
            link = self._links[leader_id] = FollowerLink(self._node, self, leader_id)
        link.add(Copy(self._node, link, partition))

    def forget(self, partition: Partition) -> None:
        copy = partition.copier
        partition.copier = None
        if isinstance(copy, Copy):
            copy.link.remove(copy)

    def wake(self, link: FollowerLink) -> None:
        """It has something to send at the end of the tick."""
        self.awake[link] = None

    def settle(self, now_ms: int) -> None:
        """At the end of each tick, after the partitions."""
        while self.awake:
            awake, self.awake = self.awake, {}
            for link in awake:
                link.settle(now_ms)

    def leaders(self) -> list[int]:
        """Whom this broker follows."""
        return sorted(leader_id for leader_id, link in self._links.items() if link.copies)

    def check(self) -> None:
        for link in self._links.values():
            link.check()


class FollowerLink:
    """One leader. Invariant: its session has what is in `watched` and `forgotten`, no more."""

    def __init__(self, node: Node, links: FollowerLinks, leader_id: int) -> None:
        self._node = node
        self._links = links
        self.leader_id = leader_id
        self.copies: dict[Key, Copy] = {}
        self.watched: dict[Key, Copy] = {}
        """What the leader's session holds, as far as it was asked for."""
        self.forgotten: dict[Key, None] = {}
        """What it holds, too, and shall drop."""
        self.changed: dict[Copy, None] = {}
        """To be mentioned in the next request."""
        self.unsynced: dict[Copy, None] = {}
        """Nothing is asked before these are on disk."""
        self._link: Link | None = None
        self._address: tuple[str, int] | None = None
        self._session_id = NO_SESSION
        self._session_epoch = INITIAL
        self._unanswered = 0
        self._nudged: set[Key] = set()
        """What the newer of two requests under way mentions: of that, the older's answer is old."""
        self._failures = 0
        self._pause: Alarm | None = None

    @property
    def link(self) -> Link | None:
        """For questions beside the fetches."""
        return self._link

    def add(self, copy: Copy) -> None:
        assert copy.key not in self.copies, "copied once"
        self.copies[copy.key] = copy
        copy.partition.copier = copy
        # A new leader epoch says that the leader lives: no reason to wait any longer.
        self._failures = 0
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        copy.ask()

    def remove(self, copy: Copy) -> None:
        if self.copies.get(copy.key) is copy:
            del self.copies[copy.key]
        self.hush(copy)
        copy.end()

    def hush(self, copy: Copy) -> None:
        """Do not ask for this one for the time being."""
        if self.watched.get(copy.key) is copy:
            del self.watched[copy.key]
            self.forgotten[copy.key] = None
        self.changed.pop(copy, None)
        self.unsynced.pop(copy, None)
        self._links.wake(self)

    def mention(self, copy: Copy) -> None:
        """Its offsets moved, or it may be asked for again."""
        self.changed[copy] = None
        self._links.wake(self)

    def wait_for_sync(self, copy: Copy) -> None:
        self.unsynced[copy] = None

    def on_synced(self, copy: Copy) -> None:
        if self.unsynced.pop(copy, self) is None:
            self.mention(copy)

    # Asking

    def settle(self, now_ms: int) -> None:
        if self._pause is not None or (self._unanswered and not self._may_nudge()):
            return
        if not self.copies:
            self.close()
            return
        if self.unsynced or not any(copy.is_asking for copy in self.copies.values()):
            return
        self._ask(now_ms)

    def _may_nudge(self) -> bool:
        """The leader waits for data, and its session lacks a partition that we ask for."""
        return (
            self._unanswered == 1
            and self._session_epoch != INITIAL
            and any(each.is_asking and each.key not in self.watched for each in self.changed)
        )

    def _ask(self, now_ms: int) -> None:
        node = self._node
        broker_epoch = node.replica_manager.broker_epoch()
        link = self._open()
        if link is None or broker_epoch is None:
            self._fail("where the leader is, or who we are, is not known yet", now_ms)
            return
        if self._session_epoch == INITIAL:
            self.watched = {}
            self.forgotten = {}
            self.changed = {copy: None for copy in self.copies.values() if copy.is_asking}
        mentioned = self._mentioned()
        self._nudged = (
            {
                (topic, each.partition_index)
                for topic, partitions in mentioned
                for each in partitions
            }
            if self._unanswered
            else set()
        )
        body = encode_fetch_call(
            mentioned,
            FETCH_VERSION,
            replica_id=node.settings.node_id,
            replica_epoch=broker_epoch,
            wait_ms_max=node.settings.integer("replica.fetch.wait.max.ms"),
            bytes_min=node.settings.integer("replica.fetch.min.bytes"),
            bytes_max=node.settings.integer("replica.fetch.response.max.bytes"),
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            forgotten=self._forgotten(),
        )
        if self._session_epoch != INITIAL:
            self._session_epoch = next_session_epoch(self._session_epoch)
        self._unanswered += 1
        timeout_ms = node.settings.integer("replica.socket.timeout.ms")
        link.ask_raw(
            FETCH, FETCH_VERSION, bytes(body), self._on_body, timeout_ms=timeout_ms, now_ms=now_ms
        )

    def _forgotten(self) -> list[tuple[bytes, list[int]]]:
        """What the session watches although nobody asks for it any more."""
        topics: dict[bytes, list[int]] = {}
        for topic_id, index in self.forgotten:
            topics.setdefault(topic_id, []).append(index)
        self.forgotten.clear()
        return list(topics.items())

    def _mentioned(self) -> list[tuple[bytes, list[FetchedPartition]]]:
        topics: dict[bytes, list[FetchedPartition]] = {}
        bytes_max = self._node.settings.integer("replica.fetch.max.bytes")
        for copy in self.changed:
            if copy.is_asking:
                topics.setdefault(copy.key[0], []).append(copy.wanted(bytes_max))
                self.watched[copy.key] = copy
                self.forgotten.pop(copy.key, None)
        self.changed.clear()
        return list(topics.items())

    def _open(self) -> Link | None:
        """The link, opened anew if the leader has moved or the former one has ended."""
        broker = self._node.image.brokers.get(self.leader_id)
        if broker is None:
            return None
        endpoint = cluster_view.address(broker)
        address = endpoint.host, endpoint.port
        if self._link is not None and self._address != address:
            self.close()
        if self._link is None:
            self._address = address
            self._link = self._node.links.open(*address, "replica", on_closed=self._on_closed)
        return self._link

    # Answers

    def _on_body(self, body: memoryview | NoAnswer, now_ms: int) -> None:
        if isinstance(body, NoAnswer):
            return  # the link has ended, and says so itself
        self._unanswered -= 1
        self._links.wake(self)
        answer = decode_fetch_answer(body, FETCH_VERSION)
        if answer.error_code != ErrorCode.NONE:
            self._on_refused(answer.error_code, now_ms)
            return
        self._failures = 0
        self._session_id = answer.session_id
        if answer.session_id == NO_SESSION:
            self._session_epoch = INITIAL
        elif self._session_epoch == INITIAL:
            self._session_epoch = next_session_epoch(INITIAL)
        self._take(answer, now_ms)

    def _take(self, answer: FetchAnswer, now_ms: int) -> None:
        for topic_id, partitions in answer.topics:
            for found in partitions:
                key = (topic_id, found.partition_index)
                if self._unanswered and key in self._nudged:
                    continue
                copy = self.watched.get(key)
                if copy is not None and self.copies.get(copy.key) is copy:
                    copy.take(found, now_ms)

    def _on_refused(self, code: int, now_ms: int) -> None:
        """A leader that restarted has forgotten the session: begin another, at once if we may."""
        self._reset_session()
        if code in _SESSION_ERRORS and not self._failures:
            self._failures = 1
        else:
            self._fail(f"fetch refused with {code}", now_ms)

    def _on_closed(self, reason: str, now_ms: int) -> None:
        if reason in _ENDED:
            self._node.recent_departures.on_connection_lost(self.leader_id, now_ms)
        self._link = None
        self._unanswered = 0
        self._reset_session()
        for copy in list(self.copies.values()):
            copy.on_link_closed()
        self._fail(reason, now_ms)

    def _fail(self, reason: str, now_ms: int) -> None:
        """Leave the leader alone for a while."""
        if self._pause is not None or not self.copies:
            return
        self._failures += 1
        at_most_ms = self._node.settings.integer("replica.fetch.backoff.ms")
        wait_ms = back_off_ms(self._failures, at_most_ms=at_most_ms)
        self._pause = self._node.alarms.at(now_ms + wait_ms, self._go_on)
        self._node.trace.emit(
            events.FollowerBackedOff(
                broker_id=self._node.settings.node_id,
                leader_id=self.leader_id,
                partition=None,
                reason=reason,
                wait_ms=wait_ms,
            )
        )

    def _go_on(self, now_ms: int) -> None:
        self._pause = None
        self._links.wake(self)

    def _reset_session(self) -> None:
        """Begin anew; the former id is told once more, so that the leader can drop that session."""
        self._session_epoch = INITIAL

    def close(self) -> None:
        """Nobody is copied from this leader any more, or it has moved."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
        self._unanswered = 0
        self._reset_session()
        for copy in list(self.copies.values()):
            copy.on_link_closed()

    def check(self) -> None:
        for key, copy in self.copies.items():
            assert copy.key == key and copy.partition.copier is copy, copy.partition.topic_partition
            assert copy.partition.leader_id == self.leader_id, copy.partition.topic_partition
        assert not set(self.watched) & set(self.forgotten)
