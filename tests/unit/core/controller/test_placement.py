"""Placement: racks first, then leaders evenly over brokers and racks, then replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from tidelog.core.controller.placement import Candidate, PlacementRefused, assign_replicas


def cluster(*, racks: int, brokers_per_rack: int) -> list[Candidate]:
    return [
        Candidate(number, f"rack-{number % racks}", False)
        for number in range(racks * brokers_per_rack)
    ]


def placed(
    candidates: list[Candidate],
    *,
    partitions_count: int,
    replication_factor: int,
    seed: int = 0,
    existing: list[tuple[int, ...]] | None = None,
) -> list[tuple[int, ...]]:
    result = assign_replicas(
        candidates,
        partitions_count=partitions_count,
        replication_factor=replication_factor,
        random=Random(seed),
        existing=existing or [],
    )
    assert not isinstance(result, PlacementRefused)
    return result


def spread(counts: Counter[object], keys: Sequence[object]) -> int:
    return max(counts[key] for key in keys) - min(counts[key] for key in keys)


SHAPES = [
    shape
    for shape in product((1, 2, 3, 4), (1, 2, 3), (1, 2, 3, 4), (1, 5, 24, 50))
    if shape[2] <= shape[0] * shape[1]
]


@pytest.mark.parametrize(("racks", "per_rack", "replication_factor", "partitions"), SHAPES)
def test_equal_racks_share_replicas_and_leaders_evenly(
    racks: int, per_rack: int, replication_factor: int, partitions: int
) -> None:
    candidates = cluster(racks=racks, brokers_per_rack=per_rack)
    rack_of = {candidate.broker_id: candidate.rack for candidate in candidates}
    all_racks = sorted({str(rack) for rack in rack_of.values()})
    for seed in range(3):
        result = placed(
            candidates,
            partitions_count=partitions,
            replication_factor=replication_factor,
            seed=seed,
        )

        assert len(result) == partitions
        for replicas in result:
            assert len(set(replicas)) == replication_factor
            assert spread(Counter(rack_of[b] for b in replicas), all_racks) <= 1
        assert spread(Counter(r[0] for r in result), list(rack_of)) <= 1
        assert spread(Counter(rack_of[r[0]] for r in result), all_racks) <= 1
        assert spread(Counter(b for r in result for b in r), list(rack_of)) <= 2


def test_a_lonely_broker_of_a_rack_gets_a_replica_of_everything() -> None:
    candidates = [Candidate(1, "a", False), Candidate(2, "a", False), Candidate(3, "b", False)]

    result = placed(candidates, partitions_count=10, replication_factor=2)

    assert all(3 in replicas for replicas in result)
    leaders = Counter(replicas[0] for replicas in result)
    assert max(leaders.values()) - min(leaders.values()) <= 1


def test_the_leader_is_never_a_fenced_broker_and_others_are_preferred() -> None:
    candidates = [Candidate(number, None, number in (2, 3)) for number in range(1, 6)]

    result = placed(candidates, partitions_count=20, replication_factor=3)

    assert all(set(replicas) == {1, 4, 5} for replicas in result)
    wide = placed(candidates, partitions_count=20, replication_factor=5)
    assert all(replicas[0] not in (2, 3) for replicas in wide)


def test_a_dead_leaders_load_falls_on_many_brokers() -> None:
    candidates = [Candidate(number, None, False) for number in range(5)]

    result = placed(candidates, partitions_count=100, replication_factor=3)

    heirs = Counter(replicas[1] for replicas in result if replicas[0] == 0)
    assert set(heirs) == {1, 2, 3, 4}
    assert max(heirs.values()) <= 2 * min(heirs.values())


def test_new_partitions_even_out_the_ones_that_are_there() -> None:
    candidates = [Candidate(number, None, False) for number in range(3)]

    result = placed(
        candidates, partitions_count=2, replication_factor=1, existing=[(0,), (7,), (7,)]
    )

    assert sorted(result) == [(1,), (2,)]


def test_small_topics_begin_at_different_brokers() -> None:
    candidates = [Candidate(number, None, False) for number in range(3)]

    firsts = {
        placed(candidates, partitions_count=1, replication_factor=1, seed=seed)[0][0]
        for seed in range(20)
    }

    assert firsts == {0, 1, 2}


def test_the_same_chance_gives_the_same_placement() -> None:
    candidates = cluster(racks=3, brokers_per_rack=2)

    results = [
        placed(order, partitions_count=9, replication_factor=3, seed=4)
        for order in (candidates, candidates[::-1])
    ]

    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("candidates", "reason"),
    [
        ([], "no broker is registered"),
        ([Candidate(1, None, True)], "all brokers are fenced"),
        ([Candidate(1, None, False)], "more than the 1 registered"),
    ],
)
def test_what_cannot_be_placed_says_why(candidates: list[Candidate], reason: str) -> None:
    result = assign_replicas(candidates, partitions_count=1, replication_factor=2, random=Random(0))

    assert isinstance(result, PlacementRefused)
    assert reason in result.reason
