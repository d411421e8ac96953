"""Groups that do not migrate, members that groups of both protocols refuse, and what others see."""

from __future__ import annotations

import pytest

from tests.unit.core.groups.given import Caller
from tests.unit.core.groups.given_consumers import GROUP
from tests.unit.core.groups.given_migration import (
    EAGER,
    REBALANCE_MS,
    BothKindsUnderTest,
    classic_group,
)
from tidelog.core.groups.classic_group import ClassicState
from tidelog.core.groups.consumer_descriptions import describe_consumer_group
from tidelog.core.groups.consumer_offsets import validate_consumer_commit, validate_consumer_fetch
from tidelog.core.groups.consumer_protocol import write_assignment
from tidelog.core.model.errors import ErrorCode


def assignment_of(world: BothKindsUnderTest, content: bytes) -> str:
    """A stable classic group whose only member has got this."""
    joining = world.join()
    world.pass_time(3_000)
    joined = joining.answer
    world.sync(joined.member_id, joined.generation_id, {joined.member_id: content})
    return str(joined.member_id)


WHOLE = write_assignment({"t": [0]}, version=3)


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"all", ErrorCode.GROUP_ID_NOT_FOUND, "malformed"),
        (b"\xff\xff" + WHOLE[2:], ErrorCode.GROUP_ID_NOT_FOUND, "malformed"),
        (WHOLE[:-4], ErrorCode.GROUP_ID_NOT_FOUND, "malformed"),
        (WHOLE[:-4] + b"\0\0\0\1x", ErrorCode.GROUP_ID_NOT_FOUND, "custom assignor"),
        (b"\0\0\x7f\xff\xff\xff", ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (b"\0\0\xff\xff\xff\xff", ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (WHOLE + b"rest", ErrorCode.NONE, None),
        (b"", ErrorCode.NONE, None),
        (write_assignment({"nowhere": [0]}, version=0), ErrorCode.NONE, None),
    ],
)
def test_assignments_that_cannot_be_carried_over(
    content: bytes, error: ErrorCode, says: str | None
) -> None:
    world = BothKindsUnderTest()
    assignment_of(world, content)
    answer = world.beat("new")
    assert answer.error_code == error
    if says is not None:
        assert says in (answer.error_message or "")
    assert (GROUP in world.shard.classic) is (error != ErrorCode.NONE)


def test_a_partition_that_two_members_got_cannot_be_carried_over() -> None:
    one, two = classic_group(EAGER, 2)
    world = one.world
    leader, follower = (one, two) if world.classic().leader == one.member_id else (two, one)
    world.join(leader.member_id)
    world.join(follower.member_id)
    generation = world.classic().generation
    shares = {one.member_id: WHOLE, two.member_id: WHOLE}
    world.sync(leader.member_id, generation, shares)
    assert world.beat("new").error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.classic_beat(one.member_id, generation) == ErrorCode.NONE


def test_other_kinds_of_groups_and_too_large_ones_stay() -> None:
    world = BothKindsUnderTest()
    world.join(protocol_type="connect")
    assert "embedded protocol" in (world.beat("new").error_message or "")

    one, _ = classic_group(EAGER, 2, size_max=1)
    assert "maximum size" in (one.world.beat("new").error_message or "")
    one, _ = classic_group(EAGER, 2, size_max=2)
    assert one.world.beat("new").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert one.world.classic().state is ClassicState.STABLE


@pytest.mark.parametrize(
    "metadata", [b"", b"\0", b"\0\0", b"\xff\xff" + bytes(8), b"\0\0" + b"\x7f" * 8]
)
def test_a_subscription_that_cannot_be_read_is_refused(metadata: bytes) -> None:
    world = BothKindsUnderTest()
    world.beat("new")
    assert world.join("x", metadata).error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert set(world.group().members) == {"new"}


def test_a_protocol_that_not_all_classic_members_have_is_refused() -> None:
    """The embedded protocol has to fit when the group becomes a classic one."""
    world = BothKindsUnderTest()
    world.beat("new")
    assert world.join("x", names=("range", "roundrobin")).error == ErrorCode.NONE
    assert world.join("y", names=("sticky",)).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join("y", names=("roundrobin",)).error == ErrorCode.NONE
    assert world.join("z", names=("range",)).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    world.beat("new", -1)
    assert world.classic().protocol == "roundrobin"


def test_an_id_is_given_out_first_and_nothing_is_kept_of_that() -> None:
    world = BothKindsUnderTest()
    world.beat("new")
    before = len(world.log)
    answer = world.join(version=9).answer
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id
    assert len(world.log) == before
    assert world.join(answer.member_id, version=9).error == ErrorCode.NONE


def test_a_group_may_be_full() -> None:
    world = BothKindsUnderTest(size_max=1)
    world.beat("new")
    assert world.join("x").error == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_who_is_not_classic_speaks_the_new_protocol() -> None:
    world = BothKindsUnderTest()
    world.beat("new")
    for answered in (world.classic_beat("new", 2), world.sync("new", 2).error):
        assert answered == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.classic_beat("nobody", 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_wants_the_generation_and_the_protocol() -> None:
    world = BothKindsUnderTest()
    world.beat("new")
    generation = world.join("x").answer.generation_id
    assert world.sync("x", generation - 1).error == ErrorCode.ILLEGAL_GENERATION
    wrong = world.sync("x", generation, protocol_type="connect", protocol_name="range")
    assert wrong.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    wrong = world.sync("x", generation, protocol_type="consumer", protocol_name="sticky")
    assert wrong.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    world.beat("newer")
    assert world.sync("x", generation).error == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_may_take_the_new_protocol_up() -> None:
    """The same id in a heartbeat of the new kind: nobody waits for its join any more."""
    (old,) = classic_group(session_timeout_ms=200_000)
    world = old.world
    world.beat("new")
    world.classic_beat(old.member_id, old.generation)
    assert world.beat(old.member_id).error_code == ErrorCode.NONE
    assert not world.group().classic_members()
    world.pass_time(REBALANCE_MS + 1)
    assert set(world.group().members) == {old.member_id, "new"}


# What others see


def test_offsets_of_a_classic_member_have_the_codes_that_it_knows() -> None:
    (old,) = classic_group()
    world = old.world
    world.beat("new")
    group, at = world.group(), next(iter(sorted(old.owned)))
    for version in (8, 9):
        may = validate_consumer_commit(group, old.member_id, None, old.generation, version=version)
        assert may(at) == ErrorCode.NONE
        may = validate_consumer_commit(group, old.member_id, None, 9, version=version)
        assert may(at) == ErrorCode.ILLEGAL_GENERATION
        may = validate_consumer_commit(group, old.member_id, None, 0, version=version)
        assert may(at) == ErrorCode.ILLEGAL_GENERATION
    assert validate_consumer_fetch(group, old.member_id, 9) == ErrorCode.ILLEGAL_GENERATION
    assert validate_consumer_fetch(group, old.member_id, old.generation) == ErrorCode.NONE
    assert validate_consumer_fetch(group, "new", 9) == ErrorCode.STALE_MEMBER_EPOCH


def test_descriptions_say_who_is_classic() -> None:
    (old,) = classic_group()
    world = old.world
    world.beat("new")
    described = describe_consumer_group(world.group(), world.topics)
    kinds = {member.member_id: member.member_type for member in described.members}
    assert kinds == {old.member_id: 0, "new": 1}


def test_an_answer_is_given_once() -> None:
    (old,) = classic_group()
    world = old.world
    waiting: Caller = world.join("", version=3)
    world.beat("new")
    world.pass_time(300_000)
    assert len(waiting.answers) == 1
