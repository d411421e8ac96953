"""The plan of a storage run: one broker, and steps that it or its administrator can carry out."""

from __future__ import annotations

from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.admin import WireAdmin
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.faults import ClusterFaults
from tidelog.worlds.simulator.profiles.storage_plan import STORAGE_VERBS, make_storage_plan
from tidelog.worlds.simulator.steps import PlanStep

PLANS = [make_storage_plan(seed) for seed in range(1, 150)]


def test_the_same_seed_makes_the_same_plan() -> None:
    assert make_storage_plan(7) == make_storage_plan(7) != make_storage_plan(8)


def test_every_verb_is_somebodys_business() -> None:
    context = RunContext(PLANS[0], disk_type=SimDisk)
    faults, admin = ClusterFaults(context), WireAdmin(context)

    for verb, _ in STORAGE_VERBS:
        assert faults.knows(PlanStep(0, verb)) != admin.knows(PlanStep(0, verb)), verb


def test_every_verb_comes_up() -> None:
    drawn = {step.verb for plan in PLANS for step in plan.steps}
    assert drawn == {verb for verb, _ in STORAGE_VERBS}


def test_one_replica_has_it_all_and_nobody_may_overrule_it() -> None:
    for plan in PLANS:
        assert plan.brokers == [1]
        topics = [*plan.topics, *plan.extra_topics]
        assert all(topic.replication_factor == 1 for topic in topics)
        assert not any(topic.allows_unclean for topic in topics)


def test_a_deleted_topic_is_created_again_under_its_name() -> None:
    created = [
        [step.who[0] for step in plan.steps if step.verb == "create topic"] for plan in PLANS
    ]
    assert any(len(names) > len(set(names)) for names in created)
