"""What may go from a compacted log: planted mistakes are condemned, an innocent cleaning is not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tidelog.judge.compaction.compacted_log import (
    CompactedLog,
    CompactionRules,
    KeyedRecord,
    differing_replicas,
)

NOW_MS = 10_000
RULES = CompactionRules(lag_min_ms=500, delete_retention_ms=1_000)


def value(offset: int, key: str, *, payload: str = "", timestamp_ms: int = 0) -> KeyedRecord:
    return KeyedRecord(offset, key, payload or f"{key}.{offset}", False, timestamp_ms, 1)


def tombstone(offset: int, key: str, horizon_ms: int | None, timestamp_ms: int = 0) -> KeyedRecord:
    return KeyedRecord(offset, key, f"{key}.{offset}", True, timestamp_ms, 1, horizon_ms)


def given(*records: KeyedRecord, fence: int = 100, synced: int = 100) -> CompactedLog:
    log = CompactedLog("p", 1, RULES)
    log.append(records, end_offset=100)
    log.advance(start_offset=0, fence=fence, synced_end_offset=synced)
    return log


def verdict(log: CompactedLog, left: Iterable[KeyedRecord], *, end_offset: int = 100) -> list[str]:
    found = log.rewrite(
        {each.offset: each for each in left},
        start_offset=0,
        end_offset=end_offset,
        at_us=1,
        wall_ms=NOW_MS,
    )
    assert all(anomaly.text for anomaly in found)
    return [anomaly.name for anomaly in found]


def test_what_a_later_record_replaces_may_go_and_a_tombstone_after_its_horizon() -> None:
    log = given(value(1, "a"), value(2, "b"), tombstone(3, "b", NOW_MS), value(4, "a"))

    assert verdict(log, [value(4, "a")]) == []


@pytest.mark.parametrize(
    ("before", "left", "name"),
    [
        ([value(1, "a")], [], "compacted away"),
        ([value(1, "a"), value(2, "a")], [value(1, "a")], "compacted away"),
        ([value(1, "a"), value(70, "a")], [value(70, "a")], "compacted too soon"),
        ([value(1, "a", timestamp_ms=9_900), value(2, "a")], [value(2, "a")], "compacted too soon"),
        (
            [value(1, "a"), value(2, "a", timestamp_ms=9_900)],
            [value(2, "a", timestamp_ms=9_900)],
            "compacted too soon",
        ),
        ([tombstone(1, "a", None)], [], "tombstone gone too soon"),
        ([tombstone(1, "a", NOW_MS + 1)], [], "tombstone gone too soon"),
        ([tombstone(1, "a", NOW_MS, timestamp_ms=9_500)], [], "tombstone gone too soon"),
        ([value(1, "a")], [value(1, "a", payload="other")], "changed by compaction"),
        ([value(1, "a")], [value(1, "a"), value(5, "a")], "came back"),
    ],
)
def test_a_mistake_is_condemned(
    before: list[KeyedRecord], left: list[KeyedRecord], name: str
) -> None:
    assert verdict(given(*before, fence=50), left) == [name]


def test_a_crash_may_take_what_was_not_synced_and_nothing_before_it() -> None:
    records = [value(1, "a"), value(60, "b")]

    assert verdict(given(*records, synced=50), [value(1, "a")], end_offset=50) == []
    assert verdict(given(*records, synced=50), [], end_offset=0) == ["compacted away"]


def test_what_was_truncated_is_no_loss() -> None:
    log = given(value(1, "a"), value(60, "b"))
    log.cut(50)

    assert verdict(log, [value(1, "a"), value(55, "c")], end_offset=56) == []


def test_replicas_at_rest_have_the_same_newest_values() -> None:
    one = given(value(1, "a"), tombstone(3, "b", None))
    same = given(value(0, "a"), value(1, "a"))
    other = given(value(1, "a"), value(2, "b"))

    assert differing_replicas([one, same], at_us=1) == []
    (found,) = differing_replicas([one, other], at_us=1)
    assert (found.name, found.evidence["key"]) == ("compacted differently", "b")
