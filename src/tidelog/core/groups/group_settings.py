"""The limits and delays of groups, by Kafka's settings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60_000
"""How long a member that was never in a generation may wait for its first one. It does not know its
id yet and cannot send heartbeats, and its connection may be long gone. No setting in Kafka either.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Defaults are Kafka's."""

    session_timeout_min_ms: int = 6_000
    """`group.min.session.timeout.ms`"""
    session_timeout_max_ms: int = 1_800_000
    """`group.max.session.timeout.ms`"""
    initial_rebalance_delay_ms: int = 3_000
    """`group.initial.rebalance.delay.ms`"""
    size_max: int = 2**31 - 1
    """`group.max.size`"""


class MigrationPolicy(Enum):
    """Which way a group with members may change its protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def may_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupSettings:
    """Of KIP-848 groups. Defaults are Kafka's."""

    session_timeout_ms: int = 45_000
    """`group.consumer.session.timeout.ms`"""
    heartbeat_interval_ms: int = 5_000
    """`group.consumer.heartbeat.interval.ms`"""
    size_max: int = 2**31 - 1
    """`group.consumer.max.size`"""
    assignment_interval_ms: int = 1_000
    """`group.consumer.assignment.interval.ms`"""
    regex_refresh_interval_ms: int = 600_000
    """How old a lookup of regular expressions gets at most; no public setting in Kafka either."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """`group.consumer.migration.policy`"""
