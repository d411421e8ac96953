"""Bytes that consumers write for each other: any of them get an answer, and none stops a group."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, dictionaries, integers, lists, one_of, sampled_from, text

from tests.unit.core.groups.given_migration import BothKindsUnderTest, subscription
from tidelog.core.groups.consumer_protocol import (
    EmbeddedSubscription,
    MalformedProtocol,
    read_assignment,
    read_subscribed_topics,
    read_subscription,
    write_assignment,
)
from tidelog.core.model.errors import ErrorCode

WHOLE = subscription(["t"], {"t": [0, 1]}, version=1)
ASSIGNED = write_assignment({"t": [0, 1]}, version=3)
DAMAGED = one_of(
    binary(max_size=40),
    integers(0, len(WHOLE)).map(lambda end: WHOLE[:end]),
    integers(0, len(ASSIGNED)).map(lambda end: ASSIGNED[:end]),
    integers(0, 8 * len(ASSIGNED) - 1).map(
        lambda bit: bytes(
            byte ^ (1 << bit % 8 if at == bit // 8 else 0) for at, byte in enumerate(ASSIGNED)
        )
    ),
)
NAMES = text("abc", min_size=1, max_size=5)


@given(DAMAGED)
def test_reading_says_what_it_is_or_that_it_is_nothing(content: bytes) -> None:
    for read in (read_subscription, read_assignment):
        try:
            read(content)
        except MalformedProtocol:
            continue
    read_subscribed_topics(content)


@given(dictionaries(NAMES, lists(integers(0, 2**31 - 1), max_size=5), max_size=4), integers(0, 3))
def test_assignments_are_read_as_they_are_written(
    partitions: dict[str, list[int]], version: int
) -> None:
    read = read_assignment(write_assignment(partitions, version=version))
    assert dict(read.partitions) == {name: tuple(each) for name, each in partitions.items()}
    assert not read.has_user_data


@pytest.mark.parametrize(
    ("content", "ends_early"),
    [
        (b"", True),
        (b"\0", True),
        (b"\0\0", True),
        (b"\xff\xff" + bytes(8), True),
        (b"\0\0\0\0\0\1", False),
        (b"\0\0\0\0\0\1\0\5ab", False),
        (b"\0\0\0\0\0\1\xff\xff\xff\xff\xff\xff", False),
        (b"\0\0\xff\xff\xff\xff", False),
        (b"\0\0\0\0\0\0\0\0\0\1", False),
        (b"\0\1\0\0\0\0\xff\xff\xff\xff", True),
        (b"\0\2\0\0\0\0\xff\xff\xff\xff\0\0\0\0", True),
        (b"\0\3\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\1", True),
    ],
)
def test_what_is_wrong_with_a_subscription(content: bytes, *, ends_early: bool) -> None:
    with pytest.raises(MalformedProtocol) as refused:
        read_subscription(content)
    assert refused.value.ends_early is ends_early


def test_a_later_version_is_read_as_the_newest_that_is_known() -> None:
    newest = b"\0\3\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0\0\0\0\1\0\1r"
    expected = EmbeddedSubscription(topics=frozenset("t"), rack_id="r")
    assert read_subscription(newest) == read_subscription(b"\0\7" + newest[2:] + b"!") == expected


@given(metadata=DAMAGED, assignment=DAMAGED, kind=sampled_from(("classic", "mixed")))
@settings(max_examples=60, deadline=None)
def test_any_bytes_get_an_answer(metadata: bytes, assignment: bytes, kind: str) -> None:
    """Joins, syncs and a migration with random bytes: Kafka's codes, and every check holds."""
    world = BothKindsUnderTest()
    if kind == "mixed":
        world.beat("new")
    joining = world.join("" if kind == "classic" else "old", metadata)
    world.pass_time(3_000)
    joined = joining.answer
    allowed = [ErrorCode.NONE] + [ErrorCode.UNKNOWN_SERVER_ERROR] * (kind == "mixed")
    assert joined.error_code in allowed
    if joined.error_code:
        return
    own = {joined.member_id: assignment}
    synced = world.sync(joined.member_id, joined.generation_id, own).answer
    assert synced.error_code == ErrorCode.NONE
    answer = world.beat("newer")
    refusals = (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert answer.error_code in refusals
    world.pass_time(1_000)
    world.successor()
