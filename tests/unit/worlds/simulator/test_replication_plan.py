"""The plan of a replication run is data of its seed, and every step of it can be carried out."""

from __future__ import annotations

import pytest

from tidelog.worlds.simulator.cluster import BROKER, CONTROLLER
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.admin import WireAdmin
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.faults import ClusterFaults
from tidelog.worlds.simulator.profiles.replication_plan import (
    REPLICATION_VERBS,
    make_replication_plan,
)
from tidelog.worlds.simulator.steps import PlanStep

SEEDS = range(1, 60)


VERBS = {verb for verb, _ in REPLICATION_VERBS} | {"reassign", "cancel reassignment"}


def test_the_same_seed_makes_the_same_plan() -> None:
    assert make_replication_plan(7) == make_replication_plan(7)
    assert make_replication_plan(7) != make_replication_plan(8)


def test_every_verb_is_somebodys_business() -> None:
    context = RunContext(make_replication_plan(1), disk_type=SimDisk)
    faults, admin = ClusterFaults(context), WireAdmin(context)

    for verb in VERBS:
        assert faults.knows(PlanStep(0, verb)) != admin.knows(PlanStep(0, verb)), verb


def test_every_verb_comes_up() -> None:
    drawn = {step.verb for seed in range(1, 150) for step in make_replication_plan(seed).steps}
    assert drawn == VERBS


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_can_be_carried_out_by_its_cluster(seed: int) -> None:
    plan = make_replication_plan(seed)
    voters = [node for node in plan.nodes if CONTROLLER in node.roles]

    assert len(voters) in (3, 5), "an odd number of voters"
    assert all(topic.replication_factor <= len(plan.brokers) for topic in plan.topics)
    times = [step.at_ms for step in plan.steps]
    assert times == sorted(times)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_in_a_plan_excuses_a_loss_from_the_safe_topic(seed: int) -> None:
    """Except a power loss with a page cache: no unclean election, and no voter that forgets."""
    plan = make_replication_plan(seed)
    safe = next(topic for topic in plan.topics if topic.name == "safe")
    forgetful = {step.who[0] for step in plan.steps if step.verb == "wipe"}
    voters = {f"node-{node.node_id}" for node in plan.nodes if CONTROLLER in node.roles}

    assert not safe.allows_unclean
    assert not any(step.verb == "allow unclean" and step.who[0] == "safe" for step in plan.steps)
    assert not forgetful & voters


def test_clusters_of_every_shape_come_up() -> None:
    shapes = {
        tuple(sorted(map(tuple, (n.roles for n in make_replication_plan(s).nodes)))) for s in SEEDS
    }
    roles = {role for shape in shapes for role in shape}
    assert len(shapes) >= 4
    assert {(BROKER,), (CONTROLLER,), (BROKER, CONTROLLER)} <= roles
