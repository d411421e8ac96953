"""The settings of the active controller: what it does by itself now and then."""

from __future__ import annotations

from tidelog.core.model.config import Setting, SettingType

CONTROLLER = (
    Setting(
        name="auto.leader.rebalance.enable",
        type=SettingType.BOOLEAN,
        default=True,
        about="Whether leaderships go back to preferred replicas by themselves.",
    ),
    Setting(
        name="leader.imbalance.check.interval.seconds",
        type=SettingType.LONG,
        default=300,
        at_least=1,
        about="How often the controller looks for partitions led by another than the preferred.",
    ),
    Setting(
        name="unclean.leader.election.interval.ms",
        type=SettingType.LONG,
        default=300_000,
        at_least=1,
        about="How often the controller looks for leaderless partitions that may lose records.",
        is_internal=True,
    ),
)
