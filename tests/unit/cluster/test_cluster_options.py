"""A wish for a cluster, given what is there: resumed as it was, changed where that is possible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidelog.cluster.cluster_options import ClusterOptions, described
from tidelog.cluster.errors import ClusterUsageError
from tidelog.cluster.profiles import PROFILES, profile_settings


def test_a_new_cluster_has_three_brokers_and_ports_of_its_own() -> None:
    plan = ClusterOptions().settle(None)
    assert plan.broker_ids == (1, 2, 3)
    assert plan.profile == "tidelog"
    assert len({node.port for node in plan.nodes}) == 3
    assert all(node.port for node in plan.nodes)
    assert ClusterOptions().settle(None).cluster_id != plan.cluster_id


def test_the_same_wish_or_none_resumes_what_is_there() -> None:
    there = ClusterOptions(brokers=4, racks=("a", "b"), port=9092, settings={"x": 1}).settle(None)
    assert ClusterOptions().settle(there) == there
    assert ClusterOptions(brokers=4, racks=("a", "b")).settle(there) == there


def test_profile_settings_and_ports_may_change_on_the_way() -> None:
    there = ClusterOptions(port=9092, settings={"x": 1}).settle(None)
    resumed = ClusterOptions(port=19_092, profile="fast", settings={"y": 2}).settle(there)
    assert [node.port for node in resumed.nodes] == [19_092, 19_093, 19_094]
    assert (resumed.profile, resumed.settings) == ("fast", {"y": 2})
    assert resumed.cluster_id == there.cluster_id


@pytest.mark.parametrize(
    "wish",
    [
        ClusterOptions(brokers=5),
        ClusterOptions(racks=("a",)),
        ClusterOptions(controllers=3),
        ClusterOptions(brokers=3, racks=("b",)),
    ],
)
def test_who_is_in_it_cannot_be_changed_by_wishing(wish: ClusterOptions) -> None:
    there = ClusterOptions(brokers=3).settle(None)
    with pytest.raises(ClusterUsageError, match="cannot become"):
        wish.settle(there)


def test_settings_of_nodes_are_theirs_alone() -> None:
    plan = ClusterOptions(settings_of={2: {"x": 1}}).settle(None)
    assert [dict(node.settings) for node in plan.nodes] == [{}, {"x": 1}, {}]
    with pytest.raises(ClusterUsageError, match="no node 9"):
        ClusterOptions(settings_of={9: {"x": 1}}).settle(None)


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        (ClusterOptions(port=-1), "port"),
        (ClusterOptions(port=65_534), "port"),
        (ClusterOptions(profile="slow"), "one of: documents, kafka-4, tidelog, fast"),
        (ClusterOptions(brokers=0), "brokers"),
    ],
)
def test_nonsense_is_refused_before_anything_is_there(wish: ClusterOptions, complaint: str) -> None:
    with pytest.raises(ClusterUsageError, match=complaint):
        wish.check()


def test_the_last_port_that_fits_is_fine() -> None:
    ClusterOptions(port=65_533).check()


def test_a_cluster_in_words() -> None:
    nodes = ClusterOptions(brokers=4, racks=("a", "b")).members()
    assert described(nodes) == "4 brokers in racks a, b and 1 controller"
    assert described(ClusterOptions(brokers=1).members()) == "1 broker"
    assert described([replace(nodes[0], rack="a")]) == "1 broker in rack a"


def test_profiles_have_the_same_settings_and_fast_is_a_tenth_of_the_documents() -> None:
    assert {frozenset(each) for each in PROFILES.values()} == {frozenset(PROFILES["tidelog"])}
    for name, value in profile_settings("documents").items():
        fast = PROFILES["fast"][name]
        assert fast == (value if name == "tidelog.failure.detection" else str(int(value) // 10))
