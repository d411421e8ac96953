"""The links over which a broker fetches as a follower: one per leader, for all its partitions.

There is one fetch under way at a time, by an incremental session (KIP-227): a request names only
the partitions whose offsets moved. Its answer is appended at once, and the next request, which
acknowledges it, leaves in the same tick; where a record must be synced before it counts
(`tidelog.fsync`), it leaves when all that was appended is synced.

A partition that is new to the session does not wait for that: a second request names it, and the
leader answers the first one at once. Otherwise the first `acks=all` write to a new partition would
wait until the fetch that was under way when it was made has waited long enough.
"""

from __future__ import annotations

from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication import events
from tidelog.core.replication.fetcher_port import FetcherPort
from tidelog.core.replication.follower import back_off_ms
from tidelog.core.replication.partition import Partition
from tidelog.core.replication.replica_fetcher import PartitionKey, ReplicaFetcher
from tidelog.core.wire.fetch_fast import FetchedPartition
from tidelog.core.wire.fetch_follower import FetchAnswer, decode_fetch_answer, encode_fetch_call
from tidelog.core.wire.links import Link, NoAnswer
from tidelog.core.wire.sentinels import INITIAL_SESSION_EPOCH, NO_SESSION, next_session_epoch

FETCH = 1
FETCH_VERSION = 18

_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_ENDED = ("closed", "reset")
"""By the other side, after it was open."""


class FetcherLinks:
    """All links. Invariant: a partition is fetched over at most one of them."""

    def __init__(self, port: FetcherPort) -> None:
        self._port = port
        self._links: dict[int, FetcherLink] = {}
        self.awake: dict[FetcherLink, None] = {}

    def follow(self, partition: Partition) -> None:
        """A new leader epoch: begin to fetch from whoever leads now, if anybody does."""
        self.forget(partition)
        leader_id = partition.leader_id
        if leader_id is None:
            return
        link = self._links.get(leader_id)
        if link is None:
            link = self._links[leader_id] = FetcherLink(self._port, self, leader_id)
        link.add(ReplicaFetcher(self._port, link, partition))

    def forget(self, partition: Partition) -> None:
        fetcher = partition.stop_fetching()
        if fetcher is not None:
            fetcher.link.remove(fetcher)

    def wake(self, link: FetcherLink) -> None:
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
        return sorted(leader_id for leader_id, link in self._links.items() if link.fetchers)

    def check(self) -> None:
        for link in self._links.values():
            link.check()


class FetcherLink:
    """One leader. Invariant: its session has what is in `in_session` and `forgotten`, no more."""

    def __init__(self, port: FetcherPort, links: FetcherLinks, leader_id: int) -> None:
        self._port = port
        self._links = links
        self.leader_id = leader_id
        self.fetchers: dict[PartitionKey, ReplicaFetcher] = {}
        self.in_session: dict[PartitionKey, ReplicaFetcher] = {}
        """What the leader's session holds, and answers are taken for."""
        self.forgotten: dict[PartitionKey, None] = {}
        """What it holds, too, and shall drop."""
        self.changed: dict[ReplicaFetcher, None] = {}
        """To be named in the next request."""
        self.unsynced: dict[ReplicaFetcher, None] = {}
        """Nothing is asked before these are on disk."""
        self._link: Link | None = None
        self._address: tuple[str, int] | None = None
        self._session_id = NO_SESSION
        self._session_epoch = INITIAL_SESSION_EPOCH
        self._unanswered = 0
        self._in_newer_request: set[PartitionKey] = set()
        """What the newer of two requests names: of that, the answer to the older is outdated."""
        self._failures = 0
        self._pause: Alarm | None = None

    @property
    def link(self) -> Link | None:
        """For requests beside the fetches."""
        return self._link

    def add(self, fetcher: ReplicaFetcher) -> None:
        assert fetcher.key not in self.fetchers, "fetched once"
        self.fetchers[fetcher.key] = fetcher
        fetcher.partition.start_fetching(fetcher)
        # A new leader epoch says that the leader lives: no reason to wait any longer.
        self._failures = 0
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        fetcher.start()

    def remove(self, fetcher: ReplicaFetcher) -> None:
        if self.fetchers.get(fetcher.key) is fetcher:
            del self.fetchers[fetcher.key]
        self.exclude(fetcher)
        fetcher.end()

    def exclude(self, fetcher: ReplicaFetcher) -> None:
        """Leave this partition out of the requests for the time being."""
        if self.in_session.get(fetcher.key) is fetcher:
            del self.in_session[fetcher.key]
            self.forgotten[fetcher.key] = None
        self.changed.pop(fetcher, None)
        self.unsynced.pop(fetcher, None)
        self._links.wake(self)

    def include(self, fetcher: ReplicaFetcher) -> None:
        """Name this partition in the next request: its offsets moved, or its pause is over."""
        self.changed[fetcher] = None
        self._links.wake(self)

    def wait_for_sync(self, fetcher: ReplicaFetcher) -> None:
        self.unsynced[fetcher] = None

    def on_synced(self, fetcher: ReplicaFetcher) -> None:
        if self.unsynced.pop(fetcher, self) is None:
            self.include(fetcher)

    # Asking

    def settle(self, now_ms: int) -> None:
        if self._pause is not None or (self._unanswered and not self._may_ask_again()):
            return
        if not self.fetchers:
            self.close()
            return
        if self.unsynced or not any(fetcher.is_fetching for fetcher in self.fetchers.values()):
            return
        self._ask(now_ms)

    def _may_ask_again(self) -> bool:
        """The leader waits for data, and its session lacks a partition that we ask for."""
        return (
            self._unanswered == 1
            and self._session_epoch != INITIAL_SESSION_EPOCH
            and any(each.is_fetching and each.key not in self.in_session for each in self.changed)
        )

    def _ask(self, now_ms: int) -> None:
        port, settings = self._port, self._port.settings
        broker_epoch = port.broker_epoch()
        link = self._open()
        if link is None or broker_epoch is None:
            self._fail("where the leader is, or who we are, is not known yet", now_ms)
            return
        if self._session_epoch == INITIAL_SESSION_EPOCH:
            self.in_session = {}
            self.forgotten = {}
            self.changed = {
                fetcher: None for fetcher in self.fetchers.values() if fetcher.is_fetching
            }
        named = self._named()
        self._in_newer_request = (
            {(topic, each.partition_index) for topic, partitions in named for each in partitions}
            if self._unanswered
            else set()
        )
        body = encode_fetch_call(
            named,
            FETCH_VERSION,
            replica_id=settings.node_id,
            replica_epoch=broker_epoch,
            wait_ms_max=settings.wait_ms_max,
            bytes_min=settings.bytes_min,
            bytes_max=settings.response_bytes_max,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            forgotten=self._forgotten(),
        )
        if self._session_epoch != INITIAL_SESSION_EPOCH:
            self._session_epoch = next_session_epoch(self._session_epoch)
        self._unanswered += 1
        link.ask_raw(
            FETCH,
            FETCH_VERSION,
            bytes(body),
            self._on_body,
            timeout_ms=settings.socket_timeout_ms,
            now_ms=now_ms,
        )

    def _forgotten(self) -> list[tuple[bytes, list[int]]]:
        """What the session holds although it is no longer fetched."""
        topics: dict[bytes, list[int]] = {}
        for topic_id, index in self.forgotten:
            topics.setdefault(topic_id, []).append(index)
        self.forgotten.clear()
        return list(topics.items())

    def _named(self) -> list[tuple[bytes, list[FetchedPartition]]]:
        topics: dict[bytes, list[FetchedPartition]] = {}
        for fetcher in self.changed:
            if fetcher.is_fetching:
                topics.setdefault(fetcher.key[0], []).append(fetcher.next_request())
                self.in_session[fetcher.key] = fetcher
                self.forgotten.pop(fetcher.key, None)
        self.changed.clear()
        return list(topics.items())

    def _open(self) -> Link | None:
        """The link, opened anew if the leader has moved or the former one has ended."""
        address = self._port.address_of(self.leader_id)
        if address is None:
            return None
        if self._link is not None and self._address != address:
            self.close()
        if self._link is None:
            self._address = address
            self._link = self._port.links.open(*address, "replica", on_closed=self._on_closed)
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
            self._session_epoch = INITIAL_SESSION_EPOCH
        elif self._session_epoch == INITIAL_SESSION_EPOCH:
            self._session_epoch = next_session_epoch(INITIAL_SESSION_EPOCH)
        self._take(answer, now_ms)

    def _take(self, answer: FetchAnswer, now_ms: int) -> None:
        for topic_id, partitions in answer.topics:
            for answered in partitions:
                key = (topic_id, answered.partition_index)
                if self._unanswered and key in self._in_newer_request:
                    continue
                fetcher = self.in_session.get(key)
                if fetcher is not None and self.fetchers.get(fetcher.key) is fetcher:
                    fetcher.on_answer(answered, now_ms)

    def _on_refused(self, code: int, now_ms: int) -> None:
        """A leader that restarted has forgotten the session: begin another, at once if we may."""
        self._reset_session()
        if code in _SESSION_ERRORS and not self._failures:
            self._failures = 1
        else:
            self._fail(f"fetch refused with {code}", now_ms)

    def _on_closed(self, reason: str, now_ms: int) -> None:
        if reason in _ENDED:
            self._port.on_connection_lost(self.leader_id, now_ms)
        self._link = None
        self._unanswered = 0
        self._reset_session()
        for fetcher in list(self.fetchers.values()):
            fetcher.on_link_closed()
        self._fail(reason, now_ms)

    def _fail(self, reason: str, now_ms: int) -> None:
        """Leave the leader alone for a while."""
        if self._pause is not None or not self.fetchers:
            return
        self._failures += 1
        at_most_ms = self._port.settings.backoff_ms_max
        wait_ms = back_off_ms(self._failures, at_most_ms=at_most_ms)
        self._pause = self._port.alarms.at(now_ms + wait_ms, self._resume)
        self._port.trace.emit(
            events.FollowerBackedOff(
                broker_id=self._port.settings.node_id,
                leader_id=self.leader_id,
                partition=None,
                reason=reason,
                wait_ms=wait_ms,
            )
        )

    def _resume(self, now_ms: int) -> None:
        self._pause = None
        self._links.wake(self)

    def _reset_session(self) -> None:
        """Begin anew; the former id is sent once more, so that the leader can drop that session."""
        self._session_epoch = INITIAL_SESSION_EPOCH

    def close(self) -> None:
        """Nothing is fetched from this leader any more, or it has moved."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
        self._unanswered = 0
        self._reset_session()
        for fetcher in list(self.fetchers.values()):
            fetcher.on_link_closed()

    def check(self) -> None:
        for key, fetcher in self.fetchers.items():
            partition = fetcher.partition
            assert fetcher.key == key and partition.fetcher is fetcher, partition.topic_partition
            assert partition.leader_id == self.leader_id, partition.topic_partition
        assert not set(self.in_session) & set(self.forgotten)
