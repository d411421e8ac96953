"""The group coordinator of a node: which groups are here, and with which settings."""

from __future__ import annotations

from random import Random

from tidelog.core.groups.group_settings import ConsumerGroupSettings, GroupSettings, MigrationPolicy
from tidelog.core.groups.group_shard import GroupShard, OffsetSettings
from tidelog.core.metadata.changes import Change, TopicDeleted
from tidelog.core.model.group_config import (
    ASSIGNMENT_INTERVAL,
    GROUP_BOUNDS,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    group_values,
)
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.node.coordinators.image_topics import ImageTopics
from tidelog.core.node.coordinators.topic_coordinator import (
    CoordinatorParts,
    InternalTopic,
    TopicCoordinator,
)

_MINUTE_MS = 60_000


class GroupCoordinator(TopicCoordinator[GroupShard]):
    """The coordinator of `__consumer_offsets`."""

    def __init__(self, parts: CoordinatorParts, *, random: Random) -> None:
        value = parts.settings.integer
        super().__init__(
            parts,
            InternalTopic(
                name=OFFSETS_TOPIC,
                partitions_setting="offsets.topic.num.partitions",
                load_bytes_setting="offsets.load.buffer.size",
                commit_timeout_ms=value("offsets.commit.timeout.ms"),
                compression=value("offsets.topic.compression.codec"),
            ),
            self._make_shard,
        )
        self._random = random
        self._topics = ImageTopics(parts.image)
        self.settings = GroupSettings(
            session_timeout_min_ms=value("group.min.session.timeout.ms"),
            session_timeout_max_ms=value("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=value("group.initial.rebalance.delay.ms"),
            size_max=value("group.max.size"),
        )

    def _consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """As they are now: a group may have its own, and they may be changed while it lives."""
        settings = self._parts.settings
        value = settings.integer
        own = group_values(self._parts.image.group_config(group_id))
        session_ms, heartbeat_ms, assignment_ms = (
            own[name] if name in own else value(GROUP_BOUNDS[name].synonym)
            for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)
        )
        return ConsumerGroupSettings(
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=heartbeat_ms,
            size_max=value("group.consumer.max.size"),
            assignment_interval_ms=assignment_ms,
            migration_policy=MigrationPolicy(
                settings.text("group.consumer.migration.policy").lower()
            ),
        )

    def _make_shard(self, index: int) -> GroupShard:
        value = self._parts.settings.integer
        return GroupShard(
            settings=self.settings,
            consumer_settings=self._consumer_settings,
            topics=self._topics,
            offset_settings=OffsetSettings(
                metadata_characters_max=value("offset.metadata.max.bytes"),
                retention_ms=value("offsets.retention.minutes") * _MINUTE_MS,
                retention_check_interval_ms=value("offsets.retention.check.interval.ms"),
            ),
            random=self._random,
            wall_ms=self._parts.wall_ms,
        )

    def on_change(self, change: Change, now_ms: int) -> None:
        """One committed record; what was committed for a deleted topic goes with it."""
        self._topics.on_change(change)
        super().on_change(change, now_ms)
        if isinstance(change, TopicDeleted) and change.topic != OFFSETS_TOPIC:
            topic, topic_id = change.topic, change.topic_id
            self.runtime.perform_everywhere(
                lambda shard, _now_ms: shard.on_topic_deleted(topic, topic_id), now_ms
            )
