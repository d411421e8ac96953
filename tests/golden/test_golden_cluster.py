"""Conversations with a cluster, held again with three Tidelog processes: no surprise."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tests.golden import cluster_live, recordings
from tests.golden.cases.registry import CLUSTER
from tests.golden.cluster_cases import CLUSTER_CASES
from tests.golden.compare import differences
from tests.golden.explained import EXPLAINED, Explained, unexplained
from tests.golden.recordings import Steps
from tests.kafka import unavailable_reason

pytestmark = pytest.mark.xdist_group("golden-cluster")

SAMPLE_EVERY = 6


@pytest.fixture(scope="module")
def stored() -> dict[str, Steps]:
    return recordings.load()


@pytest.fixture(scope="module")
def told() -> dict[str, Steps]:
    """What one Tidelog cluster said in all conversations."""
    with cluster_live.tidelog() as cluster:
        return cluster_live.run_all(list(CLUSTER_CASES.values()), cluster, label="Tidelog")


@pytest.mark.parametrize("name", CLUSTER_CASES)
def test_a_tidelog_cluster_answers_as_kafka_does(
    name: str, told: dict[str, Steps], stored: dict[str, Steps]
) -> None:
    """The answers to one case are those that were recorded from three nodes of Apache Kafka."""
    wrong = unexplained(differences(name, stored[name], told[name]))
    assert not wrong, CLUSTER_CASES[name].description + "\n" + "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    ("entry", "pattern"),
    [
        pytest.param(entry, pattern, id=f"{entry.title}: {pattern}")
        for entry in EXPLAINED
        for pattern in entry.cases
        if pattern.startswith(CLUSTER)
    ],
)
def test_every_explanation_still_explains_something(
    entry: Explained, pattern: str, told: dict[str, Steps], stored: dict[str, Steps]
) -> None:
    """An explanation that covers no difference of its cases any more has to go."""
    names = [name for name in CLUSTER_CASES if fnmatchcase(name, pattern)]
    found = [each for name in names for each in differences(name, stored[name], told[name])]
    assert any(entry.covers(difference) for difference in found)


@pytest.mark.java
@pytest.mark.long
def test_the_recordings_are_what_a_kafka_cluster_answers(stored: dict[str, Steps]) -> None:
    """A sample of the cases, recorded anew from three live nodes, equals the recordings."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    sample = list(CLUSTER_CASES.values())[::SAMPLE_EVERY]
    with cluster_live.apache_kafka() as kafka:
        now = cluster_live.run_all(sample, kafka, label="Apache Kafka")
    assert now == {case.name: stored[case.name] for case in sample}
