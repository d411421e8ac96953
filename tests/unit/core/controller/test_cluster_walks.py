"""Any sequence of decisions keeps the promises of the image; chance picks the sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.controller.cluster import ID, Choices, cluster, directory, state
from tests.unit.core.controller.test_admission import NEWCOMER
from tidelog.core.controller.admission import decide_admission
from tidelog.core.controller.alter_partition import IsrChange, Member, decide_isr_changes
from tidelog.core.controller.broker_fencing import (
    decide_fencing,
    decide_forgetting,
    decide_leaving,
    decide_unfencing,
)
from tidelog.core.controller.elect_leaders import (
    decide_balance,
    decide_elections,
    decide_unclean_round,
    everywhere,
)
from tidelog.core.controller.election import Election
from tidelog.core.controller.events import ElectionKind, LeaderElected
from tidelog.core.controller.reassignment import ReassignmentRequest, decide_reassignments
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import ClearElrRecord, MetadataRecord

Decided = tuple[list[MetadataRecord], list[object]]
Step = Callable[["Walk"], Decided]


class Walk:
    """A cluster that lives through decisions; `check` after each of them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.choices = Choices(
            min_insync_replicas_count=self.random.randrange(1, 4),
            unclean=self.random.random() < 0.3,
            keeps_eligible=self.random.random() < 0.8,
        )
        self.image = cluster(state(1, 2, 3), state(2, 3, 1), state(3, 1), state(2))
        self.next_offset = 100
        assert not self.image.index.leaderless()

    def step(self) -> None:
        step = self.random.choice(STEPS)
        before = list(self.image.topics["t"].partitions)
        records, events = step(self)
        may_lose = step in (unclean_elections,) or self.choices.unclean
        for record in records:
            self.image.apply(record)
        self.next_offset += len(records)
        self.image.check()
        for old, new in zip(before, self.image.topics["t"].partitions, strict=True):
            self._compare(old, new, may_lose=may_lose)
        self._check_told(before, events)

    def _compare(self, old: PartitionState, new: PartitionState, *, may_lose: bool) -> None:
        assert new.partition_epoch >= old.partition_epoch
        assert new.leader_epoch >= old.leader_epoch
        is_dropped = not set(old.replicas) <= set(new.replicas)
        assert (new.leader_epoch > old.leader_epoch) == (new.leader != old.leader or is_dropped), (
            "the leader epoch tells leaders apart, and fences who was dropped"
        )
        came = set(new.replicas) - set(old.replicas)
        assert came <= set(new.adding_replicas), "a new replica is on its way"
        assert not came & set(new.isr), "and counts for nothing yet"
        if old != new:
            assert new.partition_epoch > old.partition_epoch
        for member in new.isr if self.choices.keeps_eligible else ():
            broker = self.image.brokers.get(member)
            assert broker is not None and broker.is_active, "in sync are only the living"
        if new.leader is None:
            return
        assert self.image.brokers[new.leader].is_active, "a dead broker leads"
        if new.leader != old.leader and not may_lose:
            sources = {*old.eligible_leader_replicas, *old.last_known_leaders, *in_sync(old, new)}
            assert new.leader in sources, "elected from nowhere"

    def _check_told(self, before: list[PartitionState], events: list[object]) -> None:
        for event in events:
            if isinstance(event, LeaderElected):
                old = before[event.partition]
                new = self.image.topics["t"].partitions[event.partition]
                assert (event.leader, event.leader_epoch) == (new.leader, new.leader_epoch)
                if event.kind in (ElectionKind.CLEAN, ElectionKind.PREFERRED):
                    assert event.leader in in_sync(old, new)
                if event.kind is ElectionKind.ELIGIBLE:
                    assert event.leader in {*old.eligible_leader_replicas, *old.isr}
                lost = event.kind in (ElectionKind.LAST_KNOWN, ElectionKind.UNCLEAN)
                assert not lost or (new.leader_is_recovering and new.isr == (event.leader,))

    def some_broker(self, *, is_fenced: bool | None = None) -> int | None:
        ids = [
            each.broker_id
            for each in self.image.brokers.values()
            if is_fenced is None or each.is_fenced == is_fenced
        ]
        return self.random.choice(ids) if ids else None


def in_sync(old: PartitionState, new: PartitionState) -> set[int]:
    """Also whoever came in sync in the very record that ended a reassignment: it may have been
    added, or have been one of the replicas that stay."""
    was_moving = old.adding_replicas or old.removing_replicas
    is_over = was_moving and not (new.adding_replicas or new.removing_replicas)
    return {*old.isr, *(new.isr if is_over else ())}


def fencing(walk: Walk) -> Decided:
    broker_id = walk.some_broker(is_fenced=False)
    if broker_id is None:
        return [], []
    changes = decide_fencing(walk.image, walk.choices, broker_ids=(broker_id,), reason="")
    return changes.records, changes.events


def unfencing(walk: Walk) -> Decided:
    broker_id = walk.some_broker(is_fenced=True)
    if broker_id is None:
        return [], []
    if walk.image.brokers[broker_id].in_controlled_shutdown:
        return [], []  # such a process ends
    changes = decide_unfencing(walk.image, walk.choices, broker_id=broker_id)
    return changes.records, changes.events


def leaving(walk: Walk) -> Decided:
    broker_id = walk.some_broker(is_fenced=False)
    if broker_id is None:
        return [], []
    changes = decide_leaving(walk.image, walk.choices, broker_id=broker_id)
    return changes.records, changes.events


def forgetting(walk: Walk) -> Decided:
    broker_id = walk.some_broker()
    if broker_id is None or walk.random.random() < 0.7:
        return [], []
    changes = decide_forgetting(walk.image, walk.choices, broker_id=broker_id)
    return changes.records, changes.events


def registering(walk: Walk) -> Decided:
    broker_id = walk.random.randrange(1, 4)
    known = walk.image.brokers.get(broker_id)
    is_clean = known is not None and walk.random.random() < 0.5
    is_wiped = walk.random.random() < 0.2
    newcomer = replace(
        NEWCOMER,
        broker_id=broker_id,
        incarnation_id=walk.random.randbytes(16),
        previous_broker_epoch=known.broker_epoch if is_clean and known else None,
        log_directories=(
            (directory(walk.next_offset),) if is_wiped or known is None else known.log_directories
        ),
    )
    changes, _ = decide_admission(walk.image, walk.choices, newcomer, next_offset=walk.next_offset)
    return changes.records, changes.events


def isr_change(walk: Walk) -> Decided:
    index = walk.random.randrange(4)
    before = walk.image.topics["t"].partitions[index]
    if before.leader is None:
        return [], []
    chosen = [each for each in before.replicas if walk.random.random() < 0.6]
    members = {before.leader, *chosen}
    request = IsrChange(
        key=PartitionKey(ID, index),
        leader_epoch=before.leader_epoch,
        partition_epoch=before.partition_epoch,
        members=tuple(Member(each, None) for each in sorted(members)),
        leader_is_recovering=False,
    )
    decision = decide_isr_changes(
        walk.image, walk.choices, leader=before.leader, requests=[request]
    )
    return decision.records, decision.events


def preferred_elections(walk: Walk) -> Decided:
    changes, _ = decide_elections(
        walk.image, walk.choices, everywhere(walk.image), Election.PREFERRED
    )
    return changes.records, changes.events


def unclean_elections(walk: Walk) -> Decided:
    if walk.random.random() < 0.7:
        return [], []
    changes, _ = decide_elections(
        walk.image, walk.choices, everywhere(walk.image), Election.UNCLEAN
    )
    return changes.records, changes.events


def rounds(walk: Walk) -> Decided:
    decide = walk.random.choice([decide_balance, decide_unclean_round])
    changes, _ = decide(walk.image, walk.choices)
    return changes.records, changes.events


def reassigning(walk: Walk) -> Decided:
    """Another target, or back: also over one that is under way."""
    index = walk.random.randrange(4)
    wanted: tuple[int, ...] | None = None
    ids = sorted(walk.image.brokers)
    if ids and walk.random.random() < 0.7:
        wanted = tuple(walk.random.sample(ids, k=walk.random.randrange(1, len(ids) + 1)))
    request = ReassignmentRequest(topic="t", partition=index, replicas=wanted)
    changes, _ = decide_reassignments(walk.image, walk.choices, [request], may_change_factor=True)
    return changes.records, changes.events


def clearing(walk: Walk) -> Decided:
    return ([ClearElrRecord(topic_name="t")] if walk.random.random() < 0.3 else []), []


STEPS: list[Step] = [
    fencing, unfencing, unfencing, leaving, forgetting, registering, registering, isr_change,
    isr_change, preferred_elections, unclean_elections, rounds, clearing, reassigning, reassigning,
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_after_any_sequence_of_decisions_the_promises_hold(seed: int) -> None:
    walk = Walk(seed)

    for _ in range(40):
        walk.step()


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(587, id="a broker with a new disk ends a reassignment by registering"),
        pytest.param(1024, id="a replica that stays comes in sync, and those that leave go"),
    ],
)
def test_walks_that_once_failed(seed: int) -> None:
    walk = Walk(seed)

    for _ in range(40):
        walk.step()


def test_the_walks_see_every_kind_of_election() -> None:
    """A walk that never elects from the eligible proves nothing about them."""
    kinds: set[ElectionKind] = set()
    for seed in range(60):
        walk = Walk(seed)
        for _ in range(40):
            step = walk.random.choice(STEPS)
            records, events = step(walk)
            for record in records:
                walk.image.apply(record)
            walk.next_offset += len(records)
            kinds |= {event.kind for event in events if isinstance(event, LeaderElected)}

    assert kinds == set(ElectionKind)
