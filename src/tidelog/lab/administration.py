"""What an administrator asks for in a story: topics on brokers, moves, settings, elections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.core.wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from tidelog.core.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tidelog.core.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.core.wire.messages.api_57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tidelog.lab.evidence import Topic

if TYPE_CHECKING:
    from tidelog.lab.lab import Lab

SAFE_DOWNGRADE = 2
ELECTIONS = {"preferred": 0, "unclean": 1}
TOPIC_RESOURCE = 2
SET = 0


def create(
    lab: Lab, name: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str]
) -> Topic:
    """One partition for each list of replicas, the preferred leader first."""
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes))
        for index, nodes in enumerate(replicas)
    ]
    wanted = CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=assignments
    )
    return _create(lab, wanted, configs)


def create_anywhere(lab: Lab, name: str, *, partitions: int, replication_factor: int) -> Topic:
    """The controller places the replicas."""
    wanted = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replication_factor
    )
    return _create(lab, wanted, {})


def _create(lab: Lab, wanted: CreatableTopic, configs: Mapping[str, str]) -> Topic:
    wanted.configs = [
        CreatableTopicConfig(name=key, value=value) for key, value in sorted(configs.items())
    ]
    answer = lab.ask_any(CreateTopicsRequest(topics=[wanted], timeout_ms=5_000), 7)
    assert isinstance(answer, CreateTopicsResponse), answer
    made = answer.topics[0]
    assert made.error_code == ErrorCode.NONE, made
    return Topic(name=wanted.name, topic_id=made.topic_id)


def elect(lab: Lab, kind: str, index: int) -> ErrorCode:
    """ElectLeaders for one partition of the story's topic."""
    request = ElectLeadersRequest(
        election_type=ELECTIONS[kind],
        topic_partitions=[TopicPartitions(topic=lab.topic.name, partitions=[index])],
        timeout_ms=5_000,
    )
    answer = lab.ask_any(request, 2)
    assert isinstance(answer, ElectLeadersResponse), answer
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    return ErrorCode(answer.replica_election_results[0].partition_result[0].error_code)


def reassign(lab: Lab, replicas: Sequence[int] | None, index: int) -> ErrorCode:
    """AlterPartitionReassignments for one partition of the story's topic; None cancels."""
    partition = ReassignablePartition(
        partition_index=index, replicas=None if replicas is None else list(replicas)
    )
    topic = ReassignableTopic(name=lab.topic.name, partitions=[partition])
    answer = lab.ask_any(AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=5_000), 0)
    assert isinstance(answer, AlterPartitionReassignmentsResponse), answer
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    return ErrorCode(answer.responses[0].partitions[0].error_code)


def configure(lab: Lab, topic: Topic, name: str, value: str) -> None:
    """Set one of a topic's settings."""
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name=topic.name,
        configs=[AlterableConfig(name=name, config_operation=SET, value=value)],
    )
    answer = lab.ask_any(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(answer, IncrementalAlterConfigsResponse), answer
    assert answer.responses[0].error_code == ErrorCode.NONE, answer.responses[0]


def lower_feature(lab: Lab, name: str, level: int) -> None:
    """Set a feature of the cluster back to an earlier level."""
    update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=SAFE_DOWNGRADE)
    answer = lab.ask_any(UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert isinstance(answer, UpdateFeaturesResponse), answer
    assert answer.error_code == ErrorCode.NONE, answer
