"""Settings of single groups (resource type 32): changed, described, and felt by members."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.consumer_groups import beat, first
from tests.golden.group_cases.members import ready
from tests.golden.talk import Talk

GROUP = 32
SET, DELETE, APPEND = 0, 1, 2
SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)


def alter(
    talk: Talk, version: int, group: str, *steps: tuple[str, int, str | None], **fields: Any
) -> Any:
    """One change of one group's settings."""
    configs = [
        {"name": name, "config_operation": operation, "value": value}
        for name, operation, value in steps
    ]
    resource = {"resource_type": GROUP, "resource_name": group, "configs": configs}
    return talk.ask("IncrementalAlterConfigs", version, resources=[resource], **fields)


def shown(talk: Talk, version: int, group: str, *names: str) -> Any:
    """The settings of members of consumer groups; there are others for other kinds."""
    resource = {
        "resource_type": GROUP,
        "resource_name": group,
        "configuration_keys": list(names or (SESSION, HEARTBEAT, ASSIGNMENT)),
    }
    return talk.ask("DescribeConfigs", version, resources=[resource], include_synonyms=True)


@group_case("IncrementalAlterConfigs", 0, 1)
def of_a_group(talk: Talk, version: int) -> None:
    """Set, described, effective in heartbeats, and deleted again."""
    group, topic = ready(talk), talk.new_topic()
    alter(talk, version, group, (SESSION, SET, "50000"), (HEARTBEAT, SET, "6000"))
    talk.wait_for_settings()
    shown(talk, 4, group)
    beat(talk, 1, group, **first(topic))
    alter(talk, version, group, (HEARTBEAT, SET, "7000"))
    talk.wait_for_settings()
    beat(talk, 1, group, epoch=2)
    alter(talk, version, group, (HEARTBEAT, DELETE, None))
    talk.wait_for_settings()
    shown(talk, 4, group)
    beat(talk, 1, group, epoch=2)
    alter(talk, version, group, (SESSION, DELETE, None), (ASSIGNMENT, DELETE, None))
    talk.wait_for_settings()
    shown(talk, 4, group)


@group_case("IncrementalAlterConfigs", 0, 1)
def of_a_group_refused(talk: Talk, version: int) -> None:
    """Beyond the broker's bounds, of wrong types, of no group and of no setting."""
    group = ready(talk)
    for value in ("44999", "60001", "0", "-1", "soon", "", "1.5", "99999999999"):
        alter(talk, version, group, (SESSION, SET, value))
    for value in ("4999", "15001"):
        alter(talk, version, group, (HEARTBEAT, SET, value))
    for value in ("15001", "-1"):
        alter(talk, version, group, (ASSIGNMENT, SET, value))
    alter(talk, version, group, ("session.timeout.ms", SET, "50000"))
    alter(talk, version, group, ("no.such.setting", DELETE, None))
    alter(talk, version, group, (SESSION, APPEND, "50000"))
    alter(talk, version, group, (SESSION, SET, None))
    alter(talk, version, group, (SESSION, SET, "50000"), ("no.such.setting", SET, "1"))
    alter(talk, version, "", (SESSION, SET, "50000"))
    alter(talk, version, group, (SESSION, SET, "50000"), validate_only=True)
    alter(talk, version, group)
    shown(talk, 4, group)


@group_case("DescribeConfigs", 1, 4)
def of_groups(talk: Talk, version: int) -> None:
    """Also of groups that nobody has heard of; none has no name."""
    group = ready(talk)
    shown(talk, version, group)
    shown(talk, version, group, SESSION)
    shown(talk, version, group, "no.such.setting")
    shown(talk, version, "")
