"""Fault rules: what is understood, and a clear line for everything that is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.faults.fields import BadRule
from tidelog.faults.rules import address_key, read_peers, read_rule, read_rules, rule_value

CUT = {"id": "f1", "what": "cut", "from": 1, "to": 2}
ERROR = {"id": "f1", "what": "error", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}

GOOD: list[tuple[dict[str, Any], str]] = [
    (CUT, "cut 1->2"),
    ({**CUT, "until_ms": 5}, "cut 1->2 until_ms=5"),
    ({**CUT, "from": "clients", "to": "*"}, "cut clients->*"),
    ({**CUT, "from": "client:app-7"}, "cut client:app-7->2"),
    ({**CUT, "purpose": "quorum", "until_ms": None}, "cut 1->2 purpose=quorum"),
    ({**CUT, "what": "hold", "purpose": "replica"}, "hold 1->2 purpose=replica"),
    ({**CUT, "what": "delay", "delay_ms": 20}, "delay 1->2 delay_ms=20 jitter_ms=0"),
    ({**CUT, "what": "drop", "chance": 1}, "drop 1->2 chance=1.0"),
    (
        {"id": "f1", "what": "hold-replica", "replica": 3, "topic": "orders", "partition": 0},
        "hold-replica 3 orders-0",
    ),
    (ERROR, "error *->* api=Produce error=NOT_LEADER_OR_FOLLOWER nth=1 times=1"),
    ({**CUT, "delay_ms": None, "replica": None}, "cut 1->2"),
]

BAD: list[tuple[object, str]] = [
    ("cut", "rule number 7 is not an object"),
    ({"what": "cut"}, 'rule number 7: "id" is missing'),
    ({**CUT, "id": 3}, 'rule number 7: "id" is missing or not a text'),
    ({**CUT, "what": "cute"}, "rule 'f1': 'cute' is not a kind of fault; did you mean cut?"),
    ({"id": "f1"}, "None is not a kind of fault; it is one of cut, delay, drop"),
    ({"id": "f1", "what": "cut", "to": 2}, "cut needs the field 'from'"),
    ({**CUT, "delay_ms": 3}, "cut has no field 'delay_ms'"),
    ({**CUT, "untill_ms": 3}, "cut has no field 'untill_ms'; did you mean until_ms?"),
    ({**CUT, "from": -1}, "from -1 is not a node id"),
    ({**CUT, "from": True}, "from True is not a node id"),
    ({**CUT, "from": "client:"}, "from 'client:' is not a node id"),
    ({**CUT, "to": "broker-2"}, "to 'broker-2' is not a node id, \"clients\""),
    ({**CUT, "purpose": "love"}, "purpose 'love' is not null or one of replica, quorum"),
    ({**CUT, "until_ms": 1.5}, "until_ms 1.5 is not a whole number"),
    ({**CUT, "what": "hold"}, "hold needs the field 'purpose'"),
    ({**CUT, "what": "hold", "purpose": None}, "without one it would be a cut"),
    ({**CUT, "what": "delay", "delay_ms": -1}, "delay_ms -1 is not a whole number from 0 on"),
    ({**CUT, "what": "drop", "chance": 0}, "chance 0 is not a chance above 0 and up to 1"),
    ({**CUT, "what": "drop", "chance": "1"}, "chance '1' is not a chance"),
    ({**ERROR, "api": "Produced"}, "an API that this broker serves; did you mean Produce"),
    ({**ERROR, "api": "zzz"}, "api 'zzz' is not an API that this broker serves"),
    ({**ERROR, "error": "NOT_LEADER"}, "did you mean"),
    ({**ERROR, "error": "NONE"}, "error 'NONE' is not the name of a Kafka error"),
    ({**ERROR, "nth": 0}, "nth 0 is not a whole number from 1 on"),
    ({"id": "f1", "what": "hold-replica", "replica": 1, "topic": ""}, "topic '' is not a text"),
]


@pytest.mark.parametrize(("value", "text"), GOOD)
def test_a_rule_is_understood_told_shortly_and_written_back(
    value: dict[str, Any], text: str
) -> None:
    rule = read_rule(value)
    assert str(rule) == text
    assert read_rule(json.loads(json.dumps(rule_value(rule)))) == rule


@pytest.mark.parametrize(("value", "complaint"), BAD)
def test_a_bad_rule_is_refused_with_one_clear_line(value: object, complaint: str) -> None:
    with pytest.raises(BadRule) as refusal:
        read_rule(value, 7)
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_near_error_is_named() -> None:
    with pytest.raises(BadRule, match="NOT_LEADER_OR_FOLLOWER"):
        read_rule({**ERROR, "error": "not_leader_or_follower"})


def test_ids_differ() -> None:
    with pytest.raises(BadRule, match="two rules have the id 'f1'"):
        read_rules([CUT, CUT])
    with pytest.raises(BadRule, match="not a list"):
        read_rules({"f1": CUT})


def test_peers_are_found_by_address() -> None:
    peers = read_peers({"1": "127.0.0.1:9092", "2": "[::1]:9093", "3": "LocalHost:9094"})
    assert peers[address_key("localhost", 9092)] == 1
    assert peers[address_key("::1", 9093)] == 2
    assert peers[address_key("127.0.0.1", 9094)] == 3


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([], "not an object"),
        ({"one": "a:1"}, "'one' is not a node id"),
        ({"1": "a"}, "'a' of node 1 is not like host:port"),
        ({"1": "a:b"}, "not like host:port"),
        ({"1": 9092}, "9092 of node 1 is not like host:port"),
    ],
)
def test_bad_peers_are_refused(value: object, complaint: str) -> None:
    with pytest.raises(BadRule, match=complaint):
        read_peers(value)
