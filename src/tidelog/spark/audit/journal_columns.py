"""Entries of an acks journal as Arrow columns: JSON lines in, one row for each outcome out.

Arrow's own JSON reader does the work. Only when it stumbles, or a column holds what no entry may
hold, every line is read by itself, so that the one at fault can be named.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.journal_index import JournalSlice

OUTCOMES = ("ok", "refused", "unknown")
TRANSACTION_OUTCOMES = ("committed", "aborted", "unknown")
ROWS_PER_BATCH = 65_536
DIGEST_BYTES = 32

_READ = {
    "number": pa.int64(),
    "key": pa.string(),
    "key_base64": pa.string(),
    "value_sha256": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "outcome": pa.string(),
    "error": pa.string(),
    "reason": pa.string(),
    "timestamp_ms": pa.int64(),
    "sent_us": pa.int64(),
    "answered_us": pa.int64(),
    "told_us": pa.int64(),
    "transaction": pa.string(),
}
"""`told_us` was the name of `answered_us` in journals of earlier releases."""
_NUMBERS = [name for name, kind in _READ.items() if pa.types.is_integer(kind)]
_TEXTS = ("error", "reason", "transaction")
SCHEMA = pa.schema(
    [
        ("run", pa.int32()),
        ("line", pa.int64()),
        ("number", pa.int64()),
        ("key", pa.binary()),
        ("digest", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("outcome", pa.string()),
        ("error", pa.string()),
        ("reason", pa.string()),
        ("timestamp_ms", pa.int64()),
        ("sent_us", pa.int64()),
        ("answered_us", pa.int64()),
        ("transaction", pa.string()),
    ]
)
"""`digest` is the value's SHA-256, null for a null value. A row without a number says how the
transaction that it names ended."""
SPARK_SCHEMA = (
    "run int, line bigint, number bigint, key binary, digest binary, partition int, "
    "offset bigint, outcome string, error string, reason string, timestamp_ms bigint, "
    "sent_us bigint, answered_us bigint, transaction string"
)

_BASE64_KEY = re.compile(rb'"key":\s*\{\s*"base64":\s*("[^"\\]*")\s*\}')
_NIBBLES = np.full(256, 255, dtype=np.uint8)
for _digit, _letters in enumerate(zip(b"0123456789abcdef", b"0123456789ABCDEF", strict=True)):
    _NIBBLES[list(_letters)] = _digit


def read_slice(at: JournalSlice) -> Iterator[pa.RecordBatch]:
    """The rows of one slice. AuditRefused names the line that is no entry."""
    with Path(at.path).open("rb") as file:
        file.seek(at.start_position)
        data = file.read(at.end_position - at.start_position)
    yield from entries(data, path=at.path, run=at.run, first_line=at.first_line).to_batches(
        max_chunksize=ROWS_PER_BATCH
    )


def entries(data: bytes, *, path: str, run: int, first_line: int) -> pa.Table:
    """The same from bytes."""
    read = _read_quickly(data)
    if read is None:
        read = _read_line_by_line(data, path=path, first_line=first_line)
    columns = {name: read.column(name).combine_chunks() for name in _READ}
    rows = read.num_rows
    columns["run"] = pa.array(np.full(rows, run, dtype=np.int32))
    columns["line"] = pa.array(np.arange(first_line, first_line + rows, dtype=np.int64))
    columns["key"] = _keys(columns["key"], columns["key_base64"])
    columns["digest"] = _digests(columns["value_sha256"])
    columns["answered_us"] = pc.coalesce(columns["answered_us"], columns["told_us"])
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _read_quickly(data: bytes) -> pa.Table | None:
    """None if a line is missing, or anything in it is doubtful."""
    if b'"key": {' in data or b'"key":{' in data:
        data = _BASE64_KEY.sub(rb'"key_base64":\1', data)
    try:
        table = pa_json.read_json(
            pa.BufferReader(data),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=8 << 20),
            parse_options=pa_json.ParseOptions(
                explicit_schema=pa.schema(list(_READ.items())), unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    is_whole = table.num_rows == data.count(b"\n") and _are_entries(table)
    return table if is_whole else None


def _are_entries(table: pa.Table) -> bool:
    """Whether every row says what `_entry` asks for."""
    number, outcome = table.column("number"), table.column("outcome")
    is_ending = pc.is_null(number)
    is_known = pc.is_in(outcome, value_set=pa.array(OUTCOMES))
    is_ending_known = pc.is_in(outcome, value_set=pa.array(TRANSACTION_OUTCOMES))
    is_ok = pc.equal(outcome, "ok")
    is_placed = pc.is_valid(table.column("partition"))
    is_entry = pc.and_(is_known, pc.or_(pc.invert(is_ok), is_placed))
    is_verdict = pc.and_(is_ending_known, pc.is_valid(table.column("transaction")))
    is_sound = pc.if_else(is_ending, is_verdict, is_entry)
    if not _holds_everywhere(is_sound):
        return False
    for name in ("number", "partition", "offset"):
        lowest = pc.min(table.column(name)).as_py()
        if lowest is not None and lowest < 0:
            return False
    digests = table.column("value_sha256").combine_chunks()
    return _digests_or_none(digests) is not None and _keys_or_none(table) is not None


def _holds_everywhere(column: pa.ChunkedArray) -> bool:
    return bool(pc.all(column, min_count=0).as_py() is not False and column.null_count == 0)


def _keys_or_none(table: pa.Table) -> pa.Array | None:
    try:
        return _keys(
            table.column("key").combine_chunks(), table.column("key_base64").combine_chunks()
        )
    except (ValueError, binascii.Error):
        return None


def _keys(text: pa.Array, coded: pa.Array) -> pa.Array:
    """Keys as bytes: text as UTF-8, or decoded from base64."""
    keys = text.cast(pa.binary())
    if coded.null_count == len(coded):
        return keys
    decoded = [
        None if each is None else base64.b64decode(each, validate=True)
        for each in coded.to_pylist()
    ]
    return pc.coalesce(pa.array(decoded, pa.binary()), keys)


def _digests(text: pa.Array) -> pa.Array:
    digests = _digests_or_none(text)
    assert digests is not None, "checked when it was read"
    return digests


def _digests_or_none(text: pa.Array) -> pa.Array | None:
    """Hexadecimal to bytes, all at once; None if one is no SHA-256."""
    present = text.drop_null()
    if len(present) == 0:
        return pa.nulls(len(text), pa.binary())
    lengths = pc.binary_length(present)
    if pc.min(lengths).as_py() != 2 * DIGEST_BYTES or pc.max(lengths).as_py() != 2 * DIGEST_BYTES:
        return None
    _, offsets, characters = present.buffers()
    first = int(np.frombuffer(offsets, dtype=np.int32)[present.offset])
    size = len(present) * 2 * DIGEST_BYTES
    nibbles = _NIBBLES[np.frombuffer(characters, dtype=np.uint8)[first : first + size]]
    if nibbles.max() > 15:
        return None
    digests = (nibbles[0::2] << 4) | nibbles[1::2]
    # Null rows take no bytes, so a running count of the others says where each digest begins.
    is_present = np.asarray(pc.is_valid(text))
    starts = np.zeros(len(text) + 1, dtype=np.int32)
    np.cumsum(is_present * DIGEST_BYTES, out=starts[1:])
    validity = None
    if text.null_count:
        validity = pa.py_buffer(np.packbits(is_present, bitorder="little").tobytes())
    buffers = [validity, pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(digests))]
    return pa.Array.from_buffers(pa.binary(), len(text), buffers, null_count=text.null_count)


def _read_line_by_line(data: bytes, *, path: str, first_line: int) -> pa.Table:
    """Slow and exact."""
    rows = []
    for line, text in enumerate(data.removesuffix(b"\n").split(b"\n"), first_line):
        try:
            rows.append(_entry(text))
        except ValueError as error:
            raise AuditRefused(f"{path}:{line}: {error}") from None
    columns = {name: [row.get(name) for row in rows] for name in _READ}
    return pa.table(
        [pa.array(columns[name], kind) for name, kind in _READ.items()], names=list(_READ)
    )


def _entry(text: bytes) -> dict[str, Any]:
    """One line's fields; ValueError says what is wrong with them."""
    try:
        entry = json.loads(text)
    except ValueError as error:
        raise ValueError(f"no JSON ({error})") from None
    if not isinstance(entry, dict):
        raise ValueError("no entry: not an object")
    _check_kinds(entry)
    if entry.get("number") is None:
        if entry.get("transaction") is None:
            raise ValueError("an entry without a number")
        if entry.get("outcome") not in TRANSACTION_OUTCOMES:
            raise ValueError(f"a transaction with the outcome {entry.get('outcome')!r}")
    elif entry.get("outcome") not in OUTCOMES:
        raise ValueError(
            f"the outcome {entry.get('outcome')!r}; it is one of {', '.join(OUTCOMES)}"
        )
    elif entry["outcome"] == "ok" and entry.get("partition") is None:
        raise ValueError("ok, but no partition")
    return {**entry, **_key_of(entry.get("key"))}


def _check_kinds(entry: dict[str, Any]) -> None:
    for name in _NUMBERS:
        value = entry.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise ValueError(f"{name} is {value!r}, not a whole number")
    for name in ("number", "partition", "offset"):
        if entry.get(name) is not None and entry[name] < 0:
            raise ValueError(f"{name} is {entry[name]}, below 0")
    for name in _TEXTS:
        if entry.get(name) is not None and not isinstance(entry[name], str):
            raise ValueError(f"{name} is {entry[name]!r}, not a text")
    digest = entry.get("value_sha256")
    if digest is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", str(digest)):
        raise ValueError(f"value_sha256 is {digest!r}, not 64 hexadecimal digits")


def _key_of(key: object) -> dict[str, str | None]:
    if key is None or isinstance(key, str):
        return {"key": key, "key_base64": None}
    coded = key.get("base64") if isinstance(key, dict) else None
    if not isinstance(coded, str):
        raise ValueError(f"key is {key!r}, neither a text nor base64")
    try:
        base64.b64decode(coded, validate=True)
    except (ValueError, binascii.Error):
        raise ValueError(f"key is no base64: {coded!r}") from None
    return {"key": None, "key_base64": coded}
