"""Every recorded conversation about transactions, held again with Tidelog."""

from __future__ import annotations

from functools import cache

import pytest

from tests.golden import live, recordings
from tests.golden.cases.registry import TRANSACTIONS
from tests.golden.compare import Difference, differences
from tests.golden.explained import EXPLAINED, Explained, unexplained
from tests.golden.in_process import InProcessTidelog
from tests.golden.recordings import Steps
from tests.golden.transaction_cases import TRANSACTION_CASES
from tests.kafka import unavailable_reason

SAMPLE_EVERY = 12


@cache
def stored() -> dict[str, Steps]:
    return recordings.load()


def compared(name: str) -> list[Difference]:
    """All differences of one case, explained ones too."""
    broker = InProcessTidelog(live.TRANSACTION_SETTINGS)
    live.wait_for_coordinators(broker)
    return differences(name, stored()[name], recordings.run(TRANSACTION_CASES[name], broker))


@pytest.mark.parametrize("name", TRANSACTION_CASES)
def test_tidelog_answers_as_kafka_does(name: str) -> None:
    """The answers to one case are those that were recorded from Apache Kafka."""
    wrong = unexplained(compared(name))
    assert not wrong, TRANSACTION_CASES[name].description + "\n" + "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        pytest.param(entry, name, id=f"{entry.title}: {name}")
        for entry in EXPLAINED
        for name in entry.cases
        if name.startswith(TRANSACTIONS)
    ],
)
def test_every_explanation_still_explains_something(entry: Explained, name: str) -> None:
    """An explanation that covers no difference of a case any more has to go."""
    assert any(entry.covers(difference) for difference in compared(name))


@pytest.mark.java
@pytest.mark.long
def test_the_recordings_are_what_kafka_answers() -> None:
    """A sample of the cases, recorded anew from a live Apache Kafka, equals the recordings."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    sample = list(TRANSACTION_CASES.values())[::SAMPLE_EVERY]
    with live.kafka_with_transactions() as kafka:
        now = live.run_all(sample, kafka, label="Apache Kafka")
    assert now == {case.name: stored()[case.name] for case in sample}
