"""EndQuorumEpoch (api key 54): a leader of the metadata quorum resigns and names successors.

Version 1 is flexible, names the candidates with their directories and says where the leader is.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, string, uint16, uuid


class ReplicaInfo(Struct):
    """A candidate for the next election."""

    candidate_id: int = int32()
    candidate_directory_id: bytes = uuid()


class EndQuorumEpochRequestPartition(Struct):
    """The leader that resigns; the best successor comes first."""

    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(int32, "0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, "1+", ignorable=True)


class EndQuorumEpochRequestTopic(Struct):
    """The metadata topic."""

    topic_name: str = string()
    partitions: list[EndQuorumEpochRequestPartition] = array(EndQuorumEpochRequestPartition)


class LeaderEndpoint(Struct):
    """One of the leader's listeners."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class EndQuorumEpochRequest(Message, api_key=54, versions="0-1", flexible_from=1):
    """I lead no longer: elect another."""

    cluster_id: str | None = string(nullable="0+", default=None)
    topics: list[EndQuorumEpochRequestTopic] = array(EndQuorumEpochRequestTopic)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", ignorable=True)


class EndQuorumEpochResponsePartition(Struct):
    """The leader that the voter knows, -1 for none."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


class EndQuorumEpochResponseTopic(Struct):
    """The metadata topic."""

    topic_name: str = string()
    partitions: list[EndQuorumEpochResponsePartition] = array(EndQuorumEpochResponsePartition)


class NodeEndpoint(Struct):
    """Where to reach a leader named above."""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class EndQuorumEpochResponse(Message, api_key=54, versions="0-1", flexible_from=1):
    """Accepted, or refused by a voter of a later epoch."""

    error_code: int = int16()
    topics: list[EndQuorumEpochResponseTopic] = array(EndQuorumEpochResponseTopic)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)
