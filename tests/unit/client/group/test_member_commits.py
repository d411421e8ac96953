"""Commits of a member: their order, their outcomes, and what a refusal says about it."""

from __future__ import annotations

import pytest

from tests.unit.client.fake_cluster import Close, Drop, once
from tests.unit.client.group.given import Stage, refuse
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_08_offset_commit import OffsetCommitRequest


@pytest.fixture(name="stage")
def _stage() -> Stage:
    return Stage()


def test_commits_keep_their_order(stage: Stage) -> None:
    member = stage.first()
    stage.refuse_once(8, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    for offset in (1, 2, 3):
        member.commit(0, offset)
    stage.clock.run_until(lambda: len(member.outcomes) == 3)

    assert all(each.is_ok for each in member.outcomes)
    assert stage.committed(0) == 3
    sent = [
        each.request.topics[0].partitions[0].committed_offset
        for each in stage.cluster.requests(OffsetCommitRequest)
    ]
    assert sent == [1, 1, 2, 3]


def test_a_refused_commit_is_told_and_harms_no_membership(stage: Stage) -> None:
    member = stage.first()
    stage.refuse_once(8, ErrorCode.OFFSET_METADATA_TOO_LARGE)
    member.commit(0, 1)
    stage.clock.run_until(lambda: bool(member.outcomes))

    assert member.outcomes[0].error == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert not member.outcomes[0].is_unknown
    assert member.is_stable and len(member.told) == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, "lost"),
        (ErrorCode.ILLEGAL_GENERATION, "lost"),
        (ErrorCode.REBALANCE_IN_PROGRESS, "revoked"),
    ],
)
def test_a_commit_from_the_past_is_refused_and_joins_again(
    stage: Stage, error: ErrorCode, told: str
) -> None:
    member = stage.first()
    stage.refuse_once(8, error)
    member.commit(0, 1)
    stage.clock.run_until(lambda: len(member.told) == 3)

    assert [each.error for each in member.outcomes] == [error]
    assert member.told[1] == (told, (0, 1, 2, 3))
    assert stage.committed(0) is None


def test_a_commit_outside_of_a_generation_is_refused_at_once(stage: Stage) -> None:
    member = stage.join()
    member.commit(0, 1)

    assert [each.error for each in member.outcomes] == [ErrorCode.REBALANCE_IN_PROGRESS]


def test_a_commit_never_counts_for_a_later_generation(stage: Stage) -> None:
    member = stage.first()
    stage.rule(refuse(8, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    member.commit(0, 1)
    stage.refuse_once(12, ErrorCode.UNKNOWN_MEMBER_ID)
    stage.clock.run_until(lambda: bool(member.outcomes))

    assert [each.error for each in member.outcomes] == [ErrorCode.ILLEGAL_GENERATION]


def test_a_commit_without_an_answer_is_unknown(stage: Stage) -> None:
    member = stage.first(default_api_timeout_ms=2_000)
    stage.rule(lambda _, request: Close() if request.api_key == 8 else None)
    member.commit(0, 1)
    stage.clock.run_until(lambda: bool(member.outcomes))

    assert member.outcomes[0].is_unknown and not member.outcomes[0].is_ok


@pytest.mark.parametrize("ends", ["fenced", "leaves"])
def test_a_commit_on_its_way_has_an_outcome_when_the_member_ends(stage: Stage, ends: str) -> None:
    member = stage.first(group_instance_id="one")
    stage.rule(lambda _, request: Drop() if request.api_key == 8 else None)
    member.commit(0, 1)
    stage.clock.run_for(100)
    if ends == "leaves":
        member.leave()
    else:
        stage.cluster.kill(2)
        stage.coordinator.move(3)
        stage.rule(once(refuse(8, ErrorCode.FENCED_INSTANCE_ID)))
    stage.clock.run_until(lambda: member.member.is_over, within_ms=60_000)

    assert len(member.outcomes) == 1 and not member.outcomes[0].is_ok
    assert member.outcomes[0].is_unknown == (ends == "leaves")
    stage.clock.run_for(120_000)
    assert len(member.outcomes) == 1
