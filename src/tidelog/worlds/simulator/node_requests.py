"""What nodes ask of each other, as somebody may send it who is no node.

Each would change something, or tell something, if it came from a node of the cluster.
"""

from __future__ import annotations

from tidelog.core.model.ids import METADATA_TOPIC_ID
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.wire.codec import encode
from tidelog.core.wire.headers import request_header
from tidelog.core.wire.links import Outgoing
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from tidelog.core.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.core.wire.messages.api_52_vote import (
    VoteRequest,
    VoteRequestPartition,
    VoteRequestTopic,
)
from tidelog.core.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartition,
    AlterPartitionRequestTopic,
    BrokerState,
)
from tidelog.core.wire.messages.api_58_envelope import EnvelopeRequest
from tidelog.core.wire.messages.api_62_broker_registration import (
    BrokerRegistrationRequest,
    Listener,
)
from tidelog.core.wire.sentinels import UNKNOWN_BROKER_EPOCH

NEW_BROKER = 99
FETCH_VERSION = 17
_CREATE_TOPICS_VERSION = 7
_BYTES_MAX = 1 << 20


def vote(*, quorum_epoch: int, voter: int) -> Outgoing:
    """A candidate that is ahead of everybody."""
    partition = VoteRequestPartition(
        partition_index=0,
        replica_epoch=quorum_epoch,
        replica_id=1 if voter != 1 else 2,
        last_offset_epoch=quorum_epoch,
        last_offset=1_000_000,
    )
    topic = VoteRequestTopic(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=None, voter_id=voter, topics=[topic]), 2


def registration() -> Outgoing:
    """A broker that nobody has started."""
    request = BrokerRegistrationRequest(
        broker_id=NEW_BROKER,
        incarnation_id=bytes(range(16)),
        listeners=[Listener(name="PLAINTEXT", host="stranger", port=9092, security_protocol=0)],
        log_dirs=[bytes(range(1, 17))],
    )
    return request, 4


def envelope(*, topic: str) -> Outgoing:
    """CreateTopics as if a client had sent it to a broker."""
    wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    version = _CREATE_TOPICS_VERSION
    head = request_header(CreateTopicsRequest.api_key, version, correlation_id=1, client_id=None)
    body = encode(CreateTopicsRequest(topics=[wanted], timeout_ms=1_000), version)
    return EnvelopeRequest(request_data=head + body, request_principal=None), 0


def alter_partition(*, topic_id: bytes, leader: int, broker_epoch: int) -> Outgoing:
    """A leader that says to be alone."""
    partition = AlterPartitionRequestPartition(
        partition_index=0,
        leader_epoch=0,
        new_isr_with_epochs=[BrokerState(broker_id=leader, broker_epoch=UNKNOWN_BROKER_EPOCH)],
        partition_epoch=0,
    )
    topic = AlterPartitionRequestTopic(topic_id=topic_id, partitions=[partition])
    return AlterPartitionRequest(broker_id=leader, broker_epoch=broker_epoch, topics=[topic]), 3


def follower_fetch(*, topic_id: bytes, replica_id: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=_BYTES_MAX)
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=UNKNOWN_BROKER_EPOCH),
        max_wait_ms=0,
        max_bytes=_BYTES_MAX,
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
    )


def metadata_fetch() -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=_BYTES_MAX)
    topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return FetchRequest(max_wait_ms=0, max_bytes=_BYTES_MAX, topics=[topic])
