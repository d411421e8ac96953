"""Every recorded conversation with a broker that coordinates groups, held again with Tidelog."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import pytest

from tests.golden import live, recordings
from tests.golden.cases.registry import GROUPS
from tests.golden.compare import Difference, differences
from tests.golden.explained import EXPLAINED, Explained, unexplained
from tests.golden.group_cases import GROUP_CASES
from tests.golden.in_process import InProcessTidelog
from tests.golden.recordings import Steps
from tests.kafka import unavailable_reason

SAMPLE_EVERY = 12


@cache
def stored() -> dict[str, Steps]:
    return recordings.load()


def compared(name: str) -> list[Difference]:
    """All differences of one case, explained ones too."""
    ours = recordings.run(GROUP_CASES[name], InProcessTidelog(live.GROUP_SETTINGS))
    return differences(name, stored()[name], ours)


@pytest.mark.parametrize("name", GROUP_CASES)
def test_tidelog_answers_as_kafka_does(name: str) -> None:
    """The answers to one case are those that were recorded from Apache Kafka."""
    wrong = unexplained(compared(name))
    assert not wrong, GROUP_CASES[name].description + "\n" + "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    ("entry", "pattern"),
    [
        pytest.param(entry, pattern, id=f"{entry.title}: {pattern}")
        for entry in EXPLAINED
        for pattern in entry.cases
        if pattern.startswith(GROUPS)
    ],
)
def test_every_explanation_still_explains_something(entry: Explained, pattern: str) -> None:
    """An explanation that covers no difference of its cases any more has to go."""
    names = [name for name in GROUP_CASES if fnmatchcase(name, pattern)]
    assert any(entry.covers(difference) for name in names for difference in compared(name))


@pytest.mark.java
@pytest.mark.long
def test_the_recordings_are_what_kafka_answers() -> None:
    """A sample of the cases, recorded anew from a live Apache Kafka, equals the recordings."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    sample = list(GROUP_CASES.values())[::SAMPLE_EVERY]
    with live.kafka_with_groups() as kafka:
        now = live.run_all(sample, kafka, label="Apache Kafka")
    assert now == {case.name: stored()[case.name] for case in sample}
