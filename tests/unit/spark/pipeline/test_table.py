"""A table has every batch once and whole, whenever its writer dies, and takes no foreign ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tidelog.spark.pipeline.table.ledger import (
    BatchDecision,
    BatchOffer,
    LedgerRow,
    TableRefused,
    batch_of,
    decide,
    directory_of,
    row_of,
)
from tidelog.spark.pipeline.table.stores import LocalStore
from tidelog.spark.pipeline.table.table import Table, TableBatch

OFFER = BatchOffer(query_id="q", batch_id=0, fingerprint="f0")


class Died(BaseException):
    """As kill -9: nothing that catches exceptions gets a say."""


class MortalStore(LocalStore):
    """A store whose process dies before or after its n-th operation."""

    def __init__(self, dies_at: int, *, after: bool) -> None:
        self._left = dies_at
        self._after = after

    def __getattribute__(self, name: str) -> object:
        found = object.__getattribute__(self, name)
        if name.startswith("_") or not callable(found):
            return found

        def mortal(*arguments: str) -> object:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Died
            result = found(*arguments)
            if self._left == 0:
                raise Died
            return result

        return mortal


def count_lines(files: Sequence[str]) -> int:
    return sum(len(Path(path).read_text().splitlines()) for path in files)


def writing(rows: str) -> Callable[[str], None]:
    """What Spark does: a directory with files, and some that readers skip."""

    def write(path: str) -> None:
        Path(path).mkdir(parents=True)
        Path(path, "part-0.parquet").write_text(rows)
        Path(path, ".part-0.parquet.crc").write_text("crc")

    return write


def publish(
    path: Path, batch_id: int, rows: str, *, store: LocalStore | None = None, run_id: str = "run"
) -> TableBatch:
    table = Table(str(path), store=store or LocalStore(), run_id=run_id, count=count_lines)
    offer = BatchOffer(query_id="q", batch_id=batch_id, fingerprint=f"f{batch_id}")
    return table.publish(offer, write=writing(rows), before_commit=lambda: None)


def seen(path: Path) -> str:
    """All rows, as a reader finds them that skips names with `_` and `.`."""

    def batch_id(file: Path) -> int:
        found = batch_of(file.parent.name)
        assert found is not None, file
        return found

    files = sorted(path.glob("batch_id=*/*.parquet"), key=batch_id)
    return "".join(file.read_text() for file in files)


def test_a_batch_appears_with_its_row_of_the_ledger(tmp_path: Path) -> None:
    published = publish(tmp_path, 0, "a\nb\n")
    assert (published.is_new, published.row.rows, published.row.files) == (True, 2, 1)
    written = row_of((tmp_path / "batch_id=0" / "_tidelog.json").read_text(), "here")
    assert written == published.row
    assert seen(tmp_path) == "a\nb\n"


def test_the_same_batch_again_is_skipped(tmp_path: Path) -> None:
    publish(tmp_path, 0, "a\n")
    again = publish(tmp_path, 0, "other rows, computed again\n")
    assert again.is_new is False
    assert seen(tmp_path) == "a\n"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", range(1, 11))
def test_whoever_dies_at_any_moment_leaves_all_of_a_batch_or_nothing(
    tmp_path: Path, dies_at: int, after: bool
) -> None:
    publish(tmp_path, 0, "a\n")
    try:
        publish(tmp_path, 1, "b\nc\n", store=MortalStore(dies_at, after=after), run_id="first")
    except Died:
        assert seen(tmp_path) in ("a\n", "a\nb\nc\n")

    table = Table(str(tmp_path), store=LocalStore(), run_id="second", count=count_lines)
    table.open()
    assert not (tmp_path / "_staging").exists()
    publish(tmp_path, 1, "b\nc\n", run_id="second")
    publish(tmp_path, 2, "d\n", run_id="second")
    assert seen(tmp_path) == "a\nb\nc\nd\n"


def test_the_deaths_reach_from_the_first_operation_to_the_last(tmp_path: Path) -> None:
    """The table above must not end before the commit does."""
    publish(tmp_path, 0, "a\n")
    with pytest.raises(Died):
        publish(tmp_path, 1, "b\n", store=MortalStore(1, after=False))
    publish(tmp_path, 1, "b\n", store=MortalStore(11, after=False))


def test_an_empty_batch_is_in_the_ledger_alone(tmp_path: Path) -> None:
    publish(tmp_path, 0, "")
    assert (tmp_path / "batch_id=0" / "part-0.parquet").exists(), "the first one has the columns"
    published = publish(tmp_path, 1, "")
    assert (published.row.rows, published.row.files) == (0, 0)
    assert not (tmp_path / "batch_id=1" / "part-0.parquet").exists()
    publish(tmp_path, 2, "x\n")
    assert seen(tmp_path) == "x\n"


def test_somebody_else_who_was_there_first_is_not_overwritten(tmp_path: Path) -> None:
    publish(tmp_path, 0, "a\n")
    table = Table(str(tmp_path), store=LocalStore(), run_id="slow", count=count_lines)

    def overtaken() -> None:
        publish(tmp_path, 1, "theirs\n", run_id="quick")

    offer = BatchOffer(query_id="q", batch_id=1, fingerprint="f1")
    with pytest.raises(TableRefused, match="another run writes to this table"):
        table.publish(offer, write=writing("ours\n"), before_commit=overtaken)
    assert seen(tmp_path) == "a\ntheirs\n"


def row(batch_id: int, *, query_id: str = "q", fingerprint: str | None = None) -> LedgerRow:
    offer = BatchOffer(
        query_id=query_id, batch_id=batch_id, fingerprint=fingerprint or f"f{batch_id}"
    )
    return LedgerRow(offer=offer, run_id="r", rows=1, files=1)


@pytest.mark.parametrize(
    ("batch_id", "published", "latest", "expected"),
    [
        (0, None, None, BatchDecision.PUBLISH),
        (5, None, 4, BatchDecision.PUBLISH),
        (4, row(4), 4, BatchDecision.ALREADY_PUBLISHED),
        (3, row(3), 4, BatchDecision.ALREADY_PUBLISHED),
        (4, row(4, query_id="foreign"), 4, "batch 4 of another query"),
        (4, row(4, fingerprint="rolled back"), 4, "batch 4 of other source offsets"),
        (6, None, 4, "has batches up to 4, but the checkpoint offers batch 6"),
        (3, None, None, "has no batch, but the checkpoint offers batch 3"),
        (2, None, 4, "has batches up to 4, but the checkpoint offers batch 2"),
    ],
)
def test_only_the_next_batch_or_the_same_again_is_taken(
    batch_id: int, published: LedgerRow | None, latest: int | None, expected: BatchDecision | str
) -> None:
    offer = BatchOffer(query_id="q", batch_id=batch_id, fingerprint=f"f{batch_id}")
    if isinstance(expected, BatchDecision):
        assert decide(offer, published=published, latest_batch_id=latest, table="t") is expected
        return
    with pytest.raises(TableRefused, match=expected):
        decide(offer, published=published, latest_batch_id=latest, table="t")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tidelog_table": 2}', '{"tidelog_table": 1}'])
def test_a_foreign_ledger_is_refused(text: str) -> None:
    with pytest.raises(TableRefused, match="here"):
        row_of(text, "here")


def test_directories_are_named_by_their_batch() -> None:
    assert directory_of(17) == "batch_id=17"
    assert [batch_of(name) for name in ("batch_id=17", "_staging", "batch_id=x")] == [
        17,
        None,
        None,
    ]
