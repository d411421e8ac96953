"""All that one partition of `__consumer_offsets` holds: groups and their committed offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.classic_group import ClassicState
from tidelog.core.groups.classic_groups import ClassicGroups
from tidelog.core.groups.classic_join import Joiner
from tidelog.core.groups.committed_offsets import CommittedOffsets
from tidelog.core.groups.consumer_group import ClusterTopics
from tidelog.core.groups.consumer_groups import ConsumerGroups, refused_heartbeat
from tidelog.core.groups.consumer_member import JOIN_EPOCH
from tidelog.core.groups.consumer_records import CONSUMER_KEY_TYPES
from tidelog.core.groups.consumer_refusals import HeartbeatRefused
from tidelog.core.groups.group_migration import refuse_upgrade, upgrade_records
from tidelog.core.groups.group_records import GROUP_METADATA_KEY_VERSION
from tidelog.core.groups.group_settings import ConsumerGroupSettings, GroupSettings
from tidelog.core.groups.member_call import HeartbeatCaller
from tidelog.core.groups.offset_expiry import Rule, consumer_expiry_rule, expiry_rule
from tidelog.core.groups.offset_records import OFFSET_KEY_TYPES, key_type_of
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest
from tidelog.core.wire.messages.api_13_leave_group import LeaveGroupRequest
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupRequest
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)

EXPIRY_SLICE_OFFSETS: Final = 1_000
"""Looked at in one turn."""
_NEXT_SLICE_MS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSettings:
    """Limits of committed offsets. Defaults are Kafka's."""

    metadata_characters_max: int = 4096
    """`offset.metadata.max.bytes`, which Kafka counts in characters of UTF-16."""
    retention_ms: int = 7 * 24 * 3600 * 1000
    """`offsets.retention.minutes`"""
    retention_check_interval_ms: int = 600_000
    """`offsets.retention.check.interval.ms`"""


class GroupShard:
    """Inputs: records, time, and the operations of both kinds of groups and of their offsets.

    An id belongs to one kind. An empty group becomes one of the other kind when such a member
    joins. A group of consumers with members migrates: see group_migration.py.
    """

    def __init__(
        self,
        *,
        settings: GroupSettings,
        consumer_settings: Callable[[str], ConsumerGroupSettings],
        offset_settings: OffsetSettings,
        topics: ClusterTopics,
        random: Random,
        wall_ms: Callable[[int], int],
    ) -> None:
        self.settings = offset_settings
        self.wall_ms = wall_ms
        self.offsets = CommittedOffsets()
        self.topics = topics
        self.classic = ClassicGroups(settings, random=random, wall_ms=wall_ms)
        self._consumer_settings = consumer_settings
        self.consumer = ConsumerGroups(
            consumer_settings,
            classic_size_max=settings.size_max,
            topics=topics,
            random=random,
            wall_ms=wall_ms,
        )
        self._to_expire: list[str] = []
        """The groups that this round of expiry has still to look at, the next one last."""
        self._expiry_due_ms: int | None = None

    # The log

    def apply(self, record: CoordinatorRecord, *, offset: int, timestamp_ms: int) -> None:
        """Records of kinds that are not known here are left alone, as Kafka does."""
        key_type = key_type_of(record.key)
        if key_type in OFFSET_KEY_TYPES:
            key = self.offsets.apply(record, offset=offset)
            if record.value is not None:
                self._add_simple(key.group_id)
        elif key_type == GROUP_METADATA_KEY_VERSION:
            group_id = self.classic.apply(record)
            downgrade = None if record.value is None else self.consumer.mixed.finish(group_id)
            if downgrade is not None:
                self.classic.take_over(*downgrade)
        elif key_type in CONSUMER_KEY_TYPES:
            group_id = self.consumer.apply(record)
            if record.value is not None:
                self.classic.remove_simple(group_id)

    def apply_transactional(
        self, record: CoordinatorRecord, *, producer_id: int, offset: int, timestamp_ms: int
    ) -> None:
        """Only offsets are committed with transactions."""
        if key_type_of(record.key) in OFFSET_KEY_TYPES:
            key = self.offsets.apply_transactional(record, producer_id=producer_id, offset=offset)
            if record.value is not None:
                self._add_simple(key.group_id)

    def _add_simple(self, group_id: str) -> None:
        if group_id not in self.consumer:
            self.classic.add_simple(group_id)

    def apply_marker(self, *, producer_id: int, is_commit: bool) -> None:
        self.offsets.apply_marker(producer_id=producer_id, is_commit=is_commit)

    # Life

    def on_loaded(self, now_ms: int) -> Outcome:
        self._expiry_due_ms = now_ms + self.settings.retention_check_interval_ms
        self.consumer.on_loaded(now_ms)
        return self.classic.on_loaded(now_ms)

    def next_deadline_ms(self) -> int | None:
        deadlines = (
            self.classic.next_deadline_ms(),
            self.consumer.next_deadline_ms(),
            self._expiry_due_ms,
        )
        return min((each for each in deadlines if each is not None), default=None)

    def on_timer(self, now_ms: int) -> Outcome:
        classic_due_ms = self.classic.next_deadline_ms()
        if classic_due_ms is not None and classic_due_ms <= now_ms:
            return self.classic.on_timer(now_ms)
        consumer_due_ms = self.consumer.next_deadline_ms()
        if consumer_due_ms is not None and consumer_due_ms <= now_ms:
            return self.consumer.on_timer(now_ms)
        if self._expiry_due_ms is not None and self._expiry_due_ms <= now_ms:
            return self._expire_slice(now_ms)
        return Outcome()

    def _expire_slice(self, now_ms: int) -> Outcome:
        """A share of the groups; the next one soon, or the next round after the interval."""
        if not self._to_expire:
            self._to_expire = [group.group_id for group in (*self.classic, *self.consumer)]
        records: list[CoordinatorRecord] = []
        left = EXPIRY_SLICE_OFFSETS
        while self._to_expire and left > 0:
            group_id = self._to_expire.pop()
            left -= 1 + self.offsets.count(group_id)
            records += self._expire_group(group_id, now_ms)
        pause_ms = self.settings.retention_check_interval_ms
        self._expiry_due_ms = now_ms + (_NEXT_SLICE_MS if self._to_expire else pause_ms)
        return Outcome(records, may_be_split=True)

    def _expire_group(self, group_id: str, now_ms: int) -> list[CoordinatorRecord]:
        """A group that has no offsets left, no members and no open transaction goes, too."""
        classic, consumer = self.classic.get(group_id), self.consumer.get(group_id)
        wall_ms, retention_ms = self.wall_ms(now_ms), self.settings.retention_ms
        rule: Rule | None
        if consumer is not None:
            rule = consumer_expiry_rule(consumer, wall_ms=wall_ms, retention_ms=retention_ms)
        elif classic is not None:
            rule = expiry_rule(classic, wall_ms=wall_ms, retention_ms=retention_ms)
        else:
            return []
        records = [] if rule is None else self.offsets.expired(group_id, rule)
        keeps_offsets = len(records) < self.offsets.count(group_id)
        if keeps_offsets or self.offsets.has_unstable(group_id):
            return records
        if consumer is None:
            return records + self.classic.expire(group_id)
        return records + ([] if consumer.members else self.consumer.delete(group_id))

    # Members of both kinds

    def join(self, joiner: Joiner, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """JoinGroup of a classic member."""
        group = self.consumer.get(joiner.group_id)
        if group is None:
            return self.classic.join(joiner, reply_to, now_ms)
        if group.members:
            return self.consumer.mixed.join(group, joiner, reply_to, now_ms)
        ended = self.consumer.delete(joiner.group_id)
        outcome = self.classic.join(joiner, reply_to, now_ms)
        if joiner.group_id in self.classic:
            outcome.records[:0] = ended
        return outcome

    def sync(self, request: SyncGroupRequest, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """SyncGroup of a classic member."""
        group = self.consumer.get(request.group_id)
        if group is None:
            return self.classic.sync(request, reply_to, now_ms)
        return self.consumer.mixed.sync(group, request, reply_to, now_ms)

    def heartbeat(self, request: HeartbeatRequest, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """Heartbeat of a classic member."""
        group = self.consumer.get(request.group_id)
        if group is None:
            return self.classic.heartbeat(request, reply_to, now_ms)
        return self.consumer.mixed.heartbeat(group, request, reply_to, now_ms)

    def leave(self, request: LeaveGroupRequest, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """LeaveGroup: of classic members, or by an administrator of either kind."""
        if request.group_id in self.consumer:
            return self.consumer.leave_by_name(request, reply_to, now_ms)
        return self.classic.leave(request, reply_to, now_ms)

    def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: HeartbeatCaller,
        reply_to: ReplyTo,
        now_ms: int,
    ) -> Outcome:
        """ConsumerGroupHeartbeat of a KIP-848 member."""
        group = self.classic.get(request.group_id)
        if group is None:
            return self.consumer.heartbeat(request, caller, reply_to, now_ms)
        if request.member_epoch != JOIN_EPOCH:
            message = f"Group {request.group_id} is not a consumer group."
            why = HeartbeatRefused(ErrorCode.GROUP_ID_NOT_FOUND, message)
            return refused_heartbeat(why, reply_to)
        upgrade: list[CoordinatorRecord] = []
        if group.state is not ClassicState.EMPTY:
            try:
                refuse_upgrade(group, self._consumer_settings(request.group_id))
                upgrade = upgrade_records(group, self.topics)
            except HeartbeatRefused as why:
                return refused_heartbeat(why, reply_to)
        outcome = self.consumer.heartbeat(request, caller, reply_to, now_ms, upgrade=upgrade)
        if not outcome.records:
            return outcome
        outcome.records[:0] = [*self.classic.end(request.group_id), *upgrade]
        outcome.replies += self.classic.rebalance_answers(request.group_id)
        too_large = HeartbeatRefused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        outcome.if_too_large = lambda: refused_heartbeat(too_large, reply_to)
        return outcome

    # Decisions about whole groups and topics

    def refuse_deletion(self, group_id: str) -> ErrorCode:
        """Why a group may not be deleted."""
        if group_id in self.consumer:
            return self.consumer.refuse_deletion(group_id)
        return self.classic.refuse_deletion(group_id)

    def delete_group(self, group_id: str) -> list[CoordinatorRecord]:
        """All offsets of an empty group, then the group."""
        groups = self.consumer if group_id in self.consumer else self.classic
        return [*self.offsets.delete_group(group_id), *groups.delete(group_id)]

    def on_topic_deleted(self, topic: str, topic_id: bytes) -> Outcome:
        return Outcome(self.offsets.delete_topic(topic, topic_id), may_be_split=True)

    def check(self) -> None:
        self.offsets.check()
        self.classic.check()
        self.consumer.check()
        for group_id in self.offsets.groups():
            is_classic, is_consumer = group_id in self.classic, group_id in self.consumer
            assert is_classic != is_consumer, f"the offsets of {group_id} belong to no group"
