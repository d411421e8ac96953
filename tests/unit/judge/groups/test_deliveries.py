"""What a group was given twice, and what it was never given."""

from __future__ import annotations

from tidelog.judge.groups.deliveries import delivered_twice, skipped
from tidelog.judge.groups.group_history import GroupOperation, OffsetCommitted, RecordDelivered
from tidelog.judge.history import CallOutcome, FinalLog, Seen

P = "orders-0"


def delivered(
    member: str, *offsets: int, group: str = "g", payload: str = "r"
) -> list[RecordDelivered]:
    return [
        RecordDelivered(
            at_us=offset,
            group=group,
            member=member,
            partition=P,
            offset=offset,
            payload=f"{payload}{offset}",
        )
        for offset in offsets
    ]


def committed(offset: int, outcome: CallOutcome = CallOutcome.OK) -> OffsetCommitted:
    return OffsetCommitted(
        at_us=90, invoked_us=89, group="g", partition=P, token="t", offset=offset, outcome=outcome
    )


def log(end_offset: int) -> FinalLog:
    records = tuple(Seen(offset, f"r{offset}") for offset in range(end_offset))
    return FinalLog(
        at_us=99, partition=P, log_start_offset=0, end_offset=end_offset, records=records
    )


def check(*history: GroupOperation) -> tuple[list[object], list[object]]:
    """The offsets that came twice, and those that were skipped."""
    twice, never = delivered_twice(history), skipped(history)
    return [it.evidence["offset"] for it in twice], [it.evidence["offset"] for it in never]


def test_once_each_is_neither() -> None:
    assert check(*delivered("m", 0, 1), *delivered("n", 2), committed(3), log(5)) == ([], [])


def test_what_two_members_or_one_of_them_got_again_came_twice() -> None:
    history: list[GroupOperation] = [
        *delivered("m", 0, 1, 2),
        *delivered("n", 2),
        *delivered("m", 1),
        log(3),
    ]
    assert check(*history) == ([2, 1], [])


def test_another_group_reads_for_itself() -> None:
    history: list[GroupOperation] = [
        *delivered("m", 0, 1),
        *delivered("m", 0, 1, group="other"),
        log(2),
    ]
    assert check(*history) == ([], [])


def test_what_lies_before_the_position_and_never_came_was_skipped() -> None:
    assert check(*delivered("m", 0, 3), log(6)) == ([], [1, 2])
    assert check(*delivered("m", 0), committed(3), log(6)) == ([], [1, 2])


def test_a_commit_that_was_refused_moves_no_position() -> None:
    assert check(*delivered("m", 0), committed(3, CallOutcome.REFUSED), log(6)) == ([], [])


def test_another_record_at_the_same_offset_is_not_the_same() -> None:
    """An unclean election replaced what was read: that is not a second delivery, nor a first."""
    history: list[GroupOperation] = [
        *delivered("m", 0, 1, payload="old"),
        *delivered("m", 1),
        log(2),
    ]
    assert check(*history) == ([], [0])
