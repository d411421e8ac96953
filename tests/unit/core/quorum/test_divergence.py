"""Where two logs part: the leader's verdict on a fetch, and the follower's cut."""

from __future__ import annotations

import pytest

from tests.unit.core.quorum.given import MemoryLog
from tidelog.core.quorum.divergence import Diverged, NeedsSnapshot, cut_point, judge_fetch
from tidelog.core.quorum.values import LogPosition

LEADER = MemoryLog((1, "a"), (1, "b"), (3, "c"), (5, "d"), (5, "e"))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (LogPosition(0, 0), None),
        (LogPosition(1, 1), None),
        (LogPosition(1, 2), None),
        (LogPosition(5, 5), None),
        (
            LogPosition(1, 3),
            Diverged(LogPosition(1, 2)),
        ),  # it has more of epoch 1 than was committed
        (LogPosition(2, 4), Diverged(LogPosition(1, 2))),  # an epoch that the leader does not know
        (LogPosition(4, 4), Diverged(LogPosition(3, 3))),
        (LogPosition(5, 6), Diverged(LogPosition(5, 5))),
        (LogPosition(6, 2), Diverged(LogPosition(5, 5))),  # of a leader that nobody followed
    ],
)
def test_a_fetch_is_judged_by_its_newest_epoch(
    asked: LogPosition, expected: Diverged | None
) -> None:
    found = judge_fetch(asked, LEADER, oldest_snapshot=None, newest_snapshot=None)

    assert found == expected


def test_whoever_is_before_the_log_gets_the_newest_snapshot() -> None:
    log = MemoryLog(*LEADER.entries)
    log.log_start_offset = 2
    snapshots = {"oldest_snapshot": LogPosition(1, 2), "newest_snapshot": LogPosition(3, 3)}

    def judged(asked: LogPosition) -> object:
        return judge_fetch(asked, log, **snapshots)

    wanted = NeedsSnapshot(LogPosition(3, 3))
    assert judged(LogPosition(0, 0)) == wanted
    assert judged(LogPosition(1, 1)) == wanted
    assert judged(LogPosition(1, 2)) is None
    assert judged(LogPosition(0, 2)) == wanted
    assert judged(LogPosition(3, 3)) is None


@pytest.mark.parametrize(
    ("mine", "diverged", "expected"),
    [
        (((1, "a"), (1, "b"), (1, "x")), LogPosition(1, 2), 2),
        (((1, "a"), (2, "x"), (2, "y")), LogPosition(1, 2), 1),
        (((2, "x"), (2, "y")), LogPosition(1, 2), 0),
        (((1, "a"), (1, "b")), LogPosition(3, 3), 2),
        (((1, "a"), (1, "b"), (4, "x")), LogPosition(3, 3), 2),
    ],
)
def test_the_cut_is_where_both_logs_still_agree_on_the_epoch(
    mine: tuple[tuple[int, str], ...], diverged: LogPosition, expected: int
) -> None:
    assert cut_point(diverged, MemoryLog(*mine)) == expected


@pytest.mark.parametrize(
    "mine",
    [
        ((1, "a"), (1, "b"), (1, "x"), (1, "y")),
        ((1, "a"), (2, "x"), (4, "y"), (4, "z")),
        ((1, "a"), (1, "b"), (3, "c"), (4, "x"), (6, "y")),
        ((2, "x"),),
        ((1, "a"), (1, "b"), (3, "c"), (5, "d"), (5, "e"), (5, "x")),
    ],
)
def test_asking_and_cutting_in_turn_ends_with_a_prefix_of_the_leaders_log(
    mine: tuple[tuple[int, str], ...],
) -> None:
    log = MemoryLog(*mine)
    for _ in range(len(mine) + 1):
        verdict = judge_fetch(log.position, LEADER, oldest_snapshot=None, newest_snapshot=None)
        if verdict is None:
            break
        assert isinstance(verdict, Diverged)
        before = len(log.entries)
        log.cut(cut_point(verdict.at, log))
        assert len(log.entries) < before
    assert log.entries == LEADER.entries[: len(log.entries)]
    common = sum(a == b for a, b in zip(mine, LEADER.entries, strict=False))
    assert len(log.entries) == common
