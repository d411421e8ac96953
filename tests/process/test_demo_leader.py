"""The demo's story with real brokers, and with brokers that forget what they promised."""

from __future__ import annotations

import pytest

from tidelog.cli import demo_leader
from tidelog.lab.engines.processes import ProcessEngine
from tidelog.lab.stories.leader_demo import HASTY

PARTITION = "orders-0"


class ForgetfulEngine(ProcessEngine):
    """While one broker is away, all of them lose most of what they had written."""

    def start(self, node: int) -> None:
        cluster = self.cluster
        cluster.kill(*(each for each in cluster.node_ids if each != node))
        for each in cluster.nodes.values():
            for segment in (each.data_path / PARTITION).glob("*.log"):
                data = segment.read_bytes()
                segment.write_bytes(data[: len(data) // 3])
        for node_id in cluster.node_ids:
            super().start(node_id)


def test_a_leader_dies_with_what_only_it_had(capsys: pytest.CaptureFixture[str]) -> None:
    """Five orders acknowledged with acks=1 are lost, and named; of acks=all none is, and the dead
    leader's log gives way to its successor's. Every look of the story is in its exit code."""
    assert demo_leader.demo_leader() == 0

    shown = capsys.readouterr().out
    assert f"{len(HASTY)} acknowledged orders are LOST" in shown
    assert all(order in shown.splitlines()[-2] for order in HASTY)
    assert "acks=all: every acknowledged order is there, once" in shown


def test_brokers_that_forget_are_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_leader, "ProcessEngine", ForgetfulEngine)

    assert demo_leader.demo_leader() == demo_leader.FOUND_SOMETHING

    shown = capsys.readouterr().out
    assert "lost is (" in shown and "'order 20'" in shown
    assert "NOT what was promised" in shown
