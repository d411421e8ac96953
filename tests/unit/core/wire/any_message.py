"""Hypothesis strategies for messages: any value that a version of a schema can hold."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.schema import Array, Field, Kind, Nested, Scalar, Sized, Struct

INTEGERS = {
    "b": st.integers(-(2**7), 2**7 - 1),
    "h": st.integers(-(2**15), 2**15 - 1),
    "H": st.integers(0, 2**16 - 1),
    "i": st.integers(-(2**31), 2**31 - 1),
    "I": st.integers(0, 2**32 - 1),
    "q": st.integers(-(2**63), 2**63 - 1),
}
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    **INTEGERS,
    "?": st.booleans(),
    "d": st.floats(allow_nan=False),
    "16s": st.binary(min_size=16, max_size=16),
}
TEXTS = st.text(max_size=8) | st.just("long" * 40)
BLOBS = st.binary(max_size=20) | st.just(b"long" * 40)

# kio reads some numbers as richer types that cannot hold every number of the wire. A duration
# of 64 bits goes through a float on its way back: beyond 2**53 it loses its last digits, and
# soon after kio refuses it.
DURATIONS_MS = st.integers(-(2**53), 2**53)
NARROWED: dict[str, st.SearchStrategy[Any]] = {
    "error_code": st.sampled_from([code.value for code in ErrorCode]),
    "partition_error_code": st.sampled_from([code.value for code in ErrorCode]),
    "retention_time_ms": DURATIONS_MS,
    "session_lifetime_ms": DURATIONS_MS,
    "transaction_start_time_ms": st.integers(0, 4_000_000_000_000),
    "log_append_time_ms": st.integers(-1, 4_000_000_000_000),
}


def structs(struct: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Instances with any value in the fields that the version has, defaults in the others."""
    fields = {f.name: values(f, version) for f in struct.schema if f.exists_in(version)}
    return st.builds(struct, **fields)


def values(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.name in NARROWED:
        return NARROWED[field.name]
    strategy = of_kind(field.kind, version)
    if field.is_nullable_in(version):
        strategy = st.none() | strategy
    return strategy


def of_kind(kind: Kind, version: int) -> st.SearchStrategy[Any]:
    if isinstance(kind, Scalar):
        return SCALARS[kind.format]
    if isinstance(kind, Sized):
        return TEXTS if kind.is_text else BLOBS
    if isinstance(kind, Array):
        return st.lists(of_kind(kind.item, version), max_size=3)
    assert isinstance(kind, Nested)
    return structs(kind.struct, version)


def full(struct: type[Struct], version: int) -> Any:
    """One instance with something in every field that the version has, tagged ones too."""
    fields = (field for field in struct.schema if field.exists_in(version))
    return struct(**{field.name: something(field.kind, version) for field in fields})


def something(kind: Kind, version: int) -> Any:
    if isinstance(kind, Scalar):
        return b"0123456789abcdef" if kind.size_bytes == 16 else type(kind.zero)(1)
    if isinstance(kind, Sized):
        return "text" if kind.is_text else b"bytes"
    if isinstance(kind, Array):
        return [something(kind.item, version), something(kind.item, version)]
    return full(kind.struct, version)
