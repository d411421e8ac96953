"""A journal's runs are found, cut ones are known as such, and what is no journal is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.spark.audit.journals import begin, end, entry, write
from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.journal_index import JournalRun, index_journals


def lines_of(run: JournalRun) -> list[str]:
    """What the slices of a run hold, and that they lie where they say."""
    found = []
    for each in run.slices:
        data = Path(each.path).read_bytes()
        before = data[: each.start_position]
        assert before.count(b"\n") + 1 == each.first_line
        found += data[each.start_position : each.end_position].decode().splitlines()
    assert len(found) == run.entries
    return found


def test_a_whole_run(tmp_path: Path) -> None:
    path = write(tmp_path / "j", begin(acks="1", idempotence=False), entry(0), entry(1), end(2))
    (run,) = index_journals([path])
    assert (run.name, run.topic, run.acks, run.line) == ("r1", "orders", "1", 1)
    assert not run.is_idempotent and not run.is_transactional
    assert (run.began_ms, run.began_us) == (1_767_225_600_000, 5_000_000)
    assert run.cut is None and not run.is_mixed
    assert lines_of(run) == [entry(0), entry(1)]


@pytest.mark.parametrize("slice_bytes", [1, 100, 700, 1 << 20])
def test_several_runs_in_several_files_however_they_are_cut(
    tmp_path: Path, slice_bytes: int
) -> None:
    first = write(
        tmp_path / "a", begin("r1"), entry(0), entry(1), end(2), begin("r2"), entry(0), end(1)
    )
    second = write(tmp_path / "b", begin("r3", "payments"), *(entry(each) for each in range(9)))
    runs = index_journals([first, second], slice_bytes=slice_bytes)
    assert [(run.index, run.name, run.topic, run.line) for run in runs] == [
        (0, "r1", "orders", 1),
        (1, "r2", "orders", 5),
        (2, "r3", "payments", 1),
    ]
    assert [lines_of(run) for run in runs] == [
        [entry(0), entry(1)],
        [entry(0)],
        [entry(each) for each in range(9)],
    ]
    assert [run.cut for run in runs] == [None, None, "it has no last line"]


def test_a_run_that_was_killed_while_writing(tmp_path: Path) -> None:
    path = write(tmp_path / "j", begin(), entry(0), entry(1)[:30], is_torn=True)
    (run,) = index_journals([path])
    assert run.cut == "line 3 is cut" and lines_of(run) == [entry(0)]


def test_a_run_that_goes_on_behind_a_torn_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "j", begin("r1"), entry(0), entry(1)[:30] + begin("r2"), entry(0), end(1)
    )
    killed, whole = index_journals([path])
    assert killed.cut == "line 3 is cut" and lines_of(killed) == [entry(0)]
    assert (whole.name, whole.line, whole.cut) == ("r2", 3, None)
    assert lines_of(whole) == [entry(0)]


@pytest.mark.parametrize("torn", ['{"end": {"ok": 1', '{"journal": "tidelog-acks", "vers'])
def test_a_torn_first_or_last_line(tmp_path: Path, torn: str) -> None:
    path = write(tmp_path / "j", begin(), entry(0), torn, is_torn=True)
    (run,) = index_journals([path])
    assert run.is_cut and lines_of(run) == [entry(0)]


def test_a_first_line_that_never_got_written_is_no_run(tmp_path: Path) -> None:
    path = write(tmp_path / "j", begin("r1"), end(0), begin("r2")[:25], is_torn=True)
    (run,) = index_journals([path])
    assert (run.name, run.cut) == ("r1", None)


def test_counts_that_do_not_fit(tmp_path: Path) -> None:
    fewer = write(tmp_path / "a", begin(), entry(0), end(2))
    more = write(tmp_path / "b", begin("r1"), begin("r2"), entry(0), entry(0), end(1))
    short, empty, mixed = index_journals([fewer, more])
    assert short.cut == "it has 1 lines for 2 outcomes" and not short.is_mixed
    assert empty.is_cut and empty.entries == 0
    assert mixed.is_cut and mixed.is_mixed


def test_a_key_that_looks_like_a_line_is_only_a_key(tmp_path: Path) -> None:
    strange = entry(0, key='\n{"end": {"journal"')
    path = write(tmp_path / "j", begin(), strange, end(1))
    (run,) = index_journals([path])
    assert lines_of(run) == [strange]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["hello"], ":1: no acks journal: it begins with 'hello', not with '{\"journal\"'"),
        ([entry(0)], ':1: no acks journal: it begins with \'{"number": 0'),
        ([begin(journal="other")], ":1: a journal of 'other', not 'tidelog-acks'"),
        ([begin(version=2)], ":1: version 2; this release knows 1"),
        (['{"journal": "tidelog-acks", "version": 1}'], ":1: a first line of a run without 'acks'"),
        (['{"journal": nonsense}'], ":1: no JSON"),
        ([begin(), entry(0), end(1), entry(1)], ":4: an entry behind the end of its run"),
        ([begin("r1"), begin("r2"), end(0), end(0)], ":4: a run ends that has not begun: did two"),
        ([begin(), '{"end": {"ok": 1}}'], ":2: a last line of a run without its counts"),
    ],
)
def test_what_is_no_journal_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], complaint: str
) -> None:
    path = write(tmp_path / "acks.jsonl", *lines)
    with pytest.raises(AuditRefused) as refused:
        index_journals([path])
    assert str(refused.value).startswith(f"{path}{complaint}")


def test_files_that_are_empty_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(AuditRefused, match="empty is empty: not even"):
        index_journals([tmp_path / "empty"])
    with pytest.raises(AuditRefused, match="nothing cannot be read: No such file"):
        index_journals([tmp_path / "nothing"])
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 10)
    with pytest.raises(AuditRefused, match="binary:1: no acks journal"):
        index_journals([tmp_path / "binary"])
