"""Conversations with a cluster, held again with three Tidelog processes: no surprise."""

from __future__ import annotations

import pytest

from tests.golden import cluster_live, recordings
from tests.golden.cases.registry import CLUSTER
from tests.golden.cluster_cases import CLUSTER_CASES
from tests.golden.compare import differences
from tests.golden.explained import EXPLAINED, Explained, field_of, unexplained
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
    "entry",
    [each for each in EXPLAINED if any(name.startswith(CLUSTER) for name in each.cases)],
    ids=lambda entry: str(entry.title),
)
def test_every_case_and_every_field_of_an_explanation_is_needed(
    entry: Explained, told: dict[str, Steps], stored: dict[str, Steps]
) -> None:
    """What does not differ any more has to go from the list, and from the page."""
    names = [name for name in entry.cases if name.startswith(CLUSTER)]
    found = [each for name in names for each in differences(name, stored[name], told[name])]
    covered = [each for each in found if entry.covers(each)]
    assert {each.case for each in covered} == set(names)
    assert {field_of(each) for each in covered} == set(entry.fields)


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
