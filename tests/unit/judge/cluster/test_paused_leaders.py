"""A leader that was paused: what it must not write, and what it may have believed."""

from __future__ import annotations

import pytest

from tests.unit.judge.cluster.stage import Facts, P, batch
from tidelog.judge.anomalies import PAUSED_LEADER_ASKS
from tidelog.judge.cluster import paused_leaders
from tidelog.judge.excuses import ElectionHeld

PAUSED_US, ELECTED_US, RESUMED_US, HEARD_US = 1_000, 2_000, 3_000, 3_500


def replaced(*, paused: int = 1, elected_us: int = ELECTED_US) -> Facts:
    """2 is elected, and a node is paused from 1,000 to 3,000."""
    facts = Facts()
    facts.replicated(2)
    if elected_us < RESUMED_US:
        facts.now_us = elected_us
        facts.elect(2, 1)
    facts.now_us = RESUMED_US
    facts.checker.on_resumed(paused, paused_us=PAUSED_US)
    if elected_us >= RESUMED_US:
        facts.now_us = elected_us
        facts.elect(2, 1)
    return facts


def test_a_write_after_the_pause_is_condemned() -> None:
    facts = replaced()

    facts.append(1, batch(2))

    assert PAUSED_LEADER_ASKS.name in facts.found()


def test_what_it_copies_from_its_successor_is_not() -> None:
    facts = replaced()
    facts.append(2, batch(2, 1))

    facts.append(1, batch(2, 1))

    assert PAUSED_LEADER_ASKS.name not in facts.found()


def test_a_successor_that_was_elected_while_it_was_awake_is_what_acks_1_risks() -> None:
    facts = replaced(elected_us=RESUMED_US + 1)

    facts.append(1, batch(2))

    assert PAUSED_LEADER_ASKS.name not in facts.found()


def test_a_coordinator_risks_nothing_since_its_answers_wait_for_the_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = replaced()
    monkeypatch.setattr(paused_leaders, "INTERNAL_TOPICS", {P.rpartition("-")[0]})

    facts.append(1, batch(2))

    assert PAUSED_LEADER_ASKS.name not in facts.found()


def test_another_process_was_not_paused() -> None:
    facts = replaced(paused=3)

    facts.append(1, batch(2))

    assert PAUSED_LEADER_ASKS.name not in facts.found()


def believed_until_us(facts: Facts) -> int:
    facts.now_us = HEARD_US
    facts.replica(1, is_leader=False, leader_epoch=1)
    excuses = [each for each in facts.checker.excuses() if isinstance(each, ElectionHeld)]
    return excuses[-1].believed_until_us


def test_it_believed_to_lead_with_good_reason_until_its_pause() -> None:
    """A write that began later and was acknowledged by it is lost without an excuse."""
    assert believed_until_us(replaced()) == PAUSED_US


def test_one_that_was_awake_believed_until_it_heard() -> None:
    assert believed_until_us(replaced(paused=3)) == HEARD_US
