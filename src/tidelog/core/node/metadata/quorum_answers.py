"""What the answers among voters have in common: who may ask, and where the leader is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.node.metadata.metadata_log import MetadataLog

UNKNOWN = -1
E = TypeVar("E")


def refuse_whole(metadata: MetadataLog, cluster_id: str | None, topics: Sequence[Any]) -> ErrorCode:
    """Why nothing of this request is looked at: another cluster's, or not about the metadata."""
    if cluster_id not in (None, metadata.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return ErrorCode.INVALID_REQUEST
    if topics[0].topic_name != METADATA_TOPIC or topics[0].partitions[0].partition_index != 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def refuse_past(metadata: MetadataLog, quorum_epoch: int, leader_id: int) -> ErrorCode:
    """Why a leader is not believed: it is of a past epoch, or names no node."""
    if quorum_epoch < metadata.quorum.quorum_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if leader_id < 0 else ErrorCode.NONE


def leader_or_unknown(metadata: MetadataLog) -> int:
    leader_id = metadata.quorum.machine.leader_id
    return UNKNOWN if leader_id is None else leader_id


def endpoint_of_leader(metadata: MetadataLog, make: Callable[..., E]) -> list[E]:
    """Where the leader that an answer names is reached."""
    leader = metadata.quorum.addresses.get(leader_or_unknown(metadata))
    if leader is None:
        return []
    return [make(node_id=leader.node_id, host=leader.host, port=leader.port)]
