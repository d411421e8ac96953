"""Switches: the same stories with an old mistake planted in the brokers, which they must notice.

A story that cannot fail shows nothing. Each switch turns one rule of replication back into what it
once was, from outside, and the story about that rule then tells of the loss.
"""

from __future__ import annotations

from typing import Any

import pytest

import tidelog.lab.stories  # noqa: F401 - opens the book
from tidelog.client.producer.batch import ProducerBatch
from tidelog.core.node.fetch import fetch_answers
from tidelog.core.replication import replica_fetcher
from tidelog.core.replication.follower import EpochEnd, EpochKeeper
from tidelog.core.replication.partition import Assignment, Partition
from tidelog.lab.audit import LabVerdict
from tidelog.lab.checks import Checks
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.lab import Lab
from tidelog.lab.report import Report
from tidelog.lab.story import BOOK, play
from tidelog.worlds.simulator.mutants import MUTANTS


def told(name: str) -> Report:
    return play(BOOK[name], SimulatorEngine(seed=1))


_follow = Partition.follow


def cut_and_follow(partition: Partition, assigned: Assignment) -> bool:
    """The rule before KIP-101."""
    is_new = _follow(partition, assigned)
    if partition.log.high_watermark < partition.log.log_end_offset:
        partition.log.truncate_to(partition.log.high_watermark)
    return is_new


@pytest.mark.scenario("X-1")
def test_with_the_old_rule_a_restarted_follower_loses_an_acknowledged_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KIP-101: a follower that cuts to its high watermark before it asks its leader."""
    monkeypatch.setattr(Partition, "follow", cut_and_follow)
    reason = told("a_restarted_follower_keeps_what_is_above_its_high_watermark").why_not("X-1")

    assert reason is not None
    assert "log(B) is ['m1'], not ['m1', 'm2']" in reason


def step_that_fails(report: Report) -> tuple[str, ...]:
    """The scenarios of the step in which the story found something else."""
    return next(step.ids for step in report.steps if not step.holds)


@pytest.mark.scenario("D2-S7")
def test_without_truncation_a_reader_is_given_m3_where_another_has_m4(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader that never says where the logs part leaves M3 on A, where B has M4: in sync, and
    below the high watermark, it is given to readers of A."""
    monkeypatch.setattr(fetch_answers, "_diverging", lambda *_: None)
    report = told("no_reader_is_given_what_is_cut")

    assert step_that_fails(report) == ("D2-G3",)
    assert "'M3'" in str(report.why_not("D2-G3"))
    assert report.why_not("D2-S7") is not None


@pytest.mark.scenario("D2-S7")
def test_the_judge_names_what_was_read_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same world, and only the judge looks."""
    monkeypatch.setattr(fetch_answers, "_diverging", lambda *_: None)
    monkeypatch.setattr(Checks, "same", lambda *_: None)
    verdicts: list[LabVerdict] = []
    audit = Lab.audit

    def keep(lab: Lab) -> LabVerdict:
        verdicts.append(audit(lab))
        return verdicts[-1]

    monkeypatch.setattr(Lab, "audit", keep)

    told("no_reader_is_given_what_is_cut")

    assert {"M3", "M4"} & set(verdicts[0].read_then_lost)


@pytest.mark.scenario("D2-G3")
@pytest.mark.parametrize(
    "name", ["leader-serves-to-its-log-end", "read-replica-serves-to-its-log-end"]
)
def test_a_reader_that_is_given_more_than_is_committed_is_seen(name: str) -> None:
    """M2 and M3 are read from A, or M2 from B, before anybody has committed them."""
    with MUTANTS[name].planted():
        report = told("no_reader_is_given_what_is_cut")

    assert step_that_fails(report) == ("D2-G3",)
    assert "dirty read" in str(report.why_not("D2-G3"))


@pytest.mark.scenario("D3-R2")
def test_a_fetch_that_is_counted_before_its_epochs_were_compared_commits_what_nobody_copied() -> (
    None
):
    with MUTANTS["count-before-the-epoch"].planted():
        reason = told("a_fetch_of_another_history_counts_for_nothing").why_not("D3-R2")

    assert "the high watermark is 15, not 10" in str(reason)


@pytest.mark.scenario("D1-W4")
def test_a_producer_that_numbers_a_retry_anew_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the sequences behind those of its first try."""
    requeued = ProducerBatch.requeued

    def number_anew(batch: ProducerBatch, **rest: int) -> None:
        requeued(batch, **rest)
        assert batch.numbered is not None
        base_sequence = batch.numbered.base_sequence + batch.count
        batch.number(batch.numbered._replace(base_sequence=base_sequence), again=True)

    monkeypatch.setattr(ProducerBatch, "requeued", number_anew)
    reason = told("a_producer_retries_by_itself").why_not("D1-W4")

    assert "sequences is" in str(reason)


@pytest.mark.scenario("X-2")
def test_with_the_old_rule_two_records_share_an_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-101: without the answer that says where the logs part, A keeps its own record at that
    offset. Its stored high watermark is 1 here, so a cut to that would have hidden it."""
    monkeypatch.setattr(fetch_answers, "_diverging", lambda *_: None)
    reason = told("two_records_never_share_an_offset").why_not("X-2")

    assert "log(A) is ['m1', 'm2'], not ['m1', 'm3']" in str(reason)


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
