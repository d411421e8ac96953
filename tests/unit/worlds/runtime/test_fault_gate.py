"""The fault gate: who is told what, and when, of links to other nodes and of those who called."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.worlds.runtime.gate_stage import CALLER, LINK, Stage
from tidelog.core.model.limits import MIB
from tidelog.worlds.runtime import fault_peers
from tidelog.worlds.runtime.events import FaultsChanged
from tidelog.worlds.runtime.links import CONNECT_TIMEOUT_MS

THERE = {"what": "cut", "from": 1, "to": 2}
BACK = {"what": "cut", "from": 2, "to": 1}
FROM_CLIENTS = {"what": "cut", "from": "clients", "to": 1}
TO_CLIENTS = {"what": "cut", "from": 1, "to": "clients"}


@pytest.fixture
def stage() -> Stage:
    return Stage()


DIAL = ("connect", LINK, "127.0.0.1", 9092, "probe")


def test_without_rules_everything_passes_at_once(stage: Stage) -> None:
    stage.gate.connect(LINK, "127.0.0.1", 9092, "probe")
    assert stage.taken() == [DIAL]
    stage.gate.on_link_opened(LINK, 0)
    stage.gate.send(LINK, [b"q"])
    stage.gate.on_answer(LINK, memoryview(b"a"), 0)
    stage.gate.on_link_closed(LINK, "closed", 0)
    assert stage.taken() == [("send", LINK, [b"q"])]
    assert stage.told() == [
        ("on_link_opened", LINK),
        ("on_answer", LINK, b"a"),
        ("on_link_closed", LINK, "closed"),
    ]


@pytest.mark.parametrize("cut", [THERE, BACK])
def test_a_connect_into_a_cut_is_silence_and_then_unreachable(
    stage: Stage, cut: dict[str, Any]
) -> None:
    stage.rules(cut)
    stage.gate.connect(LINK, "127.0.0.1", 9092, "probe")
    stage.time.pass_ms(CONNECT_TIMEOUT_MS - 1)
    assert stage.taken() == [], "nobody is dialled who could refuse"
    assert stage.told() == []
    stage.time.pass_ms(1)
    assert stage.told() == [("on_link_closed", LINK, "unreachable")]


@pytest.mark.parametrize("cut", [THERE, BACK])
def test_a_connect_is_tried_again_when_the_cut_heals(stage: Stage, cut: dict[str, Any]) -> None:
    stage.rules(cut)
    stage.gate.connect(LINK, "127.0.0.1", 9092, "probe")
    stage.time.pass_ms(3_000)
    stage.rules()
    assert stage.taken() == [DIAL]
    stage.gate.on_link_opened(LINK, stage.time.at_ms)
    stage.time.pass_ms(CONNECT_TIMEOUT_MS)
    assert stage.told() == [("on_link_opened", LINK)]


@pytest.mark.parametrize("cut", [THERE, BACK])
def test_a_cut_interrupts_a_connect_under_way(stage: Stage, cut: dict[str, Any]) -> None:
    stage.gate.connect(LINK, "127.0.0.1", 9092, "probe")
    stage.taken()
    stage.rules(cut)
    assert stage.taken() == [("disconnect", LINK)]
    stage.rules()
    assert stage.taken() == [DIAL]
    stage.gate.on_link_closed(LINK, "refused", 0)
    assert stage.told() == [("on_link_closed", LINK, "refused")]


def test_requests_wait_in_order_and_an_end_from_there_drops_them(stage: Stage) -> None:
    stage.link()
    stage.rules(THERE)
    stage.gate.send(LINK, [b"1"])
    stage.gate.send(LINK, [b"2"])
    assert (stage.taken(), stage.gate.held_frames) == ([], 2)
    stage.rules()
    assert stage.taken() == [("send", LINK, [b"1"]), ("send", LINK, [b"2"])]

    stage.rules(THERE)
    stage.gate.send(LINK, [b"3"])
    stage.gate.on_link_closed(LINK, "reset", 0)
    assert stage.told() == [("on_link_closed", LINK, "reset")], "nothing hides what comes to us"
    stage.rules()
    assert stage.taken() == []


def test_answers_and_the_end_from_there_wait_behind_a_cut(stage: Stage) -> None:
    stage.link()
    stage.rules(BACK)
    buffer = bytearray(b"a")
    stage.gate.on_answer(LINK, memoryview(buffer), 0)
    buffer[:] = b"z"
    stage.gate.on_link_closed(LINK, "closed", 0)
    assert stage.told() == []
    stage.rules()
    assert stage.told() == [("on_answer", LINK, b"a"), ("on_link_closed", LINK, "closed")]


def test_requests_die_with_the_connection_even_when_its_end_is_hidden(stage: Stage) -> None:
    stage.link()
    stage.rules(THERE, BACK)
    stage.gate.send(LINK, [b"1"])
    stage.gate.on_link_closed(LINK, "closed", 0)
    assert stage.gate.held_frames == 0
    stage.rules()
    assert stage.taken() == []
    assert stage.told() == [("on_link_closed", LINK, "closed")]


def test_what_is_held_dies_with_a_link_that_the_node_gives_up(stage: Stage) -> None:
    stage.link()
    stage.rules(THERE, BACK)
    stage.gate.send(LINK, [b"1"])
    stage.gate.on_answer(LINK, memoryview(b"a"), 0)
    stage.gate.disconnect(LINK)
    assert stage.taken() == [("disconnect", LINK)]
    assert stage.gate.held_frames == 0
    stage.rules()
    stage.gate.send(LINK, [b"2"])
    assert (stage.taken(), stage.told()) == ([], [])


def test_a_hold_of_another_purpose_is_not_ours(stage: Stage) -> None:
    stage.link()
    stage.rules({"what": "hold", "from": 1, "to": 2, "purpose": "quorum"})
    stage.gate.send(LINK, [b"1"])
    assert stage.taken() == [("send", LINK, [b"1"])]
    stage.rules({"what": "hold", "from": 1, "to": 2, "purpose": "replica"})
    stage.gate.send(LINK, [b"2"])
    assert stage.taken() == []


def test_a_delayed_connection_takes_its_time_each_way(stage: Stage) -> None:
    stage.rules(
        {"what": "delay", "from": 1, "to": 2, "delay_ms": 30},
        {"what": "delay", "from": 2, "to": 1, "delay_ms": 20},
    )
    stage.gate.connect(LINK, "127.0.0.1", 9092, "probe")
    stage.time.pass_ms(29)
    assert stage.taken() == []
    stage.time.pass_ms(1)
    assert stage.taken() == [DIAL]
    stage.gate.on_link_opened(LINK, stage.time.at_ms)
    stage.time.pass_ms(19)
    assert stage.told() == []
    stage.time.pass_ms(1)
    assert stage.told() == [("on_link_opened", LINK)]


def test_a_node_that_calls_is_disturbed_at_its_own_end_but_its_end_is_hidden(stage: Stage) -> None:
    stage.rules(BACK, THERE)
    stage.call("node-2")
    frame = stage.request("node-2")
    assert stage.told() == [("on_frame", CALLER, frame)]
    stage.gate.reply(CALLER, [b"a"])
    assert stage.taken() == [("reply", CALLER, [b"a"])]
    stage.gate.on_connection_closed(CALLER, 0)
    assert stage.told() == []
    stage.gate.reply(CALLER, [b"late"])
    assert stage.taken() == []
    stage.rules()
    assert stage.told() == [("on_connection_closed", CALLER)]


def test_clients_are_cut_by_name_on_connections_that_were_there(stage: Stage) -> None:
    stage.call("a", 1)
    stage.call("b", 2)
    stage.call(None, 3)
    stage.rules({"what": "cut", "from": "client:a", "to": 1})
    for name, number in (("a", 1), ("b", 2), (None, 3)):
        stage.request(name, number)
    assert [line[1] for line in stage.told()] == [2, 3]
    stage.rules(FROM_CLIENTS)
    stage.request("b", 2)
    stage.request(None, 3)
    assert stage.told() == []
    stage.rules()
    assert sorted(line[1] for line in stage.told()) == [1, 2, 3]


def test_answers_to_a_client_wait_and_die_when_it_leaves(stage: Stage) -> None:
    stage.call("a")
    stage.rules(TO_CLIENTS)
    stage.gate.reply(CALLER, [b"1"])
    assert stage.taken() == []
    stage.gate.on_connection_closed(CALLER, 0)
    assert stage.told() == [("on_connection_closed", CALLER)]
    assert stage.gate.held_frames == 0
    stage.rules()
    assert stage.taken() == []


def test_requests_of_a_client_that_left_come_before_its_end(stage: Stage) -> None:
    stage.call("a")
    stage.rules(FROM_CLIENTS)
    frame = stage.request("a")
    stage.gate.on_connection_closed(CALLER, 0)
    assert stage.told() == []
    stage.rules()
    assert stage.told() == [("on_frame", CALLER, frame), ("on_connection_closed", CALLER)]


def test_what_the_left_behind_may_hold_is_limited(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_peers, "ORPHANED_BYTES_MAX", 1 * MIB)
    stage.rules(FROM_CLIENTS)
    for number in (1, 2, 3):
        stage.call("a", number)
        stage.request("a", number, size_bytes=MIB // 3)
        stage.gate.on_connection_closed(number, 0)
    stage.told()
    stage.rules()
    told = stage.told()
    frames = [line[1] for line in told if line[0] == "on_frame"]
    assert set(frames) == {1, 2}, "the third had to give up"
    assert [line[1] for line in told if line[0] == "on_connection_closed"] == [1, 2, 3]


def test_a_close_by_the_node_stands_behind_its_answers(stage: Stage) -> None:
    stage.call("a")
    stage.rules(TO_CLIENTS)
    stage.gate.reply(CALLER, [b"1"])
    stage.gate.close(CALLER, "enough")
    assert stage.taken() == []
    stage.rules()
    assert stage.taken() == [("reply", CALLER, [b"1"]), ("close", CALLER, "enough")]


@pytest.mark.parametrize("rule", [FROM_CLIENTS, TO_CLIENTS])
def test_a_client_that_goes_on_sending_is_braked(stage: Stage, rule: dict[str, Any]) -> None:
    stage.call("a")
    stage.rules(rule)
    for _ in range(fault_peers.HELD_ITEMS_MAX):
        stage.request("a")
        stage.gate.reply(CALLER, [b"1"])
    assert ("hold_reading", CALLER) in stage.taken()
    stage.rules()
    assert stage.taken()[-1] == ("allow_reading", CALLER)


def test_what_flows_on_respects_the_nodes_brake(stage: Stage) -> None:
    stage.call("a")
    stage.rules(FROM_CLIENTS)
    stage.request("a")
    stage.gate.pause_reading(CALLER)
    stage.rules()
    assert stage.told() == []
    stage.gate.resume_reading(CALLER)
    assert stage.told() == [], "a wish never calls back"
    stage.time.pass_ms(0)
    assert [line[0] for line in stage.told()] == ["on_frame"]


def test_a_paused_client_that_leaves_is_told_of_at_once(stage: Stage) -> None:
    stage.call("a")
    stage.gate.pause_reading(CALLER)
    stage.gate.on_connection_closed(CALLER, 0)
    assert stage.told() == [("on_connection_closed", CALLER)]


def test_rules_end_by_themselves_and_every_change_is_one_event(stage: Stage) -> None:
    until_ms = stage.time.wall_ms(stage.time.at_ms) + 500
    stage.call("a")
    stage.rules({**FROM_CLIENTS, "until_ms": until_ms})
    stage.request("a")
    stage.time.pass_ms(499)
    assert stage.told() == []
    stage.time.pass_ms(1)
    assert [line[0] for line in stage.told()] == ["on_frame"]
    first, second = stage.trace.of(FaultsChanged)
    text = f"cut clients->1 until_ms={until_ms}"
    assert first == FaultsChanged(because="replaced", added=(text,), removed=(), rules=1)
    assert second == FaultsChanged(because="expired", added=(), removed=(text,), rules=0)


def test_after_the_stop_nothing_is_told(stage: Stage) -> None:
    stage.call("a")
    stage.rules({"what": "delay", "from": "clients", "to": 1, "delay_ms": 10})
    stage.request("a")
    stage.gate.stop()
    stage.time.pass_ms(1_000)
    assert stage.told() == []


def test_a_malformed_request_keeps_its_place(stage: Stage) -> None:
    stage.call("a")
    stage.rules(FROM_CLIENTS)
    frame = stage.request("a")
    stage.gate.on_frame(CALLER, memoryview(bytearray(b"?")), 0)
    assert stage.told() == []
    stage.rules()
    assert stage.told() == [("on_frame", CALLER, frame), ("on_frame", CALLER, b"?")]
