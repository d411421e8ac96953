"""What campaigns conclude from acknowledgements: lost, misplaced, or at an unknown offset."""

from __future__ import annotations

import pytest

from tests.process.producers import Call, Ok
from tests.process.verdicts import lost, verdict, writes
from tests.process.workload import Told, judge_records, lost_records, misplaced_records
from tidelog.judge.anomalies import LOST, MISPLACED
from tidelog.judge.history import FinalLog, Seen

A, B, C = b"w 0 .", b"w 1 .", b"w 2 ."
STORED: dict[tuple[int, int], bytes | None] = {(0, 0): A, (0, 1): C, (1, 0): B}


def told(**places: tuple[int, int | None]) -> Told:
    by_value = {"a": A, "b": B, "c": C}
    return Told("w", True, {by_value[name]: place for name, place in places.items()})


@pytest.mark.scenario("X-50")
def test_an_offset_at_which_another_record_stands_is_misplaced() -> None:
    """As it was once seen: stored once, and elsewhere in its partition."""
    lie = told(a=(0, 1), b=(1, 0), c=(0, 1))

    assert misplaced_records(STORED, lie) == [(A, 1, [0])]
    assert lost_records(STORED, lie) == []
    with pytest.raises(AssertionError, match="not where it was acknowledged"):
        judge_records(STORED, [lie])


@pytest.mark.scenario("X-50")
def test_an_unknown_offset_is_no_wrong_one() -> None:
    judge_records(STORED, [told(a=(0, None), b=(1, 0), c=(0, 1))])


@pytest.mark.scenario("X-50")
@pytest.mark.parametrize("offset", [0, 5, None])
def test_a_record_that_is_nowhere_in_its_partition_is_lost_whatever_its_offset(
    offset: int | None,
) -> None:
    lie = told(a=(0, 0), b=(0, offset), c=(0, 1))

    assert (lost_records(STORED, lie), misplaced_records(STORED, lie)) == ([B], [])
    with pytest.raises(AssertionError, match="acknowledged and gone"):
        judge_records(STORED, [lie])


def judged(*offsets: int | None) -> list[str]:
    """The anomalies of a campaign whose producer was told these offsets of r0, r1, r2."""
    calls = []
    for number, offset in enumerate(offsets):
        calls.append(Call(f"r{number}"))
        calls[-1].tell(Ok(offset))
    records = tuple(Seen(offset, f"r{offset}") for offset in range(2))
    final = FinalLog(
        at_us=10**6, partition="orders-0", log_start_offset=0, end_offset=2, records=records
    )
    found = verdict(writes(calls, partition="orders-0"), final)
    assert lost(found) in ([], ["r2"])
    return [anomaly.name for anomaly in found]


@pytest.mark.scenario("X-50")
def test_campaigns_tell_a_wrong_offset_from_an_unknown_one() -> None:
    """-1 and -1001 are what Java and librdkafka say of an offset that they do not know."""
    assert judged(0, 1) == []
    assert judged(0, 0) == [MISPLACED.name]
    assert judged(0, -1) == judged(-1001, 1) == judged(None, None) == []
    assert judged(0, 1, 2) == judged(0, 1, -1) == [LOST.name]
