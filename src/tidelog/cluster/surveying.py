"""Taking a cluster's status: who lives, then what the newest controller and the replicas say.

Nobody is waited for longer than a moment, so a dead or half-dead cluster is described as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tidelog.client.admin.cluster import ClusterDescription, QuorumDescription, describe_cluster
from tidelog.client.admin.descriptions import (
    MetadataDescription,
    describe_metadata,
    high_watermarks,
    log_end_offsets,
)
from tidelog.client.admin.offsets import ListedOffset
from tidelog.client.admin.question import Question
from tidelog.cluster.layout import NodePlan
from tidelog.cluster.observing import QUORUM_NOW, newest_quorum
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
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition

if TYPE_CHECKING:
    from tidelog.cluster.breaking import Breaking

PARTITIONS_MAX = 200
Told = QuorumDescription | ClusterDescription | MetadataDescription | None
Offsets = dict[TopicPartition, ListedOffset]


def survey(cluster: Breaking, *, timeout_s: float) -> ClusterStatus:
    """Two rounds of questions: who and what there is, then how far everybody is."""
    launcher = cluster.launcher
    plan = launcher.plan
    told = _ask_all(cluster, launcher.responsive(), timeout_s)
    quorum = newest_quorum(each["quorum"] for each in told.values() if "quorum" in each)
    controller = None if quorum is None else quorum.leader_id
    source = _best_source(told, controller)
    clusters = told[source].get("cluster") if source is not None else None
    seen = told[source].get("picture") if source is not None else None
    partitions = sorted(_partitions(seen)) if isinstance(seen, MetadataDescription) else []
    shown = [status for _, status in partitions[:PARTITIONS_MAX]]
    return ClusterStatus(
        cluster_id=plan.cluster_id,
        data=str(launcher.directory.root),
        bootstrap_servers=plan.bootstrap_servers,
        profile=plan.profile,
        controller=controller,
        quorum_epoch=None if quorum is None else quorum.quorum_epoch,
        nodes=tuple(
            _node(cluster, node, told, clusters, is_active=node.id == controller)
            for node in plan.nodes
        ),
        partitions=tuple(_with_offsets(cluster, shown, set(told), timeout_s)),
        partitions_total=len(partitions) if isinstance(seen, MetadataDescription) else None,
        faults=tuple(cluster.book.notes()),
    )


def _ask_all(
    cluster: Breaking, nodes: Iterable[int], timeout_s: float
) -> dict[int, dict[str, Told]]:
    """By node: what it answered, by question; nodes that answered nothing are left out."""
    brokers = set(cluster.broker_ids)
    questions: dict[tuple[int, str], tuple[int, Question[Told]]] = {}
    for each in nodes:
        questions[each, "quorum"] = (each, QUORUM_NOW)  # type: ignore[assignment]
        about_cluster = describe_cluster(with_fenced=True)
        questions[each, "cluster"] = (each, about_cluster)  # type: ignore[assignment]
        if each in brokers:
            questions[each, "picture"] = (each, describe_metadata())  # type: ignore[assignment]
    told: dict[int, dict[str, Told]] = {}
    answers = cluster.observer.ask_each(questions, timeout_s=timeout_s, quorum_within_s=timeout_s)
    for (node_id, name), answer in answers.items():
        told.setdefault(node_id, {})[name] = answer
    return told


def _best_source(told: Mapping[int, Mapping[str, Told]], controller: int | None) -> int | None:
    """Whose picture to believe: the controller's, else the one with the newest leader epochs."""
    known = {node: each["picture"] for node, each in told.items() if "picture" in each}
    if controller in known:
        return controller
    return max(known, key=lambda node: _newness(known[node]), default=None)


def _newness(told: Told) -> int:
    if not isinstance(told, MetadataDescription):
        return -1
    return sum(
        each.leader_epoch or 0
        for topic in told.topics.values()
        for each in topic.partitions.values()
    )


def _node(
    cluster: Breaking,
    node: NodePlan,
    told: Mapping[int, Mapping[str, Told]],
    seen: Told,
    *,
    is_active: bool,
) -> NodeStatus:
    process = cluster.launcher.process(node.id)
    if process is None:
        state = DOWN
    elif process.is_paused:
        state = PAUSED
    elif node.id not in told:
        state = SILENT
    elif (
        node.is_broker and isinstance(seen, ClusterDescription) and not _is_unfenced(node.id, seen)
    ):
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
        log_path=str(cluster.launcher.directory.log(node.id)),
    )


def _is_unfenced(broker_id: int, seen: ClusterDescription) -> bool:
    return broker_id in seen.brokers and broker_id not in seen.fenced


def _partitions(seen: MetadataDescription) -> Iterable[tuple[tuple[str, int], PartitionStatus]]:
    for name, topic in seen.topics.items():
        for index, told in topic.partitions.items():
            yield (
                (name, index),
                PartitionStatus(
                    topic=name,
                    partition=index,
                    leader=told.leader_id,
                    leader_epoch=told.leader_epoch,
                    isr=told.isr,
                    replicas=told.replicas,
                ),
            )


def _with_offsets(
    cluster: Breaking, partitions: list[PartitionStatus], nodes: set[int], timeout_s: float
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
    told = cluster.observer.ask_each(questions, timeout_s=timeout_s) if questions else {}
    for each in partitions:
        name = TopicPartition(each.topic, each.partition)
        ends = {
            node: end
            for node in sorted(each.replicas)
            if (end := _offset(told.get((node, "held")), name)) is not None
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
            else _offset(told.get((each.leader, "led")), name),
            log_end_offsets=ends,
        )


def _offset(told: Offsets | None, name: TopicPartition) -> int | None:
    found = None if told is None else told.get(name)
    return found.offset if found is not None and found.error == ErrorCode.NONE else None
