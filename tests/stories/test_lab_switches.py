"""Switches: the same stories with an old mistake planted in the brokers, which they must notice.

A story that cannot fail shows nothing. Each switch turns one rule of replication back into what it
once was, from outside, and the story about that rule then tells of the loss.
"""

from __future__ import annotations

from typing import Any

import pytest

import tidelog.lab.stories  # noqa: F401 - opens the book
from tidelog.core.node.fetch import fetch_answers
from tidelog.core.replication import replica_fetcher
from tidelog.core.replication.follower import EpochEnd, EpochKeeper
from tidelog.core.replication.partition import Assignment, Partition
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.report import Report
from tidelog.lab.story import BOOK, play


def told(name: str) -> Report:
    return play(BOOK[name], SimulatorEngine(seed=1))


@pytest.mark.scenario("X-1")
def test_with_the_old_rule_a_restarted_follower_loses_an_acknowledged_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KIP-101: a follower that cuts to its high watermark before it asks its leader."""
    follow = Partition.follow

    def cut_and_follow(partition: Partition, assigned: Assignment) -> bool:
        is_new = follow(partition, assigned)
        if partition.log.high_watermark < partition.log.log_end_offset:
            partition.log.truncate_to(partition.log.high_watermark)
        return is_new

    monkeypatch.setattr(Partition, "follow", cut_and_follow)
    reason = told("a_restarted_follower_keeps_what_is_above_its_high_watermark").why_not("X-1")

    assert reason is not None
    assert "log(B) is ['m1'], not ['m1', 'm2']" in reason


@pytest.mark.scenario("D2-S7")
def test_without_truncation_replicas_disagree_about_an_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader that never says where the logs part leaves M3 on A, where B has M4."""
    monkeypatch.setattr(fetch_answers, "_diverging", lambda *_: None)
    report = told("d2_walk_with_acks_1")

    assert report.why_not("D2-M9") is not None
    assert report.why_not("D2-S7") is not None


@pytest.mark.scenario("X-3")
def test_a_cut_that_ignores_older_leaders_is_too_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KIP-279: one question, one cut where the leader says, and no look at one's own epochs."""
    asked: list[object] = []
    find = fetch_answers._diverging

    def leaders_word(log: EpochKeeper, *, diverging: EpochEnd) -> int:
        return min(diverging.end_offset, log.log_end_offset)

    def once(*arguments: Any) -> object:
        found = None if asked else find(*arguments)
        if found is not None:
            asked.append(found)
        return found

    monkeypatch.setattr(replica_fetcher, "truncation_end", leaders_word)
    monkeypatch.setattr(fetch_answers, "_diverging", once)

    reason = told("leaders_in_quick_succession").why_not("X-3")

    assert reason is not None
    assert "the cut is (3, 2), not (3, 1)" in reason
