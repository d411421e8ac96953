"""What people type is understood, and a mistake is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidelog.cli.option_values import (
    EARLIEST,
    LATEST,
    Start,
    moment_ms,
    pairs,
    partition_indexes,
    properties,
    replica_assignment,
    separator,
    start,
    topic_partition,
)
from tidelog.core.model.ids import TopicPartition


@pytest.mark.parametrize(
    ("read", "text", "meant"),
    [
        (pairs, ["a=1", "b=x=y", "c="], {"a": "1", "b": "x=y", "c": ""}),
        (properties, "# hello\n\na = 1\n! no\nb: x:9092\n", {"a": "1", "b": "x:9092"}),
        (properties, "bootstrap.servers=h:1,i:2", {"bootstrap.servers": "h:1,i:2"}),
        (replica_assignment, "1:2:3,2:3:1", {0: [1, 2, 3], 1: [2, 3, 1]}),
        (replica_assignment, "7", {0: [7]}),
        (partition_indexes, ["2,0", "1", "0"], [0, 1, 2]),
        (topic_partition, "my-topic-12", TopicPartition("my-topic", 12)),
        (start, "earliest", EARLIEST),
        (start, "latest", LATEST),
        (start, "17", Start(offset=17)),
        (start, "-10", Start(before_end=10)),
        (moment_ms, "1700000000000", 1_700_000_000_000),
        (moment_ms, "1970-01-01T00:00:01.5Z", 1_500),
        (moment_ms, "1970-01-01T02:00:00+02:00", 0),
        (separator, r"\t", b"\t"),
        (separator, "::", b"::"),
        (separator, "é", "é".encode()),
    ],
)
def test_what_is_meant(read: Callable[[Any], object], text: object, meant: object) -> None:
    assert read(text) == meant


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (pairs, ["a"], "'a' is not KEY=VALUE"),
        (pairs, ["=1"], "is not KEY=VALUE"),
        (properties, "a=1\nnonsense\n", "line 2"),
        (properties, "=1", "line 1"),
        (replica_assignment, "1:x", "'1:x' is not a list of broker ids"),
        (replica_assignment, "1:2,", "'' is not a list of broker ids"),
        (replica_assignment, "1:1", "names a broker twice"),
        (replica_assignment, "1:2,3", "different replication factors"),
        (partition_indexes, ["0,-1"], "'-1' is not the number of a partition"),
        (partition_indexes, ["²"], "is not the number"),
        (topic_partition, "orders", "'orders' is not TOPIC-PARTITION"),
        (topic_partition, "-3", "is not TOPIC-PARTITION"),
        (start, "first", "'first' is none of"),
        (start, "--1", "is none of"),
        (moment_ms, "noon", "'noon' is neither"),
        (separator, "", "it is empty"),
    ],
)
def test_what_is_wrong(read: Callable[[Any], object], text: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read(text)


def test_a_time_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC-3")  # POSIX's sign: three hours east
    time.tzset()
    try:
        assert moment_ms("1970-01-01T03:00:00") == 0
    finally:
        monkeypatch.undo()
        time.tzset()
