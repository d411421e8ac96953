"""Questions about the cluster as a whole: its members, its quorum, and elections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.client.admin.question import (
    AdminOutcome,
    AnyNode,
    Question,
    RetryLater,
    TheBroker,
    needs_another_try,
    outcome,
)
from tidelog.client.cluster_metadata import BrokerNode
from tidelog.client.config import Address
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from tidelog.core.wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
    DescribeQuorumResponse,
    ReplicaState,
)
from tidelog.core.wire.messages.api_60_describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidelog.core.wire.messages.api_64_unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tidelog.core.wire.schema import Message

METADATA_TOPIC = "__cluster_metadata"
PREFERRED = 0
UNCLEAN = 1
_LISTS_FENCED_FROM = 2


class ClusterDescription(NamedTuple):
    """The cluster's name and members."""

    cluster_id: str
    controller_id: int | None
    brokers: dict[int, BrokerNode]
    fenced: frozenset[int]


class QuorumReplica(NamedTuple):
    """How far a voter or observer has copied the metadata log, as the leader knows."""

    id: int
    log_end_offset: int | None
    directory_id: bytes | None = None
    last_fetch_ms: int | None = None
    """On the leader's wall clock."""
    last_caught_up_ms: int | None = None


class QuorumInfo(NamedTuple):
    """The quorum as its leader sees it, or why not."""

    error: ErrorCode
    leader_id: int | None
    quorum_epoch: int
    high_watermark: int | None
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    message: str | None = None


def describe_cluster(
    *, broker_id: int | None = None, with_fenced: bool = False
) -> Question[ClusterDescription]:
    """As any broker, or as this broker, knows it."""

    def read(answer: Message) -> ClusterDescription:
        assert isinstance(answer, DescribeClusterResponse)
        brokers = {
            each.broker_id: BrokerNode(each.broker_id, Address(each.host, each.port), each.rack)
            for each in answer.brokers
        }
        fenced = frozenset(each.broker_id for each in answer.brokers if each.is_fenced)
        return ClusterDescription(answer.cluster_id, _known(answer.controller_id), brokers, fenced)

    request = DescribeClusterRequest(include_fenced_brokers=with_fenced)
    newest = None if with_fenced else _LISTS_FENCED_FROM - 1
    return Question(request=request, read=read, target=_target(broker_id), version_max=newest)


def describe_quorum(*, broker_id: int | None = None) -> Question[QuorumInfo]:
    """Answered by the leader of the quorum, whoever is asked."""
    partition = DescribeQuorumRequestPartition(partition_index=0)
    topic = DescribeQuorumRequestTopic(topic_name=METADATA_TOPIC, partitions=[partition])

    def read(answer: Message) -> QuorumInfo | RetryLater:
        assert isinstance(answer, DescribeQuorumResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if not answer.topics or not answer.topics[0].partitions:
            return (
                RetryLater(error)
                if error != ErrorCode.NONE
                else RetryLater(ErrorCode.NOT_CONTROLLER)
            )
        quorum = answer.topics[0].partitions[0]
        error = ErrorCode.from_wire(quorum.error_code) if error == ErrorCode.NONE else error
        if needs_another_try(error, of_leader=True):
            return RetryLater(error)
        return QuorumInfo(
            error,
            _known(quorum.leader_id),
            quorum.leader_epoch,
            _known(quorum.high_watermark),
            _replicas(quorum.current_voters),
            _replicas(quorum.observers),
            quorum.error_message or answer.error_message,
        )

    request = DescribeQuorumRequest(topics=[topic])
    return Question(request=request, read=read, target=_target(broker_id))


def elect_leaders(
    kind: int, partitions: Iterable[TopicPartition] | None = None
) -> Question[dict[TopicPartition, AdminOutcome]]:
    """PREFERRED or UNCLEAN, for these partitions or for all that can be helped."""
    topics: dict[str, TopicPartitions] | None = None
    wanted = None if partitions is None else tuple(partitions)
    if wanted is not None:
        topics = {}
        for each in wanted:
            topic = topics.setdefault(each.topic, TopicPartitions(topic=each.topic))
            topic.partitions.append(each.index)
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None if topics is None else list(topics.values()),
    )

    def read(answer: Message) -> dict[TopicPartition, AdminOutcome] | RetryLater:
        assert isinstance(answer, ElectLeadersResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if needs_another_try(error):
            return RetryLater(error)
        if error != ErrorCode.NONE and not answer.replica_election_results:
            # Refused as a whole: it must not look like an election that was not needed.
            return (
                RetryLater(error) if wanted is None else dict.fromkeys(wanted, AdminOutcome(error))
            )
        return {
            TopicPartition(topic.topic, each.partition_id): AdminOutcome(
                ErrorCode.from_wire(each.error_code) if error == ErrorCode.NONE else error,
                each.error_message,
            )
            for topic in answer.replica_election_results
            for each in topic.partition_result
        }

    return Question(request=request, read=read)


def unregister_broker(broker_id: int) -> Question[AdminOutcome]:
    """Remove the registration of a broker that will not come back."""

    def read(answer: Message) -> AdminOutcome | RetryLater:
        assert isinstance(answer, UnregisterBrokerResponse)
        return outcome(answer.error_code, answer.error_message)

    return Question(request=UnregisterBrokerRequest(broker_id=broker_id), read=read)


def _replicas(states: Iterable[ReplicaState]) -> tuple[QuorumReplica, ...]:
    return tuple(
        QuorumReplica(
            each.replica_id,
            _known(each.log_end_offset),
            bytes(each.replica_directory_id) if any(each.replica_directory_id) else None,
            _known(each.last_fetch_timestamp),
            _known(each.last_caught_up_timestamp),
        )
        for each in states
    )


def _target(broker_id: int | None) -> AnyNode | TheBroker:
    return AnyNode() if broker_id is None else TheBroker(broker_id)


def _known(number: int) -> int | None:
    return None if number < 0 else number
