"""FindCoordinator: the leader of a group's partition of `__consumer_offsets`, made on demand."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.lone_broker import LoneBroker
from tests.unit.core.node.given import Broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.node.api import HANDLERS
from tidelog.core.node.api import api_10_find_coordinator as api
from tidelog.core.node.coordinators.internal_topics import WAIT_MS_MAX
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


@pytest.mark.parametrize("version", api.VERSIONS[:4])
def test_the_first_to_ask_has_the_topic_made_and_gets_an_answer(version: int) -> None:
    """Kafka would answer COORDINATOR_NOT_AVAILABLE until the topic is there."""
    broker = LoneBroker()

    response = broker.ask(FindCoordinatorRequest(key="g"), version)

    assert response.error_code == ErrorCode.NONE
    assert (response.node_id, response.host, response.port) == (1, "localhost", 9092)
    assert OFFSETS_TOPIC in broker.node.image.topics


@pytest.mark.parametrize("version", api.VERSIONS[4:])
def test_many_groups_have_an_answer_each(version: int) -> None:
    call = FindCoordinatorRequest(coordinator_keys=["g", "h", ""], key_type=api.GROUP_KEY)
    response = LoneBroker().ask(call, version)

    assert [each.key for each in response.coordinators] == ["g", "h", ""]
    for each in response.coordinators:
        assert (each.error_code, each.node_id, each.host, each.port) == (0, 1, "localhost", 9092)
        assert each.error_message == ""


def test_the_topic_is_made_as_kafka_makes_it() -> None:
    broker = LoneBroker({"offsets.topic.segment.bytes": "2000000"})
    broker.find_coordinator()

    topic = broker.node.image.topics[OFFSETS_TOPIC]
    assert len(topic.partitions) == 3
    assert all(state.replicas == (1,) for state in topic.partitions)
    assert broker.node.image.topic_config(OFFSETS_TOPIC) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2000000",
        "min.insync.replicas": "1",
    }


def test_metadata_calls_the_topic_internal() -> None:
    broker = LoneBroker()
    broker.find_coordinator()
    call = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)])
    (topic,) = broker.ask(call, 9).topics
    assert topic.is_internal


def test_a_topic_that_cannot_be_made_is_waited_for_and_no_longer() -> None:
    """Three replicas were asked for and there is one broker."""
    broker = LoneBroker({"offsets.topic.replication.factor": "3"})
    broker.send(FindCoordinatorRequest(key="g"), 3)
    broker.broker.pause(WAIT_MS_MAX - 1)
    assert not broker.is_answered

    response = broker.receive(FindCoordinatorRequest(key="g"), 3)

    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert broker.broker.now_ms == WAIT_MS_MAX


@pytest.mark.parametrize("version", api.VERSIONS[4:])
def test_transactional_ids_have_a_coordinator_and_a_topic_of_their_own(version: int) -> None:
    broker = LoneBroker({"transaction.state.log.num.partitions": "2"})
    call = FindCoordinatorRequest(coordinator_keys=["g", "h"], key_type=api.TRANSACTION_KEY)
    response = broker.ask(call, version)

    assert [each.key for each in response.coordinators] == ["g", "h"]
    assert {each.error_code for each in response.coordinators} == {ErrorCode.NONE}
    assert {each.node_id for each in response.coordinators} == {broker.node.settings.node_id}
    topic = broker.node.image.topics["__transaction_state"]
    assert len(topic.partitions) == 2
    assert "__consumer_offsets" not in broker.node.image.topics


def test_nobody_coordinates_share_groups() -> None:
    call = FindCoordinatorRequest(coordinator_keys=["g"], key_type=api.SHARE_KEY)
    (only,) = Broker().ask(api, call, FindCoordinatorResponse, 6).coordinators

    assert only.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (only.node_id, only.host, only.port) == (-1, "", -1)


@pytest.mark.parametrize(("version", "key_type"), [(1, 9), (3, 2), (5, 2), (6, 9)])
def test_an_unknown_kind_of_key_is_refused(version: int, key_type: int) -> None:
    call = FindCoordinatorRequest(key_type=key_type)
    if version >= 4:
        call.coordinator_keys = ["a"]
    response = Broker().ask(api, call, FindCoordinatorResponse, version)

    codes = [each.error_code for each in response.coordinators] or [response.error_code]
    assert codes == [ErrorCode.INVALID_REQUEST]


def test_version_0_is_advertised_which_is_librdkafkas_sign_for_lz4() -> None:
    assert 0 in HANDLERS[api.API_KEY].advertised
