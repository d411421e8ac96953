"""Commits of one member: in their order, one at a time, each with its outcome.

A commit that got no answer is sent again. Since the next one waits for it, an older offset never
overtakes a newer one. In a classic group it is sent only for the generation in which it was asked
for. In a KIP-848 group the epoch of a member moves while it keeps its partitions, so that a commit
goes with the epoch of now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.group.coordinator_channel import (
    COORDINATOR_ERRORS,
    COORDINATOR_MOVED,
    CoordinatorChannel,
)
from tidelog.client.group.offset_requests import (
    EPOCH_COMMIT_VERSIONS,
    OFFSET_COMMIT_VERSIONS,
    OffsetAndMetadata,
    commit_errors,
    commit_request,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_08_offset_commit import OffsetCommitResponse
from tidelog.core.wire.schema import Message

_RETRIED = COORDINATOR_ERRORS | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class GroupIdentity(NamedTuple):
    """Who a member is to its coordinator, in one generation."""

    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class CommitOutcome(NamedTuple):
    """Whether offsets were committed. An outcome without an answer is unknown, not a refusal."""

    error: ErrorCode
    is_unknown: bool = False
    """It was sent and never answered: it may count."""

    @property
    def is_ok(self) -> bool:
        return self.error == ErrorCode.NONE


OnCommitted = Callable[[CommitOutcome, int], None]


@dataclass(slots=True)
class _Commit:
    """One of them, waiting or on its way."""

    identity: GroupIdentity
    offsets: dict[TopicPartition, OffsetAndMetadata]
    then: OnCommitted
    deadline_ms: int
    was_sent: bool = False
    failures: int = 0
    retry_at_ms: int = 0
    last_error: ErrorCode = ErrorCode.REQUEST_TIMED_OUT


class OffsetCommits:
    """`on_error` tells the member what a refusal says about its membership."""

    def __init__(
        self,
        client: Client,
        channel: CoordinatorChannel,
        group_id: str,
        *,
        on_error: Callable[[ErrorCode, GroupIdentity, int], None],
        follows_epoch: bool = False,
    ) -> None:
        self._follows_epoch = follows_epoch
        self._retried = _RETRIED | ({ErrorCode.STALE_MEMBER_EPOCH} if follows_epoch else set())
        self._versions = EPOCH_COMMIT_VERSIONS if follows_epoch else OFFSET_COMMIT_VERSIONS
        self.added = 0
        self.ended = 0
        """Those that have their outcome, of `added`."""
        self._channel = channel
        self._group_id = group_id
        self._on_error = on_error
        self._waiting: deque[_Commit] = deque()
        self._is_in_flight = False
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )

    @property
    def pending(self) -> int:
        return len(self._waiting)

    def add(
        self,
        identity: GroupIdentity,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        then: OnCommitted,
        *,
        deadline_ms: int,
    ) -> None:
        self.added += 1
        self._waiting.append(_Commit(identity, dict(offsets), then, deadline_ms))

    def run(self, identity: GroupIdentity | None, now_ms: int) -> None:
        """`identity` is the member's of now; None: it is in no generation."""
        while self._waiting and not self._is_in_flight:
            first = self._waiting[0]
            if identity is None or not self._is_of(first, identity):
                self._end(ErrorCode.ILLEGAL_GENERATION, now_ms)
            elif now_ms >= first.deadline_ms:
                self._end(first.last_error, now_ms)
            elif now_ms < first.retry_at_ms or not self._channel.is_usable(now_ms):
                if self._channel.refusal is None:
                    return
                self._end(self._channel.refusal, now_ms)
            else:
                self._send(first, now_ms)

    def _is_of(self, commit: _Commit, identity: GroupIdentity) -> bool:
        if self._follows_epoch:
            commit.identity = identity  # who is fenced abandons all of them, so it is the same life
        return commit.identity == identity

    def abandon(self, error: ErrorCode, now_ms: int) -> None:
        """The membership is over: every commit gets its outcome, those on their way as unknown."""
        while self._waiting:
            self._end(error, now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        if self._waiting and not self._is_in_flight:
            yield self._waiting[0].deadline_ms
            yield self._waiting[0].retry_at_ms

    def _send(self, commit: _Commit, now_ms: int) -> None:
        request = commit_request(self._group_id, commit.offsets, **commit.identity._asdict())

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            self._is_in_flight = False
            if self._waiting and self._waiting[0] is commit:
                self._on_answer(commit, answer, now_ms)

        self._is_in_flight = True
        if self._channel.send(request, answered, now_ms=now_ms, versions=self._versions):
            commit.was_sent = True
        else:
            self._is_in_flight = False
            self._end(ErrorCode.UNSUPPORTED_VERSION, now_ms)

    def _on_answer(self, commit: _Commit, answer: Message | NoAnswer, now_ms: int) -> None:
        if not isinstance(answer, OffsetCommitResponse):
            self._retry(commit, ErrorCode.NETWORK_EXCEPTION, now_ms)
            return
        # It had no effect where it was refused, and it is answered: nothing is unknown any more.
        commit.was_sent = False
        errors = sorted(set(commit_errors(answer).values()) - {ErrorCode.NONE})
        lasting = [each for each in errors if each not in self._retried]
        if not errors:
            self._end(ErrorCode.NONE, now_ms)
        elif lasting:
            self._end(lasting[0], now_ms)
            self._on_error(lasting[0], commit.identity, now_ms)
        else:
            if COORDINATOR_MOVED & set(errors):
                self._channel.forget()
            self._retry(commit, errors[0], now_ms)

    def _retry(self, commit: _Commit, error: ErrorCode, now_ms: int) -> None:
        commit.last_error = error
        commit.retry_at_ms = now_ms + self._back_off.pause_ms(commit.failures)
        commit.failures += 1

    def _end(self, error: ErrorCode, now_ms: int) -> None:
        commit = self._waiting.popleft()
        self.ended += 1
        is_unknown = commit.was_sent and error != ErrorCode.NONE
        commit.then(CommitOutcome(error, is_unknown), now_ms)
