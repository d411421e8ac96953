"""The gates' rules: every direction between two groups, never to oneself."""

from __future__ import annotations

from tidelog.cluster.rules import directions, isolation, listed, numbered, rules_for


def test_ways_lead_there_and_back() -> None:
    assert directions([1], [2, 3], one_way=False) == [(1, 2), (1, 3), (2, 1), (3, 1)]
    assert directions([1], [2, 3], one_way=True) == [(1, 2), (1, 3)]


def test_nobody_is_cut_off_from_himself_and_no_direction_is_given_twice() -> None:
    assert directions([1, 2], [1, 2], one_way=False) == [(1, 2), (2, 1)]
    assert directions([1], [1], one_way=False) == []


def test_a_group_is_isolated_from_all_others_but_not_from_itself() -> None:
    found = set(isolation([1, 3], [1, 2, 3, 4], clients=False))
    there = {(1, 2), (1, 4), (3, 2), (3, 4)}
    assert found == there | {(target, source) for source, target in there}
    assert (1, "clients") in isolation([1], [1, 2], clients=True)
    assert ("clients", 1) in isolation([1], [1, 2], clients=True)


def test_rules_carry_their_fields_ids_and_end() -> None:
    rules = rules_for("delay", [(1, 2), (2, 1)], delay_ms=20)
    assert numbered("f7", rules, 5) == [
        {"id": "f7.1", "what": "delay", "from": 1, "to": 2, "delay_ms": 20, "until_ms": 5},
        {"id": "f7.2", "what": "delay", "from": 2, "to": 1, "delay_ms": 20, "until_ms": 5},
    ]


def test_hosts_in_words() -> None:
    assert listed([]) == ""
    assert listed([1]) == "1"
    assert listed([1, 2, "clients"]) == "1, 2 and clients"
