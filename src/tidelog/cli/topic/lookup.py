"""A topic that must be there, and those of its partitions that somebody means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelog.cli.client_options import Access
from tidelog.cli.exit_codes import VerbFailed, refusal

if TYPE_CHECKING:
    from tidelog.client.admin.topics import TopicDescription


def existing_topic(at: Access, name: str) -> TopicDescription:
    """VerbFailed if no broker knows it; nothing is created by asking."""
    from tidelog.client.shells.blocking_clients import Admin
    from tidelog.client.shells.topic_descriptions import describe_by_any_broker
    from tidelog.core.model.errors import ErrorCode

    with Admin({"bootstrap.servers": at.settings["bootstrap.servers"]}) as admin:
        description = describe_by_any_broker(admin, [name], timeout_s=at.timeout_s).topics[name]
    if description.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        hint = f"topic {name} does not exist; make it with: tidelog topic create {name}"
        raise VerbFailed(refusal(description.error.name, None, hint))
    if description.error != ErrorCode.NONE:
        raise VerbFailed(refusal(description.error.name, None, f"topic {name}"))
    return description


def chosen_partitions(topic: str, count: int, wanted: Sequence[int] | None) -> list[int]:
    """All of them if none is named; VerbFailed if there is no such partition."""
    if wanted is None:
        return list(range(count))
    for index in wanted:
        if index >= count:
            has = "only partition 0" if count == 1 else f"partitions 0 to {count - 1}"
            raise VerbFailed(f"UNKNOWN_TOPIC_OR_PARTITION: {topic} has {has}, not {index}")
    return list(wanted)
