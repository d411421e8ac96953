"""A broker's settings as a whole: everything that is wrong is told, and what fits is taken."""

from __future__ import annotations

import pytest

from tidelog.core.model.broker_config import (
    advertised_listeners_of,
    listeners_of,
    log_directories_of,
    read_broker_settings,
    refuse_dynamic_change,
)
from tidelog.core.model.config import BadSetting
from tidelog.core.model.listeners import Listener, parse_listeners

LEAST = {"node.id": "1"}


def test_a_node_id_is_enough() -> None:
    values, found = read_broker_settings(LEAST)
    assert found == []
    assert values["node.id"] == 1
    assert values["broker.id"] == 1
    assert values["process.roles"] == ("broker", "controller")
    assert listeners_of(values) == (Listener("PLAINTEXT", "", 9092),)
    assert advertised_listeners_of(values) == listeners_of(values)


def test_the_older_name_of_the_id_is_enough_too() -> None:
    values, found = read_broker_settings({"broker.id": "4"})
    assert (values["node.id"], found) == (4, [])


def test_every_problem_is_told_at_once() -> None:
    _, found = read_broker_settings(
        {"node.id": "x", "num.partition": "3", "log.segment.bytes": "1", "num.partitions": "4"}
    )
    assert [problem.name for problem in found] == [
        "node.id",
        "num.partition",
        "log.segment.bytes",
        "broker.id",
    ]
    assert "did you mean num.partitions?" in found[1].reason
    assert "at least 1048576" in found[2].reason


@pytest.mark.parametrize(
    ("texts", "name", "reason"),
    [
        ({"broker.id": "2"}, "broker.id", "disagrees"),
        ({"listeners": "PLAINTEXT:9092"}, "listeners", "must be like"),
        ({"listeners": "PLAINTEXT://h:70000"}, "listeners", "65535"),
        ({"listeners": "A://:1,A://:2"}, "listeners", "one name"),
        ({"listeners": "PLAINTEXT://h:1,SSL://h:1"}, "listeners", "same port"),
        ({"listeners": "SSL://h:1"}, "listeners", "only PLAINTEXT"),
        ({"listeners": "INSIDE://h:1"}, "listeners", "does not say what INSIDE speaks"),
        ({"listener.security.protocol.map": "A:B"}, "listener.security.protocol.map", "'A:B'"),
        ({"advertised.listeners": "OTHER://h:1"}, "advertised.listeners", "not among"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "advertised.listeners", "0.0.0.0"),
        ({"controller.quorum.voters": "1-h:1"}, "controller.quorum.voters", "1@host"),
        ({"controller.quorum.voters": "2@h:1"}, "controller.quorum.voters", "not among"),
        ({"replica.fetch.wait.max.ms": "30001"}, "replica.fetch.wait.max.ms", "above"),
        ({"broker.heartbeat.interval.ms": "5000"}, "broker.heartbeat.interval.ms", "half"),
        ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes", "below"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip", "overrides"),
        ({"log.retention.ms": "0"}, "log.retention.ms", "at least 1"),
        ({"log.roll.ms": "0"}, "log.roll.ms", "at least 1"),
        ({"process.roles": ""}, "process.roles", "at least one"),
        ({"process.roles": "broker,helper"}, "process.roles", "broker, controller"),
        ({"authorizer.class.name": "x.Y"}, "authorizer.class.name", "one of"),
        ({"ssl.keystore.location": "k"}, "ssl.keystore.location", "no such setting"),
        ({"tidelog.fsync": "often"}, "tidelog.fsync", "none, group, always"),
        (
            {"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"},
            "log.cleaner.min.compaction.lag.ms",
            "above",
        ),
    ],
)
def test_what_does_not_fit_is_refused(texts: dict[str, str], name: str, reason: str) -> None:
    _, found = read_broker_settings({**LEAST, **texts})
    assert name in [problem.name for problem in found]
    assert any(reason in problem.reason for problem in found)


@pytest.mark.parametrize(
    "texts",
    [
        {"listeners": "INSIDE://h:1", "listener.security.protocol.map": "INSIDE:PLAINTEXT"},
        {"listeners": "CONTROLLER://h:1", "controller.listener.names": "CONTROLLER"},
        {
            "listeners": "PLAINTEXT://1.2.3.4:1,B://[::1]:1",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
        },
        {"controller.quorum.voters": "1@localhost:9093"},
        {"connections.max.idle.ms": "-1"},
    ],
)
def test_what_fits_is_taken(texts: dict[str, str]) -> None:
    assert read_broker_settings({**LEAST, **texts})[1] == []


def test_log_dirs_wins_over_log_dir() -> None:
    values, _ = read_broker_settings({**LEAST, "log.dir": "a"})
    assert log_directories_of(values) == ("a",)
    values, _ = read_broker_settings({**LEAST, "log.dir": "a", "log.dirs": "b,c"})
    assert log_directories_of(values) == ("b", "c")


@pytest.mark.parametrize("text", ["PLAINTEXT://host-1.example:9092", "A_B://[fe80::1%eth0]:0"])
def test_a_listener_survives_its_text(text: str) -> None:
    (listener,) = parse_listeners("listeners", [text])
    assert str(listener) == text


@pytest.mark.parametrize("text", ["", "x", "://h:1", "A://h", "A://h:-1", "A://h:1:", "A://h h:1"])
def test_a_listener_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        parse_listeners("listeners", [text])


@pytest.mark.parametrize(
    ("settings", "for_one_broker", "reason"),
    [
        ({"node.id": "2"}, True, "node.id"),
        ({"message.max.bytes": "x"}, True, "message.max.bytes=x"),
        ({"listeners": "PLAINTEXT://:1"}, False, "one broker"),
        ({"follower.replication.throttled.rate": "-1"}, True, "at least 0"),
    ],
)
def test_a_running_broker_refuses(
    settings: dict[str, str], for_one_broker: bool, reason: str
) -> None:
    assert reason in (refuse_dynamic_change(settings, for_one_broker=for_one_broker) or "")


def test_a_running_broker_takes_what_may_change() -> None:
    rate = {"leader.replication.throttled.rate": "0"}
    assert refuse_dynamic_change(rate, for_one_broker=True) is None
    assert refuse_dynamic_change({"message.max.bytes": "9"}, for_one_broker=False) is None
    assert refuse_dynamic_change({"listeners": "PLAINTEXT://:1"}, for_one_broker=True) is None
    assert refuse_dynamic_change({"of.an.extension": "9"}, for_one_broker=False) is None
