"""Every recorded conversation, held again with Tidelog: no difference without an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache

import pytest

from tests.golden import live, recordings
from tests.golden.cases import CASES
from tests.golden.cases.registry import CLUSTER
from tests.golden.compare import Difference, differences
from tests.golden.documentation import FILE, documentation
from tests.golden.explained import EXPLAINED, Explained, unexplained
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
    ours = recordings.run(CASES[name], InProcessTidelog())
    return differences(name, stored()[name], ours)


@pytest.mark.parametrize("name", CASES)
def test_tidelog_answers_as_kafka_does(name: str) -> None:
    """The answers to one case are those that were recorded from Apache Kafka."""
    wrong = unexplained(compared(name))
    assert not wrong, CASES[name].description + "\n" + "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    ("entry", "pattern"),
    [
        pytest.param(entry, pattern, id=f"{entry.title}: {pattern}")
        for entry in EXPLAINED
        for pattern in entry.cases
        if not pattern.startswith(CLUSTER)
    ],
)
def test_every_explanation_still_explains_something(entry: Explained, pattern: str) -> None:
    """An explanation that covers no difference of its cases any more has to go."""
    names = [name for name in CASES if fnmatchcase(name, pattern)]
    assert any(entry.covers(difference) for name in names for difference in compared(name))


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
