"""The fault book: noted by one process, read by another, and time takes out what is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.cluster.directory import Directory
from tidelog.cluster.errors import ClusterError
from tidelog.cluster.fault_book import FaultBook, FaultNote


def note(fault_id: str, what: str = "cut", **fields: object) -> FaultNote:
    return FaultNote(id=fault_id, what=what, text=f"{what}!", **fields)  # type: ignore[arg-type]


def test_what_one_notes_another_reads(tmp_path: Path) -> None:
    with FaultBook(Directory(tmp_path)).open() as book:
        first = note(book.new_id(), rules=({"id": "f1.1", "what": "cut"},))
        book.notes.append(first)
    with FaultBook(Directory(tmp_path)).open() as book:
        second = note(book.new_id(), "pause", nodes=(2, 3))
        book.notes.append(second)
    again = FaultBook(Directory(tmp_path))
    assert again.notes() == [first, second]
    assert [each.id for each in again.notes()] == ["f1", "f2"]


def test_ids_are_not_given_twice_even_when_the_book_is_empty_again(tmp_path: Path) -> None:
    book = FaultBook(Directory(tmp_path))
    with book.open() as pages:
        pages.notes.append(note(pages.new_id()))
    with book.open() as pages:
        pages.remove(lambda each: True)
    with book.open() as pages:
        assert pages.new_id() == "f2"


def test_a_fault_whose_time_is_over_is_no_longer_there(tmp_path: Path) -> None:
    book = FaultBook(Directory(tmp_path))
    with book.open() as pages:
        pages.notes += [note("f1", until_ms=1), note("f2", until_ms=2**60), note("f3")]
    assert [each.id for each in book.notes()] == ["f2", "f3"]


def test_an_exception_leaves_the_book_as_it_was(tmp_path: Path) -> None:
    book = FaultBook(Directory(tmp_path))

    def change_and_fail() -> None:
        with book.open() as pages:
            pages.notes.append(note("f1"))
            raise ClusterError("no")

    with pytest.raises(ClusterError, match="no"):
        change_and_fail()
    assert book.notes() == []


def test_nodes_that_are_back_leave_their_faults_and_the_last_one_closes_it(tmp_path: Path) -> None:
    with FaultBook(Directory(tmp_path)).open() as pages:
        pages.notes += [note("f1", "kill", nodes=(1, 2)), note("f2", "pause", nodes=(1,))]
        pages.take_nodes_off((1,), "kill", "stop")
        assert [(each.id, each.nodes) for each in pages.notes] == [("f1", (2,)), ("f2", (1,))]
        pages.take_nodes_off((1, 2), "kill", "pause")
        assert pages.notes == []


def test_a_damaged_book_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "faults.json").write_text("{")
    with pytest.raises(ClusterError, match=r"faults\.json cannot be read"):
        FaultBook(Directory(tmp_path)).notes()
