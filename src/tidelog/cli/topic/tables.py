"""Topics in words: what a survey found, as JSON for programs and as columns for people."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidelog.cli.text_columns import cell, columns

if TYPE_CHECKING:
    from tidelog.client.shells.topic_descriptions import (
        DescribedPartition,
        DescribedTopic,
        DescribedTopics,
    )

_PARTITION = ("partition", "leader", "leader epoch", "replicas", "isr", "elr", "last known elr")


def topic_id_text(topic_id: bytes | None) -> str | None:
    """Kafka's form: sixteen bytes in url-safe base64 without padding."""
    if topic_id is None or not any(topic_id):
        return None
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def survey_json(found: DescribedTopics, *, with_offsets: bool) -> dict[str, Any]:
    return {
        "topics": [topic_json(each, with_offsets=with_offsets) for each in found.topics.values()],
        "racks": {str(broker_id): rack for broker_id, rack in sorted(found.racks.items())},
    }


def topic_json(topic: DescribedTopic, *, with_offsets: bool) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": topic_id_text(topic.topic_id),
        "internal": topic.is_internal,
        "replication_factor": replication_factor(topic),
        "configs": topic.configs,
        "partitions": [_partition_json(each, with_offsets) for each in topic.partitions],
    }


def _partition_json(partition: DescribedPartition, with_offsets: bool) -> dict[str, Any]:
    state = partition.state
    document: dict[str, Any] = {
        "partition": state.partition,
        "leader": state.leader_id,
        "leader_epoch": state.leader_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "elr": None if state.eligible_leaders is None else list(state.eligible_leaders),
        "last_known_elr": (
            None if state.last_known_leaders is None else list(state.last_known_leaders)
        ),
        "offline": list(state.offline),
        "adding": list(partition.move.adding) if partition.move else [],
        "removing": list(partition.move.removing) if partition.move else [],
    }
    if with_offsets:
        document["high_watermark"] = partition.high_watermark
        document["log_end_offsets"] = {
            str(broker_id): offset for broker_id, offset in partition.log_end_offsets.items()
        }
    return document


def replication_factor(topic: DescribedTopic) -> int:
    return max((len(each.state.replicas) for each in topic.partitions), default=0)


def topic_text(
    topic: DescribedTopic, racks: Mapping[int, str | None], *, with_offsets: bool
) -> str:
    """A line about the topic, then a line for each partition."""
    words = [f"topic {topic.name}", f"id {topic_id_text(topic.topic_id) or '-'}"]
    words.append(f"replication factor {replication_factor(topic)}")
    if topic.configs:
        words.append("configs " + ",".join(f"{key}={each}" for key, each in topic.configs.items()))
    used = sorted({each for one in topic.partitions for each in one.state.replicas})
    placed = [f"{each}={racks[each]}" for each in used if racks.get(each) is not None]
    if placed:
        words.append("racks " + ",".join(placed))
    header = [*_PARTITION, "offline"]
    header += ["high watermark", "log ends"] if with_offsets else []
    with_moves = any(each.move is not None for each in topic.partitions)
    header += ["adding", "removing"] if with_moves else []
    rows = [_row(each, with_offsets, with_moves) for each in topic.partitions]
    table = "\n".join(f"  {line}" for line in columns(header, rows).splitlines())
    return f"{'  '.join(words)}\n{table}"


def _row(partition: DescribedPartition, with_offsets: bool, with_moves: bool) -> list[str]:
    state = partition.state
    row: list[object] = [
        state.partition,
        "none" if state.leader_id is None else state.leader_id,
        state.leader_epoch,
        state.replicas,
        state.isr,
        state.eligible_leaders,
        state.last_known_leaders,
        state.offline,
    ]
    if with_offsets:
        ends = partition.log_end_offsets.items()
        row.append("?" if partition.high_watermark is None else partition.high_watermark)
        row.append(" ".join(f"{each}:{'?' if end is None else end}" for each, end in ends))
    if with_moves:
        move = partition.move
        row += [None, None] if move is None else [move.adding, move.removing]
    return [cell(each) for each in row]
