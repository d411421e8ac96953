"""The status of a cluster: which nodes live, then what the newest controller and the replicas say.

No node is waited for longer than a moment, so a dead or half-dead cluster is described as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.admin.cluster import ClusterDescription, QuorumInfo, describe_cluster
from tidelog.client.admin.descriptions import (
    MetadataDescription,
    describe_metadata,
    high_watermarks,
    log_end_offsets,
)
from tidelog.client.admin.offsets import ListedOffset
from tidelog.client.admin.question import Question
from tidelog.cluster.admin_fanout import QUORUM_NOW, AdminFanout, newest_quorum, unfenced
from tidelog.cluster.fault_registry import FaultRegistry
from tidelog.cluster.group_status import group_statuses
from tidelog.cluster.launcher import Launcher
from tidelog.cluster.layout import NodePlan
from tidelog.cluster.status import (
    DOWN,
    FENCED,
    PAUSED,
    SILENT,
    UP,
    ClusterStatus,
    NodeStatus,
    PartitionStatus,
)
from tidelog.cluster.transaction_status import transaction_statuses
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition

PARTITIONS_MAX = 200
Answer = QuorumInfo | ClusterDescription | MetadataDescription | None
Offsets = dict[TopicPartition, ListedOffset]


def take_snapshot(
    launcher: Launcher,
    fanout: AdminFanout,
    registry: FaultRegistry,
    *,
    timeout_s: float,
) -> ClusterStatus:
    """Nodes and partitions first, then the offsets of every replica, transactions, and groups."""
    plan = launcher.plan
    answers = _ask_all(launcher, fanout, timeout_s)
    quorum = newest_quorum(each["quorum"] for each in answers.values() if "quorum" in each)
    controller = None if quorum is None else quorum.leader_id
    source = _best_source(answers, controller)
    cluster = answers[source].get("cluster") if source is not None else None
    topics = answers[source].get("topics") if source is not None else None
    partitions = sorted(_partitions(topics)) if isinstance(topics, MetadataDescription) else []
    shown = [status for _, status in partitions[:PARTITIONS_MAX]]
    with_offsets = tuple(_with_offsets(fanout, shown, set(answers), timeout_s))
    brokers = sorted(set(answers).intersection(plan.broker_ids))
    transactions, described = transaction_statuses(
        fanout, brokers, with_offsets, timeout_s=timeout_s
    )
    return ClusterStatus(
        cluster_id=plan.cluster_id,
        data=str(launcher.directory.root),
        bootstrap_servers=plan.bootstrap_servers,
        profile=plan.profile,
        controller=controller,
        quorum_epoch=None if quorum is None else quorum.quorum_epoch,
        nodes=tuple(
            _node(launcher, node, cluster, node.id in answers, is_active=node.id == controller)
            for node in plan.nodes
        ),
        partitions=described,
        partitions_total=len(partitions) if isinstance(topics, MetadataDescription) else None,
        faults=tuple(registry.active()),
        groups=group_statuses(fanout, brokers, described, timeout_s=timeout_s),
        transactions=transactions,
    )


def _ask_all(
    launcher: Launcher, fanout: AdminFanout, timeout_s: float
) -> dict[int, dict[str, Answer]]:
    """By node: what it answered, by question; nodes that answered nothing are left out."""
    brokers = set(launcher.plan.broker_ids)
    questions: dict[tuple[int, str], tuple[int, Question[Answer]]] = {}
    for each in launcher.responsive():
        questions[each, "quorum"] = (each, QUORUM_NOW)  # type: ignore[assignment]
        about_cluster = describe_cluster(with_fenced=True)
        questions[each, "cluster"] = (each, about_cluster)  # type: ignore[assignment]
        if each in brokers:
            questions[each, "topics"] = (each, describe_metadata())  # type: ignore[assignment]
    answers = fanout.ask_each(questions, timeout_s=timeout_s, quorum_timeout_s=timeout_s)
    by_node: dict[int, dict[str, Answer]] = {}
    for (node_id, name), answer in answers.items():
        by_node.setdefault(node_id, {})[name] = answer
    return by_node


def _best_source(answers: Mapping[int, Mapping[str, Answer]], controller: int | None) -> int | None:
    """The node to believe: the controller, else the one with the newest leader epochs."""
    known = {node: each["topics"] for node, each in answers.items() if "topics" in each}
    if controller in known:
        return controller
    return max(known, key=lambda node: _newness(known[node]), default=None)


def _newness(answer: Answer) -> int:
    if not isinstance(answer, MetadataDescription):
        return -1
    return sum(
        each.leader_epoch or 0
        for topic in answer.topics.values()
        for each in topic.partitions.values()
    )


def _node(
    launcher: Launcher,
    node: NodePlan,
    cluster: Answer,
    has_answered: bool,
    *,
    is_active: bool,
) -> NodeStatus:
    process = launcher.process(node.id)
    if process is None:
        state = DOWN
    elif process.is_paused:
        state = PAUSED
    elif not has_answered:
        state = SILENT
    elif node.is_broker and _is_fenced(node.id, cluster):
        state = FENCED
    else:
        state = UP
    return NodeStatus(
        id=node.id,
        state=state,
        roles=node.roles,
        rack=node.rack,
        address=node.address,
        pid=None if process is None else process.pid,
        is_active_controller=is_active,
        log_path=str(launcher.directory.log(node.id)),
    )


def _is_fenced(broker_id: int, cluster: Answer) -> bool:
    return isinstance(cluster, ClusterDescription) and broker_id not in unfenced(cluster)


def _partitions(
    topics: MetadataDescription,
) -> Iterable[tuple[tuple[bool, str, int], PartitionStatus]]:
    """With the key of their order: the topics that brokers keep for themselves come last."""
    for name, topic in topics.topics.items():
        for index, found in topic.partitions.items():
            yield (
                (topic.is_internal, name, index),
                PartitionStatus(
                    topic=name,
                    partition=index,
                    leader=found.leader_id,
                    leader_epoch=found.leader_epoch,
                    isr=found.isr,
                    replicas=found.replicas,
                ),
            )


def _with_offsets(
    fanout: AdminFanout, partitions: list[PartitionStatus], nodes: set[int], timeout_s: float
) -> Iterable[PartitionStatus]:
    """One request of each kind to each broker that answers."""
    led: dict[int, list[TopicPartition]] = {}
    held: dict[int, list[TopicPartition]] = {}
    for each in partitions:
        name = TopicPartition(each.topic, each.partition)
        if each.leader in nodes:
            led.setdefault(each.leader, []).append(name)
        for replica in nodes.intersection(each.replicas):
            held.setdefault(replica, []).append(name)
    questions: dict[tuple[int, str], tuple[int, Question[Offsets]]] = {
        **{(node, "led"): (node, high_watermarks(led[node], broker_id=node)) for node in led},
        **{(node, "held"): (node, log_end_offsets(held[node], broker_id=node)) for node in held},
    }
    answers = fanout.ask_each(questions, timeout_s=timeout_s) if questions else {}
    for each in partitions:
        name = TopicPartition(each.topic, each.partition)
        ends = {
            node: end
            for node in sorted(each.replicas)
            if (end := _offset(answers.get((node, "held")), name)) is not None
        }
        yield PartitionStatus(
            topic=each.topic,
            partition=each.partition,
            leader=each.leader,
            leader_epoch=each.leader_epoch,
            isr=each.isr,
            replicas=each.replicas,
            high_watermark=None
            if each.leader is None
            else _offset(answers.get((each.leader, "led")), name),
            log_end_offsets=ends,
        )


def _offset(offsets: Offsets | None, name: TopicPartition) -> int | None:
    found = None if offsets is None else offsets.get(name)
    return found.offset if found is not None and found.error == ErrorCode.NONE else None
