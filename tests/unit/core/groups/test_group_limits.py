"""Hostile members: what they make is bounded, and another group on the same partition lives on."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.unit.core.groups.given import GROUP, GroupsUnderTest
from tests.unit.core.groups.given_consumers import Client, ConsumersUnderTest, KnownTopics
from tests.unit.core.groups.given_migration import BothKindsUnderTest, subscription
from tidelog.core.coordinator.outcome import ReplyTo
from tidelog.core.groups import classic_groups, classic_join, classic_rebalance, consumer_heartbeat
from tidelog.core.groups.classic_group import ClassicState
from tidelog.core.groups.classic_join import Joiner
from tidelog.core.groups.classic_member import GroupProtocol
from tidelog.core.groups.group_limits import (
    EXPRESSIONS_PER_GROUP_MAX,
    MEMBER_BYTES,
    PENDING_PER_PARTITION_MAX,
)
from tidelog.core.groups.group_records import group_tombstone
from tidelog.core.groups.regex_syntax import InvalidRegex
from tidelog.core.groups.topic_regex import TopicRegex
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.limits import MIB

FULL = ErrorCode.GROUP_MAX_SIZE_REACHED
KIB = 1024


def join_other(here: GroupsUnderTest, group_id: str, member_id: str = "") -> tuple[int, str]:
    """Another group's member asks for an id, or joins with it: the code and the id."""
    caller = here.caller()
    joiner = Joiner(
        group_id=group_id,
        member_id=member_id,
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        version=9,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(GroupProtocol("range", b"r"),),
    )
    here.take(here.groups.join(joiner, ReplyTo(caller), here.now_ms))
    return caller.answer.error_code, caller.answer.member_id


def test_ids_that_nobody_uses_are_bounded_per_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client asks for ids in a loop: members go on, and when sessions end there is room."""
    monkeypatch.setattr(classic_join, "PENDING_PER_GROUP_MAX", 50)
    here = GroupsUnderTest()
    (member,) = here.stable(1)
    errors = [here.join().error for _ in range(200)]
    assert errors == [ErrorCode.MEMBER_ID_REQUIRED] * 50 + [FULL] * 150
    assert len(here.group.pending) == 50
    assert here.heartbeat(member) == ErrorCode.NONE
    for _ in range(3):
        here.wait(5_000)
        here.heartbeat(member)
    assert not here.group.pending
    assert here.join().error == ErrorCode.MEMBER_ID_REQUIRED
    assert here.group.state is ClassicState.STABLE


def test_ids_are_bounded_per_partition_and_only_the_oldest_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(classic_rebalance, "PENDING_PER_PARTITION_MAX", 20)
    here = GroupsUnderTest()
    _, early = join_other(here, "early")
    for at in range(100):
        join_other(here, f"hostile-{at}")
    assert sum(len(group.pending) for group in here.groups) == 20
    assert len(here.groups._rebalance._pending) == 20
    assert len(here.groups._deadlines) == 20

    assert join_other(here, "early", early)[0] == ErrorCode.UNKNOWN_MEMBER_ID
    error, late = join_other(here, "late")
    assert error == ErrorCode.MEMBER_ID_REQUIRED
    assert join_other(here, "late", late)[0] == ErrorCode.NONE
    assert (("late", late) in here.groups._rebalance._pending) is False


def test_groups_that_nobody_joins_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of many groups: the oldest without members and offsets end, in the log too."""
    monkeypatch.setattr(classic_groups, "UNUSED_GROUPS_MAX", 30)
    here = GroupsUnderTest()
    (member,) = here.stable(1)
    here.groups.add_simple("with offsets")
    for at in range(200):
        assert join_other(here, f"hostile-{at}")[0] == ErrorCode.MEMBER_ID_REQUIRED
    kept = {group.group_id for group in here.groups}
    assert kept == {GROUP, "with offsets", *(f"hostile-{at}" for at in range(170, 200))}
    assert group_tombstone("hostile-0") in here.log
    assert here.heartbeat(member) == ErrorCode.NONE
    successor = GroupsUnderTest(here.log)
    assert {group.group_id for group in successor.groups} == kept - {"with offsets"}


def test_joins_and_leaves_in_a_loop_leave_nothing() -> None:
    here = GroupsUnderTest()
    for _ in range(300):
        member_id, _ = here.new_member()
        here.leave((member_id, None))
    assert not here.group.members
    assert not here.group.pending
    assert here.group.cost == 0
    assert len(here.groups._deadlines) == 0
    assert not here.groups._rebalance._pending


def test_what_members_of_a_classic_group_say_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large metadata is refused to the newcomer, and also to a member that wants to grow."""
    monkeypatch.setattr(classic_join, "GROUP_BYTES_MAX", 64 * KIB)
    here = GroupsUnderTest()
    (member,) = here.stable(1)
    large = (GroupProtocol("range", bytes(40 * KIB)),)
    too_large = (GroupProtocol("range", bytes(64 * KIB)),)
    assert here.join(protocols=too_large, version=3).error == FULL
    here.new_member(protocols=large)
    assert here.join(protocols=large, version=3).error == FULL
    assert here.group.cost <= 64 * KIB
    assert here.join(member).answer.error_code == ErrorCode.NONE, "who says no more may stay"


def test_many_small_members_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_join, "GROUP_BYTES_MAX", 10 * MEMBER_BYTES)
    here = GroupsUnderTest()
    callers = [here.join(version=3) for _ in range(100)]
    refused = [caller for caller in callers if not caller.waits and caller.error == FULL]
    assert len(here.group.members) < 10
    assert len(refused) > 90


def test_what_members_of_a_kip_848_group_say_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_heartbeat, "GROUP_BYTES_MAX", 64 * KIB)
    world = BothKindsUnderTest()
    client = Client(world, "a")
    assert client.beat() == ErrorCode.NONE
    names = [f"{at:0100d}" for at in range(700)]
    assert world.beat("hostile", subscribed_topic_names=names).error_code == FULL
    grown = world.beat("a", client.member_epoch, subscribed_topic_names=names)
    assert grown.error_code == FULL
    assert world.join("old", subscription(names, {}, version=0)).error == FULL
    for at in range(200):
        world.beat(f"hostile-{at}")
    assert world.group().cost <= 64 * KIB
    assert client.beat() == ErrorCode.NONE
    assert world.beat("other", group_id="other").error_code == ErrorCode.NONE


def test_expressions_are_bounded_per_group() -> None:
    world = ConsumersUnderTest(KnownTopics(**{f"t{at}": 1 for at in range(50)}))
    for at in range(EXPRESSIONS_PER_GROUP_MAX + 5):
        answer = world.beat(f"m{at}", subscribed_topic_regex=f"t{at}.*")
        fits = at < EXPRESSIONS_PER_GROUP_MAX
        assert answer.error_code == (ErrorCode.NONE if fits else ErrorCode.INVALID_REQUEST)
    assert world.beat("again", subscribed_topic_regex="t0.*").error_code == ErrorCode.NONE
    used = {member.subscribed_regex for member in world.group().members.values()}
    assert len(used) == EXPRESSIONS_PER_GROUP_MAX


def test_an_expression_that_names_thousands_of_topics_is_refused() -> None:
    """A string has 32,767 bytes at most, and an expression is bounded far below that."""
    long = "|".join(f"topic-{at}" for at in range(2_500))
    with pytest.raises(InvalidRegex):
        TopicRegex(long)
    world = ConsumersUnderTest()
    refused = world.beat("a", subscribed_topic_regex=long)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.beat("b").error_code == ErrorCode.NONE


def test_an_expression_that_matches_ten_thousand_topics_is_looked_up_in_slices() -> None:
    """Another group's heartbeats are answered meanwhile."""
    world = ConsumersUnderTest(KnownTopics(**{f"t{at:05d}": 1 for at in range(10_000)}))
    names: list[str] = []
    world.beat("a", subscribed_topic_names=names, subscribed_topic_regex="t0.*")
    assert world.beat("b", group_id="other", subscribed_topic_names=["t00001"]).error_code == 0
    assert not world.group().regexes, "not in one turn"
    world.pass_time(10_000)
    assert len(world.group().regexes["t0.*"].topics) == 10_000


def test_memory_stays_where_it_is_while_ids_are_asked_for_in_a_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a tenth of a real coordinator's limits: more requests need no more memory."""
    limit = PENDING_PER_PARTITION_MAX // 10
    monkeypatch.setattr(classic_rebalance, "PENDING_PER_PARTITION_MAX", limit)
    monkeypatch.setattr(classic_groups, "UNUSED_GROUPS_MAX", limit)
    groups = GroupsUnderTest().groups
    used: list[int] = []
    tracemalloc.start()
    try:
        for at in range(4 * limit):
            joiner = Joiner(
                group_id=f"g{at % (2 * limit)}",
                member_id="",
                group_instance_id=None,
                client_id="c",
                client_host="/h",
                version=9,
                session_timeout_ms=1_800_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=(GroupProtocol("range", bytes(10)),),
            )
            for record in groups.join(joiner, ReplyTo(None), at).records:
                groups.apply(record)
            if (at + 1) % limit == 0:
                used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert used[3] < used[1] * 1.1, used
    assert used[3] < 8 * MIB, used
