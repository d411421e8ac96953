"""Rules to decide by in tests: a handful of settings, and chance that is the same every time."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tidelog.core.controller.topics import CreationRules


class FewSettings:
    """Knows `retention.ms`, a number, and `cleanup.policy`, a list."""

    def refuse_topic_settings(self, settings: Mapping[str, str]) -> str | None:
        for name, value in settings.items():
            if name not in ("retention.ms", "cleanup.policy"):
                return f"no setting {name}"
            if name == "retention.ms" and not value.isdecimal():
                return f"{name} is a number"
        return None

    def refuse_group_settings(self, settings: Mapping[str, str]) -> str | None:
        return "no group has settings here"

    def is_list(self, resource_type: int, name: str) -> bool:
        return name == "cleanup.policy"

    def default(self, resource_type: int, name: str) -> str | None:
        return {"retention.ms": "7", "cleanup.policy": "delete"}.get(name)


def rules(*, partitions: int = 2, replication_factor: int = 1, seed: int = 1) -> CreationRules:
    return CreationRules(
        default_partitions_count=partitions,
        default_replication_factor=replication_factor,
        configs=FewSettings(),
        random=Random(seed),
    )
