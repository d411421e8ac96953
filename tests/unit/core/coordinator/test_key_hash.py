"""Where a group belongs: Java's hash of a string, as Kafka takes it."""

from __future__ import annotations

import pytest

from tidelog.core.coordinator.key_hash import java_string_hash, partition_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\N{GRINNING FACE}", 1772899),
        ("group-1", 293427299),
    ],
)
def test_java_string_hash(text: str, number: int) -> None:
    assert java_string_hash(text) == number


@pytest.mark.parametrize(
    ("key", "partition"),
    [("", 0), ("hello", 99162322 % 50), ("polygenelubricants", 0)],
)
def test_partition_of(key: str, partition: int) -> None:
    """The smallest number, which has no absolute value, is 0."""
    assert partition_of(key, 50) == partition
