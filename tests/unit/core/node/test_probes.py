"""Only a door that refuses twice has nobody behind it; silence and open doors prove nothing."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.unit.core.node.lone_links import LoneLinks
from tidelog.core.node.probes import PAUSE_MS, WAIT_MS, Probes


class Stage:
    def __init__(self) -> None:
        self.node = LoneLinks()
        self.probes = Probes(cast("Any", self.node))
        self.heard: list[tuple[bool, int]] = []

    def probe(self) -> None:
        self.probes.probe(
            "there", 9092, lambda dead, now_ms: self.heard.append((dead, now_ms)), now_ms=0
        )

    def refuse(self, now_ms: int) -> None:
        link = self.node.wires.connected[-1][0]
        self.node.links.on_link_closed(link, "refused", now_ms)


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
def test_a_door_that_opens_at_the_second_knock_is_alive(stage: Stage) -> None:
    stage.probe()
    stage.refuse(1)
    stage.node.pass_to(1 + PAUSE_MS)
    link = stage.node.wires.connected[-1][0]
    stage.node.links.on_link_opened(link, 30)

    assert stage.heard == [(False, 30)]
    assert stage.node.wires.dropped == [link], "a probe leaves no connection behind"


@pytest.mark.parametrize("reason", ["reset", "closed", "unreachable"])
def test_any_other_end_proves_nothing(stage: Stage, reason: str) -> None:
    stage.probe()
    stage.node.links.on_link_closed(stage.node.wires.connected[-1][0], reason, 5)

    assert stage.heard == [(False, 5)]


def test_silence_proves_nothing(stage: Stage) -> None:
    stage.probe()
    stage.node.pass_to(WAIT_MS)

    assert stage.heard == [(False, WAIT_MS)]
    assert stage.node.wires.dropped == [stage.node.wires.connected[-1][0]]


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
