"""Membership: only nodes are served as nodes, and a node with a wrong secret never joins."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.core.node.strangers import Stranger
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.trace import ListTrace
from tidelog.core.node.api import HANDLERS
from tidelog.core.node.connections.membership import (
    REPEAT_MS,
    LinkNotAuthenticated,
    Membership,
    PeerNotAuthenticated,
)
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_01_fetch import FetchResponse
from tidelog.core.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tidelog.worlds.simulator import node_requests
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.cluster import CLUSTER_SECRET

BETWEEN_NODES = [key for key, api in HANDLERS.items() if api.is_between_nodes]
OTHER_SECRET = "another secret of enough characters"
BROKER = 4


def test_these_are_the_requests_between_nodes() -> None:
    """A list of its own: an API that forgets to say so is served to everybody."""
    assert BETWEEN_NODES == [52, 53, 54, 56, 58, 59, 62, 63, 67, 73]


@pytest.fixture(scope="module")
def stranger() -> Stranger:
    return Stranger()


@pytest.mark.scenario("X-49")
@pytest.mark.parametrize(
    ("api_key", "version"),
    [(key, at(HANDLERS[key].versions)) for key in BETWEEN_NODES for at in (min, max)],
)
def test_strangers_are_refused_as_a_whole(stranger: Stranger, api_key: int, version: int) -> None:
    request_type, answer_type = MESSAGES[api_key]

    answer = stranger.ask(request_type(), version)

    assert answer == answer_type(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


@pytest.mark.scenario("X-49")
def test_what_a_stranger_asks_changes_nothing(stranger: Stranger) -> None:
    node = stranger.node
    before = (node.quorum.quorum_epoch, set(node.image.brokers), set(node.image.topics))

    for request, version in (
        node_requests.vote(quorum_epoch=before[0] + 10, voter=stranger.active_controller),
        node_requests.registration(),
        node_requests.envelope(topic="stolen"),
    ):
        stranger.ask(request, version)
    stranger.run(2_000)

    node = stranger.node
    assert (node.quorum.quorum_epoch, set(node.image.brokers), set(node.image.topics)) == before


@pytest.mark.parametrize("version", [7, 12, 17])
def test_the_metadata_log_is_read_by_nodes_only(stranger: Stranger, version: int) -> None:
    request = node_requests.metadata_fetch()
    if version < 13:
        request.topics[0].topic = "__cluster_metadata"

    answer = stranger.ask(request, version)

    assert isinstance(answer, FetchResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_follower_is_a_node(stranger: Stranger) -> None:
    fetch = node_requests.follower_fetch(topic_id=bytes(16), replica_id=2)

    answer = stranger.ask(fetch, node_requests.FETCH_VERSION)

    assert isinstance(answer, FetchResponse)
    [partition] = answer.responses[0].partitions
    assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert answer.session_id == 0


def test_a_member_is_served() -> None:
    member = Stranger()
    assert member.prove() is None

    answer = member.ask(*node_requests.envelope(topic="wanted"))
    member.run(1_000)

    assert not isinstance(answer, CallFailed)
    assert "wanted" in member.node.image.topics


def test_a_node_alone_has_no_members() -> None:
    alone = Stranger(nodes=1, secret=None)

    answer = alone.ask(*node_requests.registration())

    assert getattr(answer, "error_code", None) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert list(alone.node.image.brokers) == [1]


@pytest.mark.scenario("X-49")
def test_a_node_with_a_wrong_secret_never_joins() -> None:
    """The others form a cluster without it, and both sides say why."""
    cluster = Stranger(secrets_of={3: OTHER_SECRET})
    cluster.run(20_000)

    assert set(cluster.node.image.brokers) == {1, 2}
    outcast = cluster.cluster.node(3)
    assert not outcast.image.brokers
    assert outcast.quorum.machine.leader_id is None
    said = [line for line in cluster.world.trace.lines() if "NotAuthenticated(" in line]
    assert any("node-3" in line and "LinkNotAuthenticated(" in line for line in said)
    assert any("another tidelog.cluster.secret" in line for line in said)
    assert any("PeerNotAuthenticated(" in line and "node-1" in line for line in said)


def test_nothing_is_said_twice_in_a_minute() -> None:
    trace = ListTrace()
    membership = Membership(node_id=1, secret=None, random=Random(1), trace=trace)

    for now_ms in (0, REPEAT_MS - 1, REPEAT_MS):
        membership.on_refused("there", 9092, "no", now_ms)
        membership.on_bad_proof("there:50000", "no", now_ms)
    membership.on_refused("elsewhere", 9092, "no", REPEAT_MS)

    assert len(trace.of(LinkNotAuthenticated)) == 3
    assert len(trace.of(PeerNotAuthenticated)) == 2


def test_nobody_is_told_the_secret(stranger: Stranger) -> None:
    name = str(stranger.active_controller)
    resource = DescribeConfigsResource(
        resource_type=BROKER,
        resource_name=name,
        configuration_keys=["tidelog.cluster.secret"],
    )

    answer = stranger.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4)

    assert isinstance(answer, DescribeConfigsResponse)
    [setting] = answer.results[0].configs
    assert (setting.value, setting.is_sensitive) == (None, True)
    assert CLUSTER_SECRET not in repr(answer)
