"""Every recorded conversation, held again with Tidelog: no difference without an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from tests.golden import live, recordings
from tests.golden.cases import CASES, COORDINATED_CASES
from tests.golden.cases.registry import CLUSTER, GROUPS, TRANSACTIONS
from tests.golden.compare import Difference, differences
from tests.golden.documentation import FILE, documentation
from tests.golden.explained import EXPLAINED, Explained, field_of, unexplained
from tests.golden.in_process import InProcessTidelog
from tests.golden.recordings import Steps
from tests.kafka import unavailable_reason
from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import FileSlice

SAMPLE_EVERY = 12
ERROR_CODE_AT = 4 + 4 + 4 + 1
"""The low byte, after size, correlation id and throttle time."""


@cache
def stored() -> dict[str, Steps]:
    return recordings.load()


def compared(name: str) -> list[Difference]:
    """All differences of one case, explained ones too."""
    if name in CASES:
        ours = recordings.run(CASES[name], InProcessTidelog())
    else:
        broker = InProcessTidelog(live.COORDINATED_SETTINGS)
        live.wait_for_coordinators(broker)
        ours = recordings.run(COORDINATED_CASES[name], broker)
    return differences(name, stored()[name], ours)


@pytest.mark.parametrize("name", [*CASES, *COORDINATED_CASES])
def test_tidelog_answers_as_kafka_does(name: str) -> None:
    """The answers to one case are those that were recorded from Apache Kafka."""
    wrong = unexplained(compared(name))
    described = (CASES | COORDINATED_CASES)[name].description
    assert not wrong, described + "\n" + "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    "entry",
    [
        each
        for each in EXPLAINED
        if not all(name.startswith((CLUSTER, GROUPS, TRANSACTIONS)) for name in each.cases)
    ],
    ids=lambda entry: str(entry.title),
)
def test_every_case_and_every_field_of_an_explanation_is_needed(entry: Explained) -> None:
    """What does not differ any more has to go from the list, and from the page."""
    alone = [name for name in entry.cases if not name.startswith((CLUSTER, TRANSACTIONS))]
    covered = [each for name in alone for each in compared(name) if entry.covers(each)]
    assert {each.case for each in covered} == set(alone)
    if not any(name.startswith(CLUSTER) for name in entry.cases):
        assert {field_of(each) for each in covered} == set(entry.fields)


class Lying(InProcessTidelog):
    """Tidelog, except that one byte of every answer is another on its way."""

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        data = bytearray(b"".join(bytes(part) for part in parts if not isinstance(part, FileSlice)))
        data[ERROR_CODE_AT] ^= 1
        super().reply(connection, [data])


def test_a_lie_in_one_byte_is_found() -> None:
    """The whole way from bytes to differences shows a planted lie and nothing else."""
    name = "init-producer-id-with-an-empty-transactional-id-v0"
    lies = differences(name, stored()[name], recordings.run(CASES[name], Lying()))
    assert [lie.path for lie in lies] == ["0/answer/error_code"]


def test_the_documentation_tells_the_explained_differences() -> None:
    """docs/differences-from-kafka.md is what `./dev golden docs` writes."""
    assert FILE.read_text() == documentation()


@pytest.mark.java
@pytest.mark.long
def test_the_recordings_are_what_kafka_answers() -> None:
    """A sample of the cases, recorded anew from a live Apache Kafka, equals the recordings."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    sample = list(CASES.values())[::SAMPLE_EVERY]
    with live.apache_kafka() as kafka:
        now = live.run_all(sample, kafka, label="Apache Kafka")
    assert now == {case.name: stored()[case.name] for case in sample}


@pytest.mark.java
@pytest.mark.long
def test_the_recordings_are_what_a_coordinating_kafka_answers() -> None:
    """All cases that need coordinators, recorded anew, equal the recordings."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    cases = list(COORDINATED_CASES.values())
    with live.coordinating_kafka() as kafka:
        now = live.run_all(cases, kafka, label="Apache Kafka")
    assert now == {case.name: stored()[case.name] for case in cases}
