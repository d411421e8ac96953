"""A cluster's status as rows of text, and what changed between two looks at it; all pure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from tidelog.cluster.durations import in_words
from tidelog.cluster.fault_registry import ActiveFault
from tidelog.cluster.status import (
    DOWN,
    ClusterStatus,
    GroupStatus,
    NodeStatus,
    OpenTransactionStatus,
    PartitionStatus,
)

NODE_HEADER = ("node", "state", "roles", "rack", "address", "pid", "leads")
PARTITION_HEADER = (
    *("partition", "leader", "leader epoch", "isr", "out of sync", "high watermark"),
    "log ends",
)
LAST_STABLE_OFFSET = "last stable offset"
"""A column only while an open transaction holds something back."""
GROUP_HEADER = ("group", "state", "members", "lag")
TRANSACTION_HEADER = ("open transaction", "state", "coordinator", "open for", "partitions")
FAULT_HEADER = ("fault", "what it is", "ends")

Row = tuple[str, ...]


def node_rows(status: ClusterStatus) -> list[Row]:
    return [_node_row(node, status) for node in status.nodes]


def partition_header(partitions: Sequence[PartitionStatus]) -> Row:
    return (*PARTITION_HEADER, LAST_STABLE_OFFSET) if _is_held(partitions) else PARTITION_HEADER


def partition_rows(partitions: Sequence[PartitionStatus]) -> list[Row]:
    """One row each; those of the brokers' own topics together, if somebody leads them."""
    is_held = _is_held(partitions)
    together: dict[str, list[PartitionStatus]] = {}
    rows = []
    for each in partitions:
        if _is_own(each.topic) and each.leader is not None:
            together.setdefault(each.topic, []).append(each)
        else:
            rows.append((*_partition_row(each), *[_stable(each)] * is_held))
    for topic, found in sorted(together.items()):
        held = sum(map(bool, (each.held_back for each in found)))
        behind = f"behind in {held} of them" if held else "-"
        rows.append((*_topic_row(topic, found), *[behind] * is_held))
    return rows


def _is_held(partitions: Sequence[PartitionStatus]) -> bool:
    return any(each.held_back for each in partitions)


def _stable(partition: PartitionStatus) -> str:
    offset, held_back = _id(partition.last_stable_offset), partition.held_back
    return f"{offset} ({held_back} behind)" if held_back else offset


def _topic_row(topic: str, partitions: Sequence[PartitionStatus]) -> Row:
    lagging = sum(set(each.isr) != set(each.replicas) for each in partitions)
    out_of_sync = f"in {lagging} of them" if lagging else "-"
    return (f"{topic}: {len(partitions)} led", "-", "-", "-", out_of_sync, "-", "-")


def _is_own(topic: str) -> bool:
    """Whether brokers keep the topic for themselves, such as `__consumer_offsets`."""
    return topic.startswith("__")


def group_rows(groups: Sequence[GroupStatus]) -> list[Row]:
    return [(each.group, each.state or "-", _id(each.members), _id(each.lag)) for each in groups]


def transaction_rows(transactions: Sequence[OpenTransactionStatus], *, wall_ms: int) -> list[Row]:
    return [
        (
            each.transactional_id,
            each.state,
            str(each.coordinator),
            "-" if each.start_ms is None else in_words(max(0, wall_ms - each.start_ms)),
            ",".join(map(str, each.partitions or ())) or "-",
        )
        for each in transactions
    ]


def fault_rows(faults: Sequence[ActiveFault], *, wall_ms: int) -> list[Row]:
    return [(each.id, each.text, _end(each, wall_ms)) for each in faults]


def headline(status: ClusterStatus) -> str:
    """One line about all of it."""
    if status.is_down:
        return f"cluster {status.cluster_id}: not running"
    controller = "none" if status.controller is None else str(status.controller)
    words = [f"cluster {status.cluster_id}", f"active controller {controller}"]
    if status.quorum_epoch is not None:
        words.append(f"quorum epoch {status.quorum_epoch}")
    words.append(f"profile {status.profile}")
    return ", ".join(words)


def summary(status: ClusterStatus, *, shown: int) -> str:
    """About partitions: how many there are, and how many of them are not as they should be."""
    total = status.partitions_total
    if total is None:
        return "no broker answers that could tell of partitions"
    if total == 0:
        return "no topics yet"
    words = [f"{total} partition{'s' if total > 1 else ''}"]
    down = {node.id for node in status.nodes if node.state == DOWN}
    leaderless = sum(each.leader is None or each.leader in down for each in status.partitions)
    lagging = sum(set(each.isr) != set(each.replicas) for each in status.partitions)
    words.append(f"{leaderless} without a living leader" if leaderless else "all led")
    words.append(f"{lagging} not fully in sync" if lagging else "all in sync")
    if shown < total:
        words.append(f"the first {shown} are shown")
    return ", ".join(words)


def changes(before: ClusterStatus, after: ClusterStatus) -> list[str]:
    """What a person wants to be told, one line each."""
    lines = []
    if before.controller != after.controller:
        lines.append(f"active controller: {_id(before.controller)} -> {_id(after.controller)}")
    states = {node.id: node.state for node in before.nodes}
    lines += [
        f"node {node.id}: {states.get(node.id)} -> {node.state}"
        for node in after.nodes
        if states.get(node.id) != node.state
    ]
    lines += _partition_changes(before, after)
    earlier = {each.id for each in before.faults}
    later = {each.id for each in after.faults}
    lines += [f"fault {each.id}: {each.text}" for each in after.faults if each.id not in earlier]
    lines += [f"fault {each.id} is over" for each in before.faults if each.id not in later]
    return lines


def _partition_changes(before: ClusterStatus, after: ClusterStatus) -> list[str]:
    """A line each; those of the brokers' own topics are counted."""
    lines = []
    known = {(each.topic, each.partition): each for each in before.partitions}
    own: Counter[tuple[str, str]] = Counter()
    for each in after.partitions:
        old = known.get((each.topic, each.partition))
        name = f"{each.topic}-{each.partition}"
        has_moved = old is not None and (old.leader, old.leader_epoch) != (
            each.leader,
            each.leader_epoch,
        )
        has_other_isr = old is not None and set(old.isr) != set(each.isr)
        if _is_own(each.topic):
            own[each.topic, "new"] += old is None
            own[each.topic, "with another leader"] += has_moved
            own[each.topic, "with another isr"] += has_other_isr
            continue
        if old is None:
            lines.append(f"{name}: new, leader {_id(each.leader)}, isr {_list(each.isr)}")
            continue
        if has_moved:
            lines.append(
                f"{name}: leader {_id(old.leader)} -> {_id(each.leader)}, "
                f"leader epoch {each.leader_epoch}"
            )
        if has_other_isr:
            lines.append(f"{name}: isr {_list(old.isr)} -> {_list(each.isr)}")
    lines += [
        f"{topic}: {count} partitions {what}" for (topic, what), count in own.items() if count
    ]
    if after.partitions_total is not None:
        gone = known.keys() - {(each.topic, each.partition) for each in after.partitions}
        lines += [f"{topic}-{index}: gone" for topic, index in sorted(gone)]
    return lines


def wall_now_ms() -> int:
    return time.time_ns() // 1_000_000


def _node_row(node: NodeStatus, status: ClusterStatus) -> Row:
    roles = ",".join(node.roles)
    if node.is_active_controller:
        roles = roles.replace("controller", "controller (active)")
    leads = sum(each.leader == node.id for each in status.partitions)
    return (
        str(node.id),
        node.state,
        roles,
        node.rack or "-",
        node.address,
        "-" if node.pid is None else str(node.pid),
        str(leads) if "broker" in node.roles else "-",
    )


def _partition_row(each: PartitionStatus) -> Row:
    ends = " ".join(f"{node}:{end}" for node, end in each.log_end_offsets.items())
    return (
        f"{each.topic}-{each.partition}",
        _id(each.leader),
        _id(each.leader_epoch),
        _list(each.isr),
        _list(tuple(replica for replica in each.replicas if replica not in each.isr)),
        _id(each.high_watermark),
        ends or "-",
    )


def _end(fault: ActiveFault, wall_ms: int) -> str:
    if fault.until_ms is None:
        return "when undone"
    return f"in {in_words(max(0, fault.until_ms - wall_ms))}"


def _id(number: int | None) -> str:
    return "-" if number is None else str(number)


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, sorted(numbers))) or "-"
