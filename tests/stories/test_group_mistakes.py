"""The stories of groups with a mistake planted in the coordinator, which they must notice."""

from __future__ import annotations

import pytest

import tidelog.lab.stories  # noqa: F401 - opens the book
from tidelog.core.groups import classic_groups
from tidelog.core.model.errors import ErrorCode
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.story import BOOK, play
from tidelog.worlds.simulator.mutants_of_groups import GROUP_MUTANTS

MUTANTS = {mutant.name: mutant for mutant in GROUP_MUTANTS}


def why_not(story: str) -> str | None:
    """What is wrong with the first scenario of the story."""
    return play(BOOK[story], SimulatorEngine(seed=1)).why_not(BOOK[story].ids[0])


@pytest.mark.parametrize(
    ("mistake", "story", "noticed"),
    [
        ("answer-before-commit", "a_coordinator_dies_in_a_commit", "the outcome so far"),
        (
            "load-without-sessions",
            "coordinator_member_and_leader_die_together",
            "has orders-0, orders-1",
        ),
    ],
)
def test_a_story_notices_a_mistake_of_the_coordinator(
    mistake: str, story: str, noticed: str
) -> None:
    with MUTANTS[mistake].planted():
        reason = why_not(story)

    assert reason is not None and noticed in reason, reason


def test_a_story_notices_the_commit_of_a_member_that_is_none_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(classic_groups, "refuse_commit", lambda *_, **__: ErrorCode.NONE)

    assert "refused is False" in str(why_not("a_member_that_overslept"))
