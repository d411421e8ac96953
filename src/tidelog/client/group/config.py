"""Settings of a group member, by Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidelog.client.config import COMMON_SETTINGS
from tidelog.client.consumer.config import (
    CONSUMER_SETTINGS,
    ConsumerConfig,
    read_consumer_config,
)
from tidelog.client.group.assignors import ASSIGNORS
from tidelog.client.settings import BOOLEAN, INT, LIST, STRING, ConfigError, Given, Values
from tidelog.core.model.config import Setting

GROUP_SETTINGS = (
    Setting("group.id", STRING, "", "the group to join"),
    Setting("group.instance.id", STRING, "", "the name of a static member (KIP-345)"),
    Setting("session.timeout.ms", INT, 45_000, "silence after which a member is dead", at_least=0),
    Setting("heartbeat.interval.ms", INT, 3_000, "time between two heartbeats", at_least=1),
    Setting("max.poll.interval.ms", INT, 300_000, "time to join a rebalance", at_least=1),
    Setting(
        "partition.assignment.strategy", LIST, ("range", "roundrobin"), "assignors, best first"
    ),
    Setting("group.protocol", STRING, "classic", "classic, or consumer (KIP-848)"),
    Setting("enable.auto.commit", BOOLEAN, True, "commit what was read when it is revoked"),
    Setting("group.remote.assignor", STRING, "", "assignor of the coordinator (KIP-848)"),
)
_OF_CLASSIC_MEMBERS = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "partition.assignment.strategy",
)
"""In a KIP-848 group the coordinator decides these, so that to set them is a mistake."""


class RebalanceProtocol(StrEnum):
    """How members and their coordinator agree, by Kafka's names."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """What a member needs; `consumer` is for reading what it is given."""

    consumer: ConsumerConfig
    group_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    assignors: tuple[str, ...]
    protocol: RebalanceProtocol = RebalanceProtocol.CLASSIC
    remote_assignor: str | None = None
    commits_when_revoked: bool = True
    """False: the program commits, perhaps in a transaction of its own."""


def group_config(given: Given) -> GroupConfig:
    """ConfigError says what is wrong with the given settings."""
    values = Values(COMMON_SETTINGS + CONSUMER_SETTINGS + GROUP_SETTINGS, given)
    if not values.text("group.id"):
        raise ConfigError("group.id must name a group")
    assignors = values.items("partition.assignment.strategy")
    for name in assignors:
        if name not in ASSIGNORS:
            known = ", ".join(ASSIGNORS)
            raise ConfigError(f"partition.assignment.strategy: {name!r} is none of {known}")
    protocol = _protocol(values)
    session_timeout_ms = values.number("session.timeout.ms")
    heartbeat_interval_ms = values.number("heartbeat.interval.ms")
    if heartbeat_interval_ms >= session_timeout_ms:
        raise ConfigError("heartbeat.interval.ms must be less than session.timeout.ms")
    return GroupConfig(
        consumer=read_consumer_config(values),
        group_id=values.text("group.id"),
        group_instance_id=values.text("group.instance.id") or None,
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=heartbeat_interval_ms,
        rebalance_timeout_ms=values.number("max.poll.interval.ms"),
        assignors=assignors,
        protocol=protocol,
        remote_assignor=values.text("group.remote.assignor") or None,
        commits_when_revoked=values.flag("enable.auto.commit"),
    )


def _protocol(values: Values) -> RebalanceProtocol:
    text = values.text("group.protocol").lower()
    if text not in tuple(RebalanceProtocol):
        known = ", ".join(RebalanceProtocol)
        raise ConfigError(f"group.protocol: {text!r} is none of {known}")
    protocol = RebalanceProtocol(text)
    if protocol is RebalanceProtocol.CLASSIC:
        if values.text("group.remote.assignor"):
            raise ConfigError("group.remote.assignor needs group.protocol=consumer")
        return protocol
    for name in _OF_CLASSIC_MEMBERS:
        if values.was_given(name):
            raise ConfigError(f"{name} cannot be set with group.protocol=consumer")
    return protocol
