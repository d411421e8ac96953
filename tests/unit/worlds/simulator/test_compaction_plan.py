"""The plan of a compaction run is data of its seed, and nothing in it excuses a lost value."""

from __future__ import annotations

import pytest

from tidelog.worlds.simulator.profiles.compaction import CompactionRun
from tidelog.worlds.simulator.profiles.compaction_plan import (
    CLUSTER_VERBS,
    COMPACTION_VERBS,
    POWER_VERBS,
    make_compaction_plan,
)
from tidelog.worlds.simulator.steps import PlanStep

VERBS = [verb for verb, _ in (*COMPACTION_VERBS, *POWER_VERBS, *CLUSTER_VERBS)]


def test_the_same_seed_makes_the_same_plan() -> None:
    assert make_compaction_plan(7) == make_compaction_plan(7)
    assert make_compaction_plan(7) != make_compaction_plan(8)


def test_every_verb_is_the_business_of_one_and_comes_up() -> None:
    run = CompactionRun(1)
    for verb in VERBS:
        step = PlanStep(0, verb)
        assert [run.faults.knows(step), run.admin.knows(step)].count(True) == 1, verb
    drawn = {step.verb for seed in range(1, 150) for step in make_compaction_plan(seed).steps}
    assert drawn == set(VERBS)


@pytest.mark.parametrize("seed", range(1, 60))
def test_nothing_in_a_plan_excuses_a_lost_value(seed: int) -> None:
    """Where power fails, what is committed is on disks."""
    plan = make_compaction_plan(seed)
    loses = any("power" in step.verb or step.verb == "fail sync" for step in plan.steps)

    assert not loses or plan.settings["tidelog.fsync"] != "none"
    assert not any(topic.allows_unclean for topic in plan.topics)
    assert {topic.configs["cleanup.policy"] for topic in plan.topics} == {
        "compact",
        "compact,delete",
    }
