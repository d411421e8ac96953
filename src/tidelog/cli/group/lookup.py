"""What the verbs about groups share: brokers that are silent, and groups that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.cli.exit_codes import complain, refusal

if TYPE_CHECKING:
    from tidelog.client.shells.groups import ListedGroups


def complain_of_silent(verb_name: str, listed: ListedGroups) -> bool:
    """True if some broker did not answer."""
    for broker_id, reason in listed.silent.items():
        complain(verb_name, f"broker {broker_id} did not list its groups: {reason}")
    return bool(listed.silent)


def missing_group(group_id: str) -> str:
    return refusal("GROUP_ID_NOT_FOUND", None, f"group {group_id} does not exist")
