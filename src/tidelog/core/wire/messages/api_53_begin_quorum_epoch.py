"""BeginQuorumEpoch (api key 53): a new leader of the metadata quorum informs the voters.

Version 1 is flexible, names voters with their directories and says where the leader is.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, string, uint16, uuid


class BeginQuorumEpochRequestPartition(Struct):
    """The new leader and its epoch."""

    partition_index: int = int32()
    voter_directory_id: bytes = uuid("1+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()


class BeginQuorumEpochRequestTopic(Struct):
    """The metadata topic."""

    topic_name: str = string()
    partitions: list[BeginQuorumEpochRequestPartition] = array(BeginQuorumEpochRequestPartition)


class LeaderEndpoint(Struct):
    """One of the leader's listeners."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class BeginQuorumEpochRequest(Message, api_key=53, versions="0-1", flexible_from=1):
    """I lead from now on."""

    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[BeginQuorumEpochRequestTopic] = array(BeginQuorumEpochRequestTopic)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", ignorable=True)


class BeginQuorumEpochResponsePartition(Struct):
    """The leader that the voter knows, -1 for none."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


class BeginQuorumEpochResponseTopic(Struct):
    """The metadata topic."""

    topic_name: str = string()
    partitions: list[BeginQuorumEpochResponsePartition] = array(BeginQuorumEpochResponsePartition)


class NodeEndpoint(Struct):
    """Where to reach a leader named above."""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class BeginQuorumEpochResponse(Message, api_key=53, versions="0-1", flexible_from=1):
    """Accepted, or refused by a voter of a later epoch."""

    error_code: int = int16()
    topics: list[BeginQuorumEpochResponseTopic] = array(BeginQuorumEpochResponseTopic)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)
