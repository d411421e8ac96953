"""The demo's exit code is its verdict: 0 only when nothing was found."""

from __future__ import annotations

from collections import Counter

import pytest

from tidelog.cli import demo
from tidelog.judge.history import Anomaly
from tidelog.worlds.runtime.crash_demo import Accounts, DemoFailed

LOST = Anomaly(check="lost", at_us=1, partition="orders-0", evidence="'order 7' [acks=all]")


def play(monkeypatch: pytest.MonkeyPatch, story: Accounts | DemoFailed) -> int:
    def run(*_: object) -> Accounts:
        if isinstance(story, DemoFailed):
            raise story
        return story

    monkeypatch.setattr(demo, "run", run)
    return demo.demo()


def test_a_clean_story_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(monkeypatch, Accounts(outcomes=Counter(ok=5), read=5)) == 0
    assert "once, in order" in capsys.readouterr().out


def test_an_anomaly_is_shown_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(monkeypatch, Accounts(anomalies=[LOST])) == demo.FOUND_SOMETHING
    shown = capsys.readouterr().out
    assert LOST.evidence in shown and "NOT what was promised" in shown
    assert "once, in order" not in shown


def test_an_accident_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(monkeypatch, DemoFailed("no broker")) == demo.COULD_NOT_RUN
    assert "could not run: no broker" in capsys.readouterr().out
