"""The plan of a groups run is data of its seed, and every step of it can be carried out."""

from __future__ import annotations

import pytest

from tidelog.worlds.simulator.profiles.groups import GroupsRun
from tidelog.worlds.simulator.profiles.groups_plan import GROUP_VERBS, make_groups_plan
from tidelog.worlds.simulator.steps import PlanStep


def test_the_same_seed_makes_the_same_plan() -> None:
    assert make_groups_plan(7) == make_groups_plan(7)
    assert make_groups_plan(7) != make_groups_plan(8)


def test_every_verb_is_the_business_of_one() -> None:
    run = GroupsRun(1)
    for verb, _ in GROUP_VERBS:
        step = PlanStep(0, verb)
        owners = [run.faults.knows(step), run.admin.knows(step), run.group_admin.knows(step)]
        assert [*owners, run.knows(step)].count(True) == 1, verb


def test_every_verb_comes_up() -> None:
    drawn = {step.verb for seed in range(1, 150) for step in make_groups_plan(seed).steps}
    assert drawn == {verb for verb, _ in GROUP_VERBS}


@pytest.mark.parametrize("seed", range(1, 60))
def test_nothing_in_a_plan_excuses_a_lost_commit(seed: int) -> None:
    """Where power fails, what is committed is on disks."""
    plan = make_groups_plan(seed)
    loses_power = any("power" in step.verb for step in plan.steps)

    assert not loses_power or plan.cluster.settings["tidelog.fsync"] != "none"
    assert plan.cluster.settings.get("unclean.leader.election.enable", "false") == "false"


def test_groups_of_every_kind_come_up() -> None:
    plans = [make_groups_plan(seed) for seed in range(1, 60)]
    static = {member.instance is not None for plan in plans for member in plan.members}

    assert static == {True, False}
    assert {plan.offsets_partitions for plan in plans} == {1, 2, 3, 5}
    assert all(plan.groups == ["dynamic", "static", "consumer"] for plan in plans)
    new = [member for plan in plans for member in plan.members if member.group == "consumer"]
    assert {member.remote_assignor for member in new} == {"uniform", "range"}
    assert {member.instance is not None for member in new} == {True, False}
    assert any(member.revocation_ms > member.rebalance_timeout_ms for member in new)
