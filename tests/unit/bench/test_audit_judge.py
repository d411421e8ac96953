"""The benchmark of the audit accepts only what was planted, each once, each at its place."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.audit import judge
from bench.audit_load import Finding, Load

LOAD = Load(records=25, partitions=2, replicas=1, value_bytes=10, planted=2)
PLANTED: set[Finding] = {
    # The first partition has 13 records, the second 12; every sixth place has something planted.
    *(("lost", 0, 0), ("lost", 0, 6), ("lost", 1, 0), ("lost", 1, 6)),
    *(("reordered", 0, 2), ("reordered", 0, 8), ("reordered", 1, 2), ("reordered", 1, 8)),
    *(("duplicated", 0, 13), ("duplicated", 0, 14), ("duplicated", 1, 12), ("duplicated", 1, 13)),
    *(
        ("refused but present", 0, 15),
        ("refused but present", 0, 16),
        ("refused but present", 1, 14),
        ("refused but present", 1, 15),
    ),
}


def test_what_is_planted_is_known_by_name_and_place() -> None:
    assert LOAD.expected == PLANTED


@pytest.mark.parametrize(
    ("less", "more", "told"),
    [
        ([], [], "each at its place, and nothing else"),
        ([("lost", 0, 6)], [], "NOT found: 1 ('lost', 0, 6)"),
        ([], [("lost", 0, 7)], "INVENTED: 1 ('lost', 0, 7)"),
        ([], [("refused but present", 1, 14)], "INVENTED: 1 ('refused but present', 1, 14)"),
        ([("lost", 0, 6)], [("lost", 0, 7)], "NOT found: 1 ('lost', 0, 6)"),
        ([("lost", 0, 6)], [("reordered", 0, 6)], "INVENTED: 1 ('reordered', 0, 6)"),
    ],
)
def test_found_and_planted_must_be_the_same(
    less: list[Finding], more: list[Finding], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Counter(PLANTED) - Counter(less) + Counter(more)

    assert judge(PLANTED, found) == (1 if less or more else 0)
    assert told in capsys.readouterr().out
