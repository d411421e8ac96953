"""Entries become columns; a line that is no entry is named, whatever is wrong with it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.spark.audit.journals import begin, end, entry, write
from tidelog.client.shells.acks_journal import text_of
from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.journal_columns import SCHEMA, entries, read_slice
from tidelog.spark.audit.journal_index import index_journals


def rows_of(*lines: str) -> list[dict[str, object]]:
    data = "".join(f"{line}\n" for line in lines).encode()
    table = entries(data, path="acks.jsonl", run=3, first_line=10)
    assert table.schema == SCHEMA
    found: list[dict[str, object]] = table.to_pylist()
    return found


def test_an_entry_has_all_that_it_says() -> None:
    first, second = rows_of(
        entry(7), entry(8, outcome="unknown", offset=None, error="TIMED_OUT", reason="too late")
    )
    assert first == {
        "run": 3,
        "line": 10,
        "number": 7,
        "key": b"k7",
        "digest": hashlib.sha256(b"v7").digest(),
        "partition": 0,
        "offset": 7,
        "outcome": "ok",
        "error": None,
        "reason": None,
        "timestamp_ms": 1_767_225_600_007,
        "sent_us": 5_000_007,
        "answered_us": 5_000_107,
        "transaction": None,
    }
    assert (second["line"], second["offset"], second["error"]) == (11, None, "TIMED_OUT")


@pytest.mark.parametrize("spoiled", [False, True], ids=["all at once", "line by line"])
def test_journals_of_earlier_releases_are_read(spoiled: bool) -> None:
    """What is `answered_us` now was `told_us` then; a file may have runs of both."""
    former = entry(0).replace("answered_us", "told_us")
    odd = entry(1).replace('"number": 1', '"number": 1, "number": 1') if spoiled else entry(1)

    assert [row["answered_us"] for row in rows_of(former, odd)] == [5_000_100, 5_000_101]


@pytest.mark.parametrize(
    "key", [None, b"", b"plain", "Zürich ☂".encode(), b"\xff\x00", b'{"base64": "eA=="}', b'a"\\\n']
)
def test_keys_come_back_as_the_bytes_they_were(key: bytes | None) -> None:
    lines = [entry(0, key=text_of(key)), entry(1), entry(2, key=text_of(key))]
    assert [row["key"] for row in rows_of(*lines)] == [key, b"k1", key]


def test_values_that_are_null_have_no_digest() -> None:
    digests = [row["digest"] for row in rows_of(entry(0, value_sha256=None), entry(1), entry(2))]
    assert digests == [None, *(hashlib.sha256(each).digest() for each in (b"v1", b"v2"))]
    assert rows_of(entry(0, value_sha256=None))[0]["digest"] is None


def test_fields_of_later_versions_are_passed_over_and_others_may_be_missing() -> None:
    (row,) = rows_of(json.dumps({"number": 1, "outcome": "refused", "since": {"a": [1]}}))
    assert (row["number"], row["outcome"], row["partition"]) == (1, "refused", None)


def test_the_end_of_a_transaction_is_a_row_without_a_number() -> None:
    first, ending = rows_of(
        entry(0, transaction="t1"), '{"transaction": "t1", "outcome": "aborted", "answered_us": 5}'
    )
    assert first["transaction"] == "t1"
    assert (ending["number"], ending["transaction"], ending["outcome"]) == (None, "t1", "aborted")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nonsense", "no JSON (Expecting value"),
        ("[1]", "no entry: not an object"),
        ("", "no JSON"),
        ("{}", "an entry without a number"),
        ('{"transaction": "t", "outcome": "ok"}', "a transaction with the outcome 'ok'"),
        (entry(1, outcome="fine"), "the outcome 'fine'; it is one of ok, refused, unknown"),
        (entry(1, partition=None), "ok, but no partition"),
        (entry(1, offset="7"), "offset is '7', not a whole number"),
        (entry(1, offset=-1), "offset is -1, below 0"),
        (entry(1, answered_us=1.5), "answered_us is 1.5, not a whole number"),
        (entry(1, value_sha256="abc"), "value_sha256 is 'abc', not 64 hexadecimal digits"),
        (entry(1, value_sha256="g" * 64), "value_sha256 is 'ggg"),
        (entry(1, key={"hex": "00"}), "key is {'hex': '00'}, neither a text nor base64"),
        (entry(1, key={"base64": "!"}), "key is no base64: '!'"),
        (entry(1, key=5), "key is 5, neither a text nor base64"),
        (entry(1, error=5), "error is 5, not a text"),
    ],
)
def test_a_line_that_is_no_entry_is_named(line: str, complaint: str) -> None:
    with pytest.raises(AuditRefused) as refused:
        rows_of(entry(0), line, entry(2))
    assert str(refused.value).startswith(f"acks.jsonl:11: {complaint}")


def test_the_slices_of_a_file_together_are_the_file(tmp_path: Path) -> None:
    lines = [entry(each) for each in range(100)]
    path = write(tmp_path / "j", begin(), *lines, end(100))
    (run,) = index_journals([path], slice_bytes=1_000)
    assert len(run.slices) > 10
    table = pa.Table.from_batches([batch for each in run.slices for batch in read_slice(each)])
    assert table.column("number").to_pylist() == list(range(100))
    assert table.column("line").to_pylist() == list(range(2, 102))
