"""The comparison of traces forgives renamed words and nothing else."""

from __future__ import annotations

import pytest

from tests.tidy.compare_traces import differences

BEFORE = "1.5 ms  node-1  Told(offset=3, reason='waits for 2')\n2.5 ms  node-1  Told(offset=4)"


def test_a_word_renamed_everywhere_is_forgiven_and_shown() -> None:
    renamed: dict[str, str] = {}
    after = BEFORE.replace("Told", "Answered").replace("waits for", "is parked for")

    assert list(differences(BEFORE, after, renamed)) == []
    assert renamed["Told"] == "Answered"
    assert renamed["'waits for #'"] == "'is parked for #'"


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("2.5 ms", "2.6 ms"),
        BEFORE.replace("offset=4", "offset=5"),
        BEFORE.replace("for 2", "for 3"),
        BEFORE.replace("Told", "Answered", 1),
        BEFORE.replace("node-1", "node-2", 1),
        BEFORE.splitlines()[0],
        BEFORE.replace("offset=4", "offset=4, more=1"),
    ],
)
def test_anything_else_is_a_difference(after: str) -> None:
    assert list(differences(BEFORE, after, {}))
