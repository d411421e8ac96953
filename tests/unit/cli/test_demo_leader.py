"""The demo's exit code is its verdict: 0 only when exactly what acks=1 risks is lost."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pytest

from tidelog.cli import demo_leader
from tidelog.judge import anomalies
from tidelog.judge.anomalies import Anomaly
from tidelog.lab.evidence import Entry
from tidelog.lab.failover_demo import Accounts, DemoFailed, Offsets, Order

SAFE = Order("order 1", "all", "ok", (0,))
LOST = Order("hasty order 1", "1", "ok", ())


class NoCluster:
    """Nothing is started: the story is given."""

    bootstrap_servers = "nowhere:1"

    def __init__(self, *, brokers: int) -> None:
        assert brokers == 3

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def accounts(*orders: Order, more: Sequence[Anomaly] = ()) -> Accounts:
    return Accounts(
        dead=1,
        next_leader=2,
        at_the_kill=Offsets(1, {1: 2, 2: 1, 3: 1}),
        tail_before=(Entry(1, 0, "hasty order 1", None, None, None),),
        tail_after=(Entry(1, 1, "later order 1", None, None, None),),
        orders=list(orders),
        anomalies=[*(lost(each.payload) for each in orders if is_lost(each)), *more],
    )


def is_lost(order: Order) -> bool:
    return order.told == "ok" and not order.kept_at


def lost(payload: str) -> Anomaly:
    return anomalies.LOST.found(
        at_us=1,
        partition="orders-0",
        payload=payload,
        offset=1,
        log_start_offset=0,
        log_end_offset=1,
    )


def duplicated(payload: str) -> Anomaly:
    return anomalies.DUPLICATED.found(
        at_us=1, partition="orders-0", payload=payload, first_offset=0, offset=1
    )


def play(monkeypatch: pytest.MonkeyPatch, story: Accounts | DemoFailed) -> int:
    def run(*_: object) -> Accounts:
        if isinstance(story, DemoFailed):
            raise story
        return story

    monkeypatch.setattr(demo_leader, "run", run)
    monkeypatch.setattr(demo_leader, "Cluster", NoCluster)
    return demo_leader.demo_leader()


def test_what_acks_1_loses_is_named_and_what_acks_all_keeps_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(monkeypatch, accounts(SAFE, LOST)) == 0
    shown = capsys.readouterr().out
    assert "hasty order 1" in shown and "LOST" in shown
    assert "1 acknowledged orders are lost" in shown and "all 1 acknowledged orders" in shown
    assert "later order 1 (leader epoch 1)" in shown


@pytest.mark.parametrize(
    ("story", "evidence"),
    [
        pytest.param(
            accounts(Order("order 1", "all", "ok", ()), LOST),
            "lost: 'order 1', acknowledged with acks=all",
            id="acks=all lost",
        ),
        pytest.param(
            accounts(SAFE, LOST, more=[duplicated("order 1")]),
            "duplicated: 'order 1' at offsets 0 and 1",
            id="a duplicate",
        ),
        pytest.param(
            accounts(SAFE, Order("hasty order 1", "1", "ok", (1,))),
            "kept: 'hasty order 1', though one broker alone had it",
            id="nothing was at risk",
        ),
        pytest.param(
            accounts(SAFE, LOST, Order("order 2", "all", "unknown", (2,))),
            "not acknowledged: 'order 2', told unknown",
            id="not acknowledged",
        ),
    ],
)
def test_anything_else_is_shown_and_fails(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    story: Accounts,
    evidence: str,
) -> None:
    assert play(monkeypatch, story) == demo_leader.FOUND_SOMETHING
    shown = capsys.readouterr().out
    assert evidence in shown and "NOT what was promised" in shown


def test_an_accident_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(monkeypatch, DemoFailed("no broker")) == demo_leader.COULD_NOT_RUN
    assert "could not run: no broker" in capsys.readouterr().out
