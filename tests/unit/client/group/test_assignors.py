"""Who gets what, as Kafka's assignors say."""

from __future__ import annotations

import pytest

from tidelog.client.group.assignors import ASSIGNORS, SubscribedMember
from tidelog.client.group.consumer_protocol import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.codec import MalformedMessage


def member(name: str, *topics: str, instance: str | None = None) -> SubscribedMember:
    return SubscribedMember(name, instance, topics)


@pytest.mark.parametrize(
    ("assignor", "members", "counts", "shares"),
    [
        ("range", [member("a", "t")], {"t": 2}, {"a": "t0 t1"}),
        ("range", [member("b", "t"), member("a", "t")], {"t": 3}, {"a": "t0 t1", "b": "t2"}),
        ("range", [member("a", "t"), member("b", "t")], {"t": 1}, {"a": "t0", "b": ""}),
        (
            "range",
            [member("a", "t", "u"), member("b", "t", "u")],
            {"t": 3, "u": 3},
            {"a": "t0 t1 u0 u1", "b": "t2 u2"},
        ),
        (
            "range",
            [member("a", "t"), member("b", "u")],
            {"t": 2, "u": 1},
            {"a": "t0 t1", "b": "u0"},
        ),
        (
            "range",
            [member("a", "t"), member("z", "t", instance="i")],
            {"t": 3},
            {"z": "t0 t1", "a": "t2"},
        ),
        (
            "roundrobin",
            [member("a", "t", "u"), member("b", "t", "u")],
            {"t": 3, "u": 3},
            {"a": "t0 t2 u1", "b": "t1 u0 u2"},
        ),
        (
            "roundrobin",
            [member("a", "t"), member("b", "t", "u"), member("c", "u")],
            {"t": 2, "u": 3},
            {"a": "t0", "b": "t1 u1", "c": "u0 u2"},
        ),
        ("range", [member("a", "nowhere")], {"nowhere": 0}, {"a": ""}),
        ("roundrobin", [member("a", "t")], {"t": 1, "unwanted": 5}, {"a": "t0"}),
    ],
)
def test_shares(
    assignor: str,
    members: list[SubscribedMember],
    counts: dict[str, int],
    shares: dict[str, str],
) -> None:
    found = ASSIGNORS[assignor](members, counts)

    assert {
        name: " ".join(f"{each.topic}{each.index}" for each in partitions)
        for name, partitions in found.items()
    } == shares


def test_bytes_are_kafkas() -> None:
    assert write_subscription(["b", "a"]) == (
        b"\0\0\0\0\0\2\0\1a\0\1b" + b"\xff\xff\xff\xff"  # version 0, two topics, no user data
    )
    partitions = [TopicPartition("t", 1), TopicPartition("t", 0)]
    assert write_assignment(partitions) == (
        b"\0\0\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1" + b"\xff\xff\xff\xff"
    )
    assert read_assignment(write_assignment(partitions)) == sorted(partitions)


def test_later_versions_are_read_up_to_what_we_know() -> None:
    later = b"\0\3" + write_subscription(["t"])[2:] + b"\0\0\0\0\0\0\0\1\xff\xff"
    assert read_subscription(later) == ("t",)
    assert read_assignment(b"") == []


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0\0\2\0\1a"])
def test_what_is_no_subscription(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_subscription(data)
