"""Groups in words: what was found, as JSON for programs and as columns for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.cli.text_columns import cell, columns

if TYPE_CHECKING:
    from tidelog.client.shells.groups import DescribedConsumerGroup, GroupPartition

OFFSET_HEADER = (
    *("topic", "partition", "committed", "log end", "lag"),
    *("member", "client id", "host"),
)
MEMBER_HEADER = ("member", "instance", "client id", "host", "partitions", "assignment")
UNKNOWN = "?"


def group_json(group: DescribedConsumerGroup) -> dict[str, Any]:
    description = group.description
    return {
        "group": group.listing.group_id,
        "state": state_of(group),
        "type": group.listing.group_type,
        "protocol_type": group.listing.protocol_type,
        "assignor": None if description is None else description.assignor or None,
        "coordinator": group.coordinator,
        "lag": group.lag,
        "partitions": [_partition_json(each) for each in group.partitions],
        "members": None
        if description is None
        else [
            {
                "member_id": each.member_id,
                "group_instance_id": each.group_instance_id,
                "client_id": each.client_id,
                "host": each.host,
                "topics": list(each.topics),
                "partitions": [str(one) for one in each.partitions],
            }
            for each in description.members
        ],
    }


def _partition_json(partition: GroupPartition) -> dict[str, Any]:
    member = partition.member
    return {
        "topic": partition.name.topic,
        "partition": partition.name.index,
        "committed": partition.committed,
        "log_end": partition.log_end,
        "lag": partition.lag,
        "member_id": None if member is None else member.member_id,
        "client_id": None if member is None else member.client_id,
        "host": None if member is None else member.host,
    }


def state_of(group: DescribedConsumerGroup) -> str | None:
    """As the coordinator described it, which is newer than the list."""
    return group.listing.state if group.description is None else group.description.state


def headline(group: DescribedConsumerGroup) -> str:
    words = [f"group {group.listing.group_id}", f"state {cell(state_of(group))}"]
    words.append(f"type {cell(group.listing.group_type)}")
    if group.description is None:
        words.append(f"members {UNKNOWN}")
    else:
        words.append(f"assignor {cell(group.description.assignor)}")
        words.append(f"members {len(group.members)}")
    words.append(f"lag {cell(group.lag)}")
    words.append(f"coordinator {cell(group.coordinator)}")
    return "  ".join(words)


def offsets_text(group: DescribedConsumerGroup) -> str:
    """A line about the group, then a line for each partition."""
    if not group.partitions:
        return f"{headline(group)}\n  no offsets"
    return f"{headline(group)}\n{_indented(columns(OFFSET_HEADER, offset_rows(group)))}"


def offset_rows(group: DescribedConsumerGroup) -> list[list[object]]:
    rows: list[list[object]] = []
    for each in group.partitions:
        member = each.member
        owner: list[object] = [None, None, None]
        if group.description is None:
            owner = [UNKNOWN, UNKNOWN, UNKNOWN]
        elif member is not None:
            owner = [member.member_id, member.client_id, member.host]
        log_end = UNKNOWN if each.log_end is None else each.log_end
        rows.append([each.name.topic, each.name.index, each.committed, log_end, each.lag, *owner])
    return rows


def members_text(group: DescribedConsumerGroup) -> str:
    """A line about the group, then a line for each member."""
    if not group.members:
        return f"{headline(group)}\n  no members" if group.description else headline(group)
    rows = [
        [
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.host,
            len(each.partitions),
            [str(one) for one in each.partitions],
        ]
        for each in group.members
    ]
    return f"{headline(group)}\n{_indented(columns(MEMBER_HEADER, rows))}"


def _indented(table: str) -> str:
    return "\n".join(f"  {line}" for line in table.splitlines())
