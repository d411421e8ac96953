"""Leader epochs: where each leader's records begin and end."""

from __future__ import annotations

import pytest

from tests.unit.core.storage.given import Rig, append_values
from tidelog.core.formats.text_checkpoints import CorruptCheckpoint
from tidelog.core.storage.epochs import LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs()
    for leader_epoch, start_offset in entries:
        assert made.assign(leader_epoch, start_offset)
    made.check()
    return made


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (0, (0, 4)),
        (1, (1, 4)),
        (2, (2, 10)),
        (3, (2, 10)),
        (6, (2, 10)),
        (7, (7, 12)),
        (8, (8, 20)),
        (9, None),
        (-1, None),
    ],
)
def test_the_end_of_a_leader_epoch_is_the_start_of_the_next(
    asked: int, answer: tuple[int, int] | None
) -> None:
    """Before the first known one nothing is left: its records ended where those begin."""
    assert epochs((2, 4), (7, 10), (8, 12)).end_of(asked, log_end_offset=20) == answer


def test_without_entries_nothing_is_known() -> None:
    assert LeaderEpochs().end_of(0, log_end_offset=5) is None
    assert LeaderEpochs().latest is None
    assert LeaderEpochs().of_offset(3) is None


def test_assigning_what_is_known_is_no_news() -> None:
    made = epochs((1, 5))

    assert not made.assign(1, 5)
    assert not made.assign(1, 9)
    assert made.entries == [(1, 5)]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ((5, 12), [(1, 0), (2, 5), (4, 9), (5, 12)]),
        ((5, 9), [(1, 0), (2, 5), (5, 9)]),
        ((5, 5), [(1, 0), (5, 5)]),
        ((2, 3), [(1, 0), (2, 3)]),
        ((4, 0), [(4, 0)]),
    ],
)
def test_entries_that_contradict_a_new_one_go(
    new: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    made = epochs((1, 0), (2, 5), (4, 9))

    assert made.assign(*new)

    made.check()
    assert made.entries == expected


@pytest.mark.parametrize(("end_offset", "left"), [(0, 0), (5, 1), (6, 2), (9, 2), (10, 3), (99, 3)])
def test_cutting_the_end_drops_epochs_without_records(end_offset: int, left: int) -> None:
    made = epochs((1, 0), (2, 5), (4, 9))

    assert made.cut_end(end_offset) == (left < 3)
    assert len(made.entries) == left


@pytest.mark.parametrize(
    ("start_offset", "expected"),
    [
        (0, [(1, 0), (2, 5), (4, 9)]),
        (3, [(1, 3), (2, 5), (4, 9)]),
        (5, [(2, 5), (4, 9)]),
        (30, [(4, 30)]),
    ],
)
def test_cutting_the_start_keeps_the_epoch_of_the_first_record(
    start_offset: int, expected: list[tuple[int, int]]
) -> None:
    made = epochs((1, 0), (2, 5), (4, 9))

    made.cut_start(start_offset)

    assert made.entries == expected


def test_the_epoch_of_an_offset_is_the_latest_that_began_before_it() -> None:
    made = epochs((1, 2), (4, 9))

    assert [made.of_offset(offset) for offset in (1, 2, 8, 9, 50)] == [None, 1, 1, 4, 4]


def test_the_checkpoint_reads_back_what_it_wrote() -> None:
    made = epochs((1, 0), (2, 5), (4, 9))

    assert made.encode() == b"0\n3\n1 0\n2 5\n4 9\n"
    assert LeaderEpochs.decode(made.encode()).entries == made.entries


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0",
        b"0\n",
        b"1\n0\n",
        b"0\n1\n1 0",
        b"0\n2\n1 0\n",
        b"0\n1\n1 0\n2 5\n",
        b"0\n1\n1 x\n",
        b"0\n1\n1 0 3\n",
        b"0\n1\n-1 0\n",
        b"0\n2\n2 0\n1 5\n",
        b"0\n2\n1 5\n2 5\n",
        b"0\n1\n\xff 0\n",
    ],
)
def test_a_checkpoint_that_was_not_written_to_its_end_is_recognised(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        LeaderEpochs.decode(content)


def test_every_cut_of_a_checkpoint_is_recognised() -> None:
    whole = epochs((1, 0), (20, 500), (40, 9000)).encode()

    for size in range(len(whole)):
        with pytest.raises(CorruptCheckpoint):
            LeaderEpochs.decode(whole[:size])


def test_the_log_answers_where_a_leader_epoch_ends() -> None:
    log = Rig().open()
    append_values(log, "a", "b", leader_epoch=1)
    append_values(log, "c", leader_epoch=3)

    assert log.leader_epoch_end(1) == (1, 2)
    assert log.leader_epoch_end(2) == (1, 2)
    assert log.leader_epoch_end(3) == (3, 3)
    assert log.leader_epoch_end(4) is None
    log.begin_leader_epoch(4)
    assert log.leader_epoch_end(3) == (3, 3)
    assert log.leader_epoch_end(4) == (4, 3)
