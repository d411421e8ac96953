"""A cluster's status as rows of text, and what changed between two looks at it; all pure."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tidelog.cluster.durations import in_words
from tidelog.cluster.fault_registry import ActiveFault
from tidelog.cluster.status import DOWN, ClusterStatus, NodeStatus, PartitionStatus

NODE_HEADER = ("node", "state", "roles", "rack", "address", "pid", "leads")
PARTITION_HEADER = (
    *("partition", "leader", "leader epoch", "isr", "out of sync", "high watermark"),
    "log ends",
)
FAULT_HEADER = ("fault", "what it is", "ends")

Row = tuple[str, ...]


def node_rows(status: ClusterStatus) -> list[Row]:
    return [_node_row(node, status) for node in status.nodes]


def partition_rows(partitions: Sequence[PartitionStatus]) -> list[Row]:
    return [_partition_row(each) for each in partitions]


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
    known = {(each.topic, each.partition): each for each in before.partitions}
    for each in after.partitions:
        old = known.get((each.topic, each.partition))
        name = f"{each.topic}-{each.partition}"
        if old is None:
            lines.append(f"{name}: new, leader {_id(each.leader)}, isr {_list(each.isr)}")
            continue
        if old.leader != each.leader or old.leader_epoch != each.leader_epoch:
            lines.append(
                f"{name}: leader {_id(old.leader)} -> {_id(each.leader)}, "
                f"leader epoch {each.leader_epoch}"
            )
        if set(old.isr) != set(each.isr):
            lines.append(f"{name}: isr {_list(old.isr)} -> {_list(each.isr)}")
    if after.partitions_total is not None:
        gone = known.keys() - {(each.topic, each.partition) for each in after.partitions}
        lines += [f"{topic}-{index}: gone" for topic, index in sorted(gone)]
    earlier = {each.id for each in before.faults}
    later = {each.id for each in after.faults}
    lines += [f"fault {each.id}: {each.text}" for each in after.faults if each.id not in earlier]
    lines += [f"fault {each.id} is over" for each in before.faults if each.id not in later]
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
