"""The demo's exit code is its verdict: 0 only when exactly what acks=1 risks is lost.

What the story itself finds out is tested by the story (tests/stories/test_lab.py plays it) and by
brokers that forget (tests/process/test_demo_leader.py).
"""

from __future__ import annotations

import pytest

from tidelog.cli import demo_leader
from tidelog.cluster.errors import ClusterError
from tidelog.lab.report import CheckFinding, Report, StoryStep

LOST = CheckFinding("lost", "('hasty order 1',)", "('hasty order 1',)", holds=True)
LOST_MORE = CheckFinding("lost", "('order 1',)", "('hasty order 1',)", holds=False)


def play(monkeypatch: pytest.MonkeyPatch, outcome: Report | Exception) -> int:
    def played(*_: object, **__: object) -> Report:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(demo_leader, "play", played)
    return demo_leader.demo_leader()


def report(*findings: CheckFinding, failure: str | None = None) -> Report:
    step = StoryStep(("D3-S1",), "what became of every order", 1, list(findings))
    return Report(story="a story", engine="processes", steps=[step], failure=failure)


def test_what_acks_1_loses_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(monkeypatch, report(LOST)) == 0
    shown = capsys.readouterr().out
    assert "hasty order 1" in shown and "LOST" in shown and "None is lost" in shown


def test_anything_else_is_shown_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = report(LOST_MORE, failure="D3-S1: lost is ('order 1',), not ('hasty order 1',)")
    assert play(monkeypatch, outcome) == demo_leader.FOUND_SOMETHING
    shown = capsys.readouterr().out
    assert "lost is ('order 1',)" in shown and "NOT what was promised" in shown
    assert "None is lost" not in shown


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(ClusterError("no broker"), id="no cluster"),
        pytest.param(report(LOST, failure="no broker"), id="the story waited too long"),
    ],
)
def test_an_accident_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: Report | Exception,
) -> None:
    assert play(monkeypatch, outcome) == demo_leader.COULD_NOT_RUN
    assert "could not run: no broker" in capsys.readouterr().out
