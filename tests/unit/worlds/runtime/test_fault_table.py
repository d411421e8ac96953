"""The table of faults: which rule concerns which way, how long, and how often."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tidelog.core.model.ids import TopicPartition
from tidelog.faults.fields import BadRule
from tidelog.faults.hosts import Host
from tidelog.faults.rules import read_rule, read_rules
from tidelog.worlds.runtime.fault_table import FaultTable, LinkDirection, matches

PEERS = {"127.0.0.1:9091": 1, "127.0.0.1:9092": 2, "127.0.0.1:9093": 3}
PRODUCE, FETCH = 0, 1


def table(*rules: dict[str, Any]) -> FaultTable:
    made = FaultTable(node_id=1, random=Random(1))
    made.replace(
        read_rules([{"id": f"r{number}", **rule} for number, rule in enumerate(rules)]), PEERS
    )
    return made


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        (1, 1, True),
        (1, 2, False),
        (1, "1", False),
        (1, None, False),
        ("*", 1, True),
        ("*", "app", True),
        ("*", None, True),
        ("clients", "app", True),
        ("clients", "", True),
        ("clients", 1, False),
        ("clients", None, False),
        ("client:app", "app", True),
        ("client:app", "other", False),
        ("client:app", 1, False),
    ],
)
def test_who_is_meant(pattern: Host, host: Host | None, expected: bool) -> None:
    assert matches(pattern, host) is expected


@pytest.mark.parametrize(
    ("rule", "way", "is_cut"),
    [
        ({"from": 1, "to": 2}, LinkDirection(1, 2, "replica"), True),
        ({"from": 1, "to": 2}, LinkDirection(2, 1, "replica"), False),
        ({"from": 1, "to": 2}, LinkDirection(1, 3, "replica"), False),
        ({"from": 1, "to": 2, "purpose": "quorum"}, LinkDirection(1, 2, "replica"), False),
        ({"from": 1, "to": 2, "purpose": "quorum"}, LinkDirection(1, 2, "quorum"), True),
        ({"from": 1, "to": 2, "purpose": "quorum"}, LinkDirection(1, 2), False),
        ({"from": "*", "to": 2}, LinkDirection(1, 2, "probe"), True),
        ({"from": "*", "to": "*"}, LinkDirection(1, None, "probe"), True),
        ({"from": "*", "to": "*"}, LinkDirection(1, 1, "probe"), False),
        ({"from": "clients", "to": 1}, LinkDirection("app", 1), True),
        ({"from": "clients", "to": 1}, LinkDirection(2, 1), False),
    ],
)
def test_which_way_is_cut(rule: dict[str, Any], way: LinkDirection, is_cut: bool) -> None:
    assert table({"what": "cut", **rule}).is_cut(way) is is_cut


def test_a_hold_is_no_cut_and_no_delay() -> None:
    held = table({"what": "hold", "from": 1, "to": 2, "purpose": "replica"})
    way = LinkDirection(1, 2, "replica")
    assert held.is_held(way) and not held.is_cut(way) and not held.is_slow(way)


def test_delays_add_up_and_jitter_stays_in_its_bounds() -> None:
    slow = table(
        {"what": "delay", "from": 1, "to": "*", "delay_ms": 10},
        {"what": "delay", "from": "*", "to": 2, "delay_ms": 20, "jitter_ms": 5},
    )
    thrown = {slow.delay_ms(LinkDirection(1, 2)) for _ in range(200)}
    assert thrown == set(range(30, 36))
    assert slow.delay_ms_max(LinkDirection(1, 2)) == 35
    assert slow.delay_ms(LinkDirection(2, 1)) == 0


def test_losses_come_as_often_as_their_chance_says() -> None:
    lossy = table({"what": "drop", "from": 1, "to": 2, "chance": 0.25})
    lost = sum(lossy.is_lost(LinkDirection(1, 2)) for _ in range(4_000))
    assert 900 < lost < 1_100
    assert lossy.counts == {"r0": lost}
    assert not any(lossy.is_lost(LinkDirection(2, 1)) for _ in range(100))


@pytest.mark.parametrize(
    ("client_id", "host"),
    [
        ("node-2", 2),
        ("node-1", 1),
        ("node-7", "node-7"),
        ("node-", "node-"),
        ("node-x", "node-x"),
        ("app", "app"),
        (None, ""),
    ],
)
def test_nodes_are_known_by_their_client_ids(client_id: str | None, host: Host) -> None:
    """A client may call itself like a node that does not exist."""
    assert table().host_of(client_id) == host


def test_nodes_are_known_by_their_addresses() -> None:
    assert table().node_at("localhost", 9092) == 2
    assert table().node_at("127.0.0.1", 9999) is None


def test_a_rule_about_an_unknown_node_is_refused() -> None:
    with pytest.raises(BadRule, match="names node 9, which is not in"):
        table().refuse([read_rule({"id": "x", "what": "cut", "from": 1, "to": 9})], PEERS)
    table().refuse([read_rule({"id": "x", "what": "cut", "from": 1, "to": "*"})], {})


def test_rules_end_by_the_wall_clock() -> None:
    cut = {"what": "cut", "from": 1, "to": 2}
    made = table({**cut, "until_ms": 100}, {**cut, "until_ms": 50}, cut)
    assert made.next_end_ms() == 50
    assert not made.expire(49)
    assert made.expire(50)
    assert [rule.id for rule in made.rules] == ["r0", "r2"]
    assert made.expire(1_000)
    assert [rule.id for rule in made.rules] == ["r2"]
    assert made.next_end_ms() is None


def refusals(made: FaultTable, source: Host, count: int) -> list[bool]:
    """For so many requests in a row; every rule sees every one of them."""
    return [
        sum(made.is_refused_by(rule) for rule in made.error_rules(source, PRODUCE)) > 0
        for _ in range(count)
    ]


ERROR = {"what": "error", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}


def test_errors_are_counted_from_the_nth_on() -> None:
    made = table({**ERROR, "nth": 2, "times": 2, "from": "client:a", "to": 1})
    assert refusals(made, "b", 3) == [False] * 3
    assert refusals(made, "a", 5) == [False, True, True, False, False]
    assert made.counts == {"r0": 2}
    assert made.error_rules("a", FETCH) == []


def test_errors_of_other_nodes_are_not_ours() -> None:
    assert table({**ERROR, "to": 2}).error_rules("a", PRODUCE) == []


def test_a_rule_that_stays_goes_on_counting_and_a_changed_one_begins_again() -> None:
    made = table({**ERROR, "nth": 3})
    refusals(made, "a", 2)
    other = read_rule({"id": "more", "what": "cut", "from": 1, "to": 2})
    made.replace((*made.rules, other), PEERS)
    assert refusals(made, "a", 1) == [True]
    made.replace(made.rules[:1], PEERS)
    assert made.counts == {"r0": 1}

    made.replace((made.rules[0]._replace(times=2), other), PEERS)
    assert refusals(made, "a", 3) == [False, False, True]


def test_a_new_life_knows_what_the_last_one_counted() -> None:
    rule = read_rule({"id": "e", **ERROR, "nth": 2, "times": 3})
    made = table()
    made.replace((rule,), PEERS, {"e": 1, "gone": 4})
    assert refusals(made, "a", 3) == [True, True, False]
    assert made.injected_errors((rule,)) == {"e": 3}


def test_held_replicas() -> None:
    made = table({"what": "hold-replica", "replica": 3, "topic": "orders", "partition": 1})
    assert made.held_replicas() == {(3, TopicPartition("orders", 1))}
