"""Only a door that refuses twice has nobody behind it; silence and answers prove the opposite."""

from __future__ import annotations

import struct

import pytest

from tests.unit.core.node.lone_links import LoneLinks
from tidelog.core.node.connections.liveness_probes import PAUSE_MS, WAIT_MS, LivenessProbes


class Stage:
    def __init__(self) -> None:
        self.node = LoneLinks()
        self.probes = LivenessProbes(alarms=self.node.alarms, links=self.node.links)
        self.heard: list[tuple[bool, int]] = []

    @property
    def link(self) -> int:
        """The knock that was made last."""
        return self.node.wires.connected[-1][0]

    def probe(self) -> None:
        self.probes.probe(
            "there", 9092, lambda dead, now_ms: self.heard.append((dead, now_ms)), now_ms=0
        )

    def refuse(self, now_ms: int) -> None:
        self.node.links.on_link_closed(self.link, "refused", now_ms)

    def open(self, now_ms: int) -> None:
        self.node.links.on_link_opened(self.link, now_ms)

    def answer(self, now_ms: int) -> None:
        """What any broker says to the question that was asked."""
        link, request = self.node.wires.sent[-1]
        assert link == self.link
        _, api_key, version, correlation_id = struct.unpack_from(">ihhi", request)
        assert (api_key, version) == (18, 0)
        answer = struct.pack(">ihi", correlation_id, 0, 0)
        self.node.links.on_answer(link, memoryview(answer), now_ms)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.mark.scenario("X-41")
def test_refused_twice_a_moment_apart_is_dead(stage: Stage) -> None:
    stage.probe()
    stage.refuse(1)
    assert stage.heard == []
    stage.node.pass_to(PAUSE_MS)
    assert len(stage.node.wires.connected) == 1, "not before the pause is over"
    stage.node.pass_to(1 + PAUSE_MS)
    stage.refuse(1 + PAUSE_MS)

    assert stage.heard == [(True, 1 + PAUSE_MS)]


@pytest.mark.scenario("X-41")
def test_who_answers_at_the_second_knock_is_alive(stage: Stage) -> None:
    stage.probe()
    stage.refuse(1)
    stage.node.pass_to(1 + PAUSE_MS)
    stage.open(30)
    assert stage.heard == []
    stage.answer(31)

    assert stage.heard == [(False, 31)]
    assert stage.node.wires.dropped == [stage.link], "a probe leaves no connection behind"
    stage.node.pass_to(WAIT_MS + PAUSE_MS)
    assert stage.heard == [(False, 31)], "once"


@pytest.mark.scenario("X-41")
@pytest.mark.parametrize("reason", ["reset", "closed"])
def test_a_door_that_opens_and_falls_shut_is_knocked_at_again(stage: Stage, reason: str) -> None:
    """The system closes the files of a killed process one after the other: those that watch it see
    its connections end while its door is still open for a moment."""
    stage.probe()
    stage.open(1)
    stage.node.links.on_link_closed(stage.link, reason, 2)
    assert stage.heard == []
    stage.node.pass_to(2 + PAUSE_MS)
    stage.refuse(23)
    stage.node.pass_to(23 + PAUSE_MS)
    stage.refuse(44)

    assert stage.heard == [(True, 44)]


def test_a_door_that_keeps_opening_and_falling_shut_proves_nothing(stage: Stage) -> None:
    stage.probe()
    now_ms = 0
    while not stage.heard:
        assert now_ms <= WAIT_MS + PAUSE_MS, "it must come to an end"
        stage.open(now_ms)
        stage.node.links.on_link_closed(stage.link, "closed", now_ms)
        now_ms += PAUSE_MS
        stage.node.pass_to(now_ms)

    [(is_dead, _)] = stage.heard
    assert not is_dead


def test_an_unreachable_door_proves_nothing(stage: Stage) -> None:
    stage.probe()
    stage.node.links.on_link_closed(stage.link, "unreachable", 5)

    assert stage.heard == [(False, 5)]


@pytest.mark.parametrize("is_open", [False, True], ids=["no-door", "an-open-door"])
def test_silence_proves_nothing(stage: Stage, is_open: bool) -> None:
    """A stopped process has an open door, too."""
    stage.probe()
    if is_open:
        stage.open(1)
    stage.node.pass_to(WAIT_MS)

    assert stage.heard == [(False, WAIT_MS)]
    assert stage.node.wires.dropped == [stage.link]


def test_two_askers_share_one_probe(stage: Stage) -> None:
    stage.probe()
    stage.probe()
    assert len(stage.node.wires.connected) == 1
    stage.refuse(1)
    stage.node.pass_to(1 + PAUSE_MS)
    stage.refuse(30)

    assert stage.heard == [(True, 30)] * 2

    stage.probe()
    assert len(stage.node.wires.connected) == 3, "the next question is asked anew"
