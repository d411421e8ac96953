"""Vote (api key 52): a voter of the metadata quorum asks the others for their voices.

Version 1 names voters with their directories, 2 brings the pre-vote, which promises nothing.
"""

from __future__ import annotations

from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class VoteRequestPartition(Struct):
    """Who asks, in which epoch, and how far its log goes."""

    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: bytes = uuid("1+", ignorable=True)
    voter_directory_id: bytes = uuid("1+", ignorable=True)
    last_offset_epoch: int = int32()
    last_offset: int = int64()
    pre_vote: bool = boolean("2+")


class VoteRequestTopic(Struct):
    """The metadata topic."""

    topic_name: str = string()
    partitions: list[VoteRequestPartition] = array(VoteRequestPartition)


class VoteRequest(Message, api_key=52, versions="0-2", flexible_from=0):
    """Will you have me as leader?"""

    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[VoteRequestTopic] = array(VoteRequestTopic)


class VoteResponsePartition(Struct):
    """The voice, and the leader that the voter knows, -1 for none."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    vote_granted: bool = boolean()


class VoteResponseTopic(Struct):
    """The metadata topic."""

    topic_name: str = string()
    partitions: list[VoteResponsePartition] = array(VoteResponsePartition)


class NodeEndpoint(Struct):
    """Where to reach a leader named above."""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class VoteResponse(Message, api_key=52, versions="0-2", flexible_from=0):
    """Yes or no."""

    error_code: int = int16()
    topics: list[VoteResponseTopic] = array(VoteResponseTopic)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)
