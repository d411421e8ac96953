"""A published record says what it was made of: by a header, or by fields of its value."""

from __future__ import annotations

import pytest

from tidelog.spark.audit.published import source_of

NOTHING = (None, None, None)


@pytest.mark.parametrize(
    ("value", "header", "source"),
    [
        (b"anything", b"orders/2/17", ("orders", 2, 17)),
        (b'{"source_partition": 1, "source_offset": 2}', b"orders/2/17", ("orders", 2, 17)),
        (b'{"source_partition": 1, "source_offset": 2}', None, (None, 1, 2)),
        (
            b'{"source_topic": "orders", "source_partition": 1, "source_offset": 2}',
            None,
            ("orders", 1, 2),
        ),
        (b"anything", None, NOTHING),
        (b"[1]", None, NOTHING),
        (b'{"source_partition": "1", "source_offset": 2}', None, NOTHING),
        (None, None, NOTHING),
        (b"x", b"orders", NOTHING),
        (b"x", b"orders/x/1", NOTHING),
        (b"x", b"/0/1", (None, 0, 1)),
    ],
)
def test_sources(
    value: bytes | None, header: bytes | None, source: tuple[str | None, int | None, int | None]
) -> None:
    headers: list[dict[str, object]] = [{"key": "other", "value": b"orders/9/9"}]
    if header is not None:
        headers.append({"key": "tidelog-source", "value": header})
    assert source_of(value, headers) == source
    if header is None:
        assert source_of(value, None) == source
