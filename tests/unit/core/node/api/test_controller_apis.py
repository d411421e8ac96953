"""The APIs of the controller in wire bytes: answers in every version, codes, and when they come."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.core.controller.cluster import ID, broker, state
from tests.unit.core.metadata.given import topic, topic_id
from tests.unit.core.node.office import Office
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import (
    api_43_elect_leaders,
    api_46_list_partition_reassignments,
    api_56_alter_partition,
    api_57_update_features,
    api_62_broker_registration,
    api_63_broker_heartbeat,
    api_64_unregister_broker,
    api_67_allocate_producer_ids,
    api_73_assign_replicas_to_dirs,
)
from tidelog.core.wire.codec import decode
from tidelog.core.wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from tidelog.core.wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tidelog.core.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartition,
    AlterPartitionRequestTopic,
    AlterPartitionResponse,
    BrokerState,
)
from tidelog.core.wire.messages.api_57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tidelog.core.wire.messages.api_62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from tidelog.core.wire.messages.api_63_broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from tidelog.core.wire.messages.api_64_unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tidelog.core.wire.messages.api_67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from tidelog.core.wire.messages.api_73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tidelog.core.wire.schema import Message

EXCHANGES: list[tuple[ModuleType, Message, type[Message]]] = [
    (api_43_elect_leaders, ElectLeadersRequest(topic_partitions=None), ElectLeadersResponse),
    (
        api_46_list_partition_reassignments,
        ListPartitionReassignmentsRequest(),
        ListPartitionReassignmentsResponse,
    ),
    (api_56_alter_partition, AlterPartitionRequest(broker_id=1), AlterPartitionResponse),
    (api_57_update_features, UpdateFeaturesRequest(), UpdateFeaturesResponse),
    (
        api_62_broker_registration,
        BrokerRegistrationRequest(broker_id=1, cluster_id="x", rack=None),
        BrokerRegistrationResponse,
    ),
    (api_63_broker_heartbeat, BrokerHeartbeatRequest(broker_id=1), BrokerHeartbeatResponse),
    (api_64_unregister_broker, UnregisterBrokerRequest(broker_id=1), UnregisterBrokerResponse),
    (
        api_67_allocate_producer_ids,
        AllocateProducerIdsRequest(broker_id=1),
        AllocateProducerIdsResponse,
    ),
    (
        api_73_assign_replicas_to_dirs,
        AssignReplicasToDirsRequest(broker_id=1),
        AssignReplicasToDirsResponse,
    ),
]
NAMES = [api.__name__.rsplit(".", 1)[-1] for api, _, _ in EXCHANGES]


def office(*states: PartitionState) -> Office:
    brokers = [broker(each) for each in (1, 2, 3)]
    return Office(*brokers, *topic("t", 1, *(states or (state(1, 2, 3),))))


@pytest.mark.parametrize(("api", "message", "response"), EXCHANGES, ids=NAMES)
def test_who_is_not_the_controller_says_so_in_every_version(
    api: ModuleType, message: Message, response: type[Message]
) -> None:
    given = office()
    given.metadata.is_active = False

    for version in api.VERSIONS:
        if api is api_43_elect_leaders and version == 0:
            continue  # has no place for it when no partition is named
        answer = given.ask(api, message, response, version)
        assert answer.error_code == ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]


@pytest.mark.parametrize(("api", "message", "response"), EXCHANGES, ids=NAMES)
def test_every_answer_waits_for_what_was_decided_before(
    api: ModuleType, message: Message, response: type[Message]
) -> None:
    given = office()
    given.metadata.is_prompt = False
    version = api.VERSIONS[-1]

    answers = given.send(api, message, version)
    assert answers == []
    given.metadata.commit()

    (answer,) = answers
    decode(response, memoryview(answer), version)


@pytest.mark.parametrize(("api", "message", "response"), EXCHANGES, ids=NAMES)
def test_who_loses_the_office_before_the_commit_says_so(
    api: ModuleType, message: Message, response: type[Message]
) -> None:
    given = office()
    given.metadata.is_prompt = False
    version = api.VERSIONS[-1]

    answers = given.send(api, message, version)
    given.metadata.resign()

    decoded = decode(response, memoryview(answers[0]), version)
    assert decoded.error_code == ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]


def elected(given: Office, *partitions: int, kind: int = 0, version: int = 2) -> dict[int, int]:
    answer = given.ask(
        api_43_elect_leaders,
        ElectLeadersRequest(
            election_type=kind,
            topic_partitions=(
                [TopicPartitions(topic="t", partitions=list(partitions))] if partitions else None
            ),
        ),
        ElectLeadersResponse,
        version,
    )
    (result,) = answer.replica_election_results
    assert result.topic == "t"
    return {each.partition_id: each.error_code for each in result.partition_result}


@pytest.mark.parametrize("version", api_43_elect_leaders.VERSIONS)
def test_elections_are_answered_partition_by_partition(version: int) -> None:
    given = office(state(1, 2, 3, leader=2), state(1, 2, 3), state(1, 2, 3, isr=(2, 3)))

    assert elected(given, 0, 1, 2, 3, version=version) == {0: 0, 1: 84, 2: 80, 3: 3}


def test_an_election_everywhere_does_not_mention_those_that_need_none() -> None:
    given = office(state(1, 2, 3, leader=2), state(1, 2, 3), state(1, 2, 3, isr=(2, 3)))

    assert elected(given) == {0: 0, 2: 80}


def test_an_election_of_an_unknown_kind_is_no_election() -> None:
    given = office(state(1, 2, 3, leader=2))
    request = ElectLeadersRequest(election_type=7, topic_partitions=None)

    answer = given.ask(api_43_elect_leaders, request, ElectLeadersResponse)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert given.partition().leader == 2


def altered(given: Office, *isr: int, version: int = 3, broker_epoch: int = 1) -> Message:
    return given.ask(
        api_56_alter_partition,
        AlterPartitionRequest(
            broker_id=1,
            broker_epoch=broker_epoch,
            topics=[
                AlterPartitionRequestTopic(
                    topic_id=ID,
                    partitions=[
                        AlterPartitionRequestPartition(
                            partition_index=0,
                            leader_epoch=0,
                            partition_epoch=0,
                            new_isr=list(isr) if version < 3 else [],
                            new_isr_with_epochs=(
                                [BrokerState(broker_id=each, broker_epoch=each) for each in isr]
                                if version >= 3
                                else []
                            ),
                        )
                    ],
                ),
                AlterPartitionRequestTopic(
                    topic_id=topic_id(5),
                    partitions=[AlterPartitionRequestPartition(partition_index=4)],
                ),
            ],
        ),
        AlterPartitionResponse,
        version,
    )


@pytest.mark.parametrize("version", api_56_alter_partition.VERSIONS)
def test_a_leader_is_told_the_partition_as_it_will_be(version: int) -> None:
    given = office()

    answer = altered(given, 1, 2, version=version)

    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error_code == ErrorCode.NONE
    (first,), (second,) = (each.partitions for each in answer.topics)
    assert (first.error_code, first.isr, first.leader_id) == (0, [1, 2], 1)
    assert (first.leader_epoch, first.partition_epoch) == (0, 1)
    assert (second.partition_index, second.error_code) == (4, ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_leader_of_another_life_is_refused_as_a_whole() -> None:
    answer = altered(office(), 1, 2, broker_epoch=0)

    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert answer.topics == []


def test_a_state_of_recovery_that_does_not_exist_is_nonsense() -> None:
    partition = AlterPartitionRequestPartition(partition_index=0, leader_recovery_state=7)
    topics = [AlterPartitionRequestTopic(topic_id=ID, partitions=[partition])]
    request = AlterPartitionRequest(broker_id=1, broker_epoch=1, topics=topics)

    answer = office().ask(api_56_alter_partition, request, AlterPartitionResponse)

    assert (answer.error_code, answer.topics) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


def test_a_heartbeat_of_another_life_is_refused() -> None:
    given = office()

    assert given.beat(1, broker_epoch=0).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert given.beat(5, broker_epoch=1).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("version", api_62_broker_registration.VERSIONS)
def test_a_registration_without_directories_is_invalid_in_every_version(version: int) -> None:
    """Versions that cannot name them are too old for what the cluster has agreed on."""
    given = office()
    request = BrokerRegistrationRequest(broker_id=4, cluster_id="c", rack=None)

    answer = given.ask(api_62_broker_registration, request, BrokerRegistrationResponse, version)

    assert answer.error_code == ErrorCode.INVALID_REGISTRATION
    assert answer.broker_epoch == -1


def test_registrations_of_another_cluster_or_of_zookeeper_are_refused() -> None:
    given = office()
    request = BrokerRegistrationRequest(
        broker_id=4, cluster_id="c", rack=None, is_migrating_zk_broker=True
    )

    assert given.register(4, cluster_id="d").error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    answer = given.ask(api_62_broker_registration, request, BrokerRegistrationResponse)
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_is_forgotten_once() -> None:
    given = office()
    request = UnregisterBrokerRequest(broker_id=1)

    answer = given.ask(api_64_unregister_broker, request, UnregisterBrokerResponse)
    again = given.ask(api_64_unregister_broker, request, UnregisterBrokerResponse)

    assert (answer.error_code, answer.error_message) == (0, "")
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert 1 not in given.brokers
    assert given.partition().isr == (2, 3)
    assert given.beat(1, broker_epoch=1).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.scenario("D4-I3")
def test_blocks_of_producer_ids_never_overlap_and_need_the_right_broker_epoch() -> None:
    given = office()

    def reserve(broker_id: int, broker_epoch: int) -> tuple[int, int, int]:
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        answer = given.ask(api_67_allocate_producer_ids, request, AllocateProducerIdsResponse)
        return answer.error_code, answer.producer_id_start, answer.producer_id_len

    assert reserve(1, 1) == (0, 0, 1_000)
    assert reserve(2, 2) == (0, 1_000, 1_000)
    assert reserve(1, 2) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)
    assert reserve(7, 1) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)


def test_no_replica_is_on_the_move() -> None:
    answer = office().ask(
        api_46_list_partition_reassignments,
        ListPartitionReassignmentsRequest(),
        ListPartitionReassignmentsResponse,
    )

    assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", api_57_update_features.VERSIONS)
def test_features_change_together_or_not_at_all(version: int) -> None:
    given = Office()
    features = given.metadata.decided_image.features

    def update(*wishes: tuple[str, int], kind: int = 1) -> int:
        keys = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in wishes]
        for key in keys if version > 0 else ():
            key.upgrade_type = kind
        answer = given.ask(
            api_57_update_features,
            UpdateFeaturesRequest(feature_updates=keys),
            UpdateFeaturesResponse,
            version,
        )
        is_told = answer.error_code == 0 and version <= 1
        assert [each.feature for each in answer.results] == [n for n, _ in wishes if is_told]
        return answer.error_code

    assert update(("group.version", 0)) == 95, "downwards needs a word"
    assert update(("metadata.version", 31)) == 95
    assert update(("metadata.version", 30), ("tides.version", 1)) == 95
    assert update(("metadata.version", 30)) == 0
    if version > 0:
        assert update(("group.version", 0), kind=2) == 0
        assert "group.version" not in features
        assert update(("group.version", 1), kind=2) == 95
        assert update(("metadata.version", 29), kind=2) == 95
        assert update(("group.version", 1), kind=9) == 95
        assert update(("group.version", 1)) == 0
    assert features["group.version"] == 1


def test_directories_are_answered_replica_by_replica_in_the_order_asked() -> None:
    given = office(state(1, 2, 3), state(2, 3))
    one, two = b"1" * 16, b"2" * 16
    mine, other = PartitionData(partition_index=0), PartitionData(partition_index=1)
    asked = [
        DirectoryData(id_=two, topics=[TopicData(topic_id=ID, partitions=[other, mine])]),
        DirectoryData(id_=one, topics=[TopicData(topic_id=topic_id(9), partitions=[mine])]),
    ]

    answer = given.ask(
        api_73_assign_replicas_to_dirs,
        AssignReplicasToDirsRequest(broker_id=1, broker_epoch=1, directories=asked),
        AssignReplicasToDirsResponse,
    )

    told = [
        (directory.id_, each.partition_index, each.error_code)
        for directory in answer.directories
        for by_topic in directory.topics
        for each in by_topic.partitions
    ]
    assert told == [(two, 1, 6), (two, 0, 0), (one, 0, 100)]
    assert given.partition().directory(1) == two


def test_directories_of_a_former_process_are_not_taken_down() -> None:
    answer = office().ask(
        api_73_assign_replicas_to_dirs,
        AssignReplicasToDirsRequest(broker_id=1, broker_epoch=0),
        AssignReplicasToDirsResponse,
    )

    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
