"""A group of consumers changes its protocol while its members read on, one way and back."""

from __future__ import annotations

import pytest

from tests.unit.core.groups.given_consumers import GROUP, Client, KnownTopics
from tests.unit.core.groups.given_migration import (
    COOPERATIVE,
    EAGER,
    REBALANCE_MS,
    SESSION_MS,
    BothKindsUnderTest,
    ClassicClient,
    assigned,
    classic_group,
    settle_all,
    subscription,
)
from tidelog.core.groups.classic_group import ClassicState
from tidelog.core.groups.consumer_group import ConsumerGroupState
from tidelog.core.groups.consumer_member import MemberState
from tidelog.core.groups.consumer_records import ConsumerRecordType
from tidelog.core.groups.group_records import GROUP_METADATA_KEY_VERSION
from tidelog.core.groups.group_settings import MigrationPolicy
from tidelog.core.groups.offset_records import key_type_of
from tidelog.core.model.errors import ErrorCode

BOTH_VERSIONS = pytest.mark.parametrize("version", [EAGER, COOPERATIVE])


def all_of(world: BothKindsUnderTest) -> set[object]:
    return set(world.topics.partitions("t"))


@BOTH_VERSIONS
def test_a_group_migrates_and_comes_back(version: int) -> None:
    """Every partition has one reader at every end, whichever protocol the readers speak."""
    old, older = classic_group(EAGER, 2)
    old.version = older.version = version
    world, new = old.world, Client(old.world, "new")

    settle_all(new, old, older)
    assert world.group().state is ConsumerGroupState.STABLE
    assert GROUP not in world.shard.classic
    for client in (old, older, new):
        assert client.owned
    assert len(old.owned) + len(older.owned) + len(new.owned) == 4
    assert old.owned | older.owned | new.owned == all_of(world)

    old.version = older.version = EAGER
    new.leave()
    settle_all(old, older)
    assert world.classic().state is ClassicState.STABLE
    assert GROUP not in world.shard.consumer
    assert old.owned | older.owned == all_of(world)
    assert not old.owned & older.owned


def test_members_keep_what_they_have_until_they_are_asked() -> None:
    """The newcomer gets only what the classic member has said to have given back."""
    (old,) = classic_group(COOPERATIVE)
    world, before, generation = old.world, set(old.owned), old.generation
    answer = world.beat("new")
    assert answer.member_epoch == generation + 1
    assert answer.assignment is not None and not answer.assignment.topic_partitions

    assert world.classic_beat(old.member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    old.step()
    old.step()  # joins with all that it has: it stays in its generation, to give back
    old.step()
    assert old.generation == generation
    member = world.group().members[old.member_id]
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    assert world.beat("new", answer.member_epoch).assignment is None
    old.step()
    assert len(old.owned) == 2 and old.owned < before and old.rejoins

    settle_all(old)
    assert old.generation == generation + 1
    given = world.beat("new", answer.member_epoch).assignment
    assert given is not None and len(given.topic_partitions[0].partitions) == 2


def test_what_is_written_is_the_end_of_one_kind_and_the_beginning_of_the_other() -> None:
    (old,) = classic_group()
    world = old.world
    before = len(world.log)
    world.beat("new")
    types = [key_type_of(record.key) for record in world.log[before:]]
    kinds = ConsumerRecordType
    assert types[:6] == [
        GROUP_METADATA_KEY_VERSION,
        kinds.MEMBER_METADATA,
        kinds.GROUP_METADATA,
        kinds.TARGET_ASSIGNMENT_MEMBER,
        kinds.TARGET_ASSIGNMENT_METADATA,
        kinds.CURRENT_MEMBER_ASSIGNMENT,
    ]
    assert world.log[before].value is None
    assert all(record.value is not None for record in world.log[before + 1 :])

    before = len(world.log)
    world.beat("new", -1)
    ended = world.log[before:]
    assert key_type_of(ended[-1].key) == GROUP_METADATA_KEY_VERSION
    assert ended[-1].value is not None
    assert all(record.value is None for record in ended[:-1])
    assert key_type_of(ended[-2].key) == kinds.GROUP_METADATA


@pytest.mark.parametrize("steps", range(12))
def test_a_successor_goes_on_from_any_moment(steps: int) -> None:
    """The coordinator dies after so many steps of a migration and back."""
    (old,) = classic_group()
    new = Client(old.world, "new")
    for step in range(steps):
        if step == 8:
            new.leave()
        elif step < 8:
            new.beat()
        old.step()
        old.world.pass_time(500)
    caller, old.waits = old.waits, None
    old.rejoins |= caller is not None
    world = old.world.successor()
    old.world = new.world = world
    if steps > 8:
        settle_all(old, rounds=20)
        assert world.classic().state is ClassicState.STABLE
        assert old.owned == all_of(world)
        return
    settle_all(new, old, rounds=20)
    assert world.group().state is ConsumerGroupState.STABLE
    assert old.owned | new.owned == all_of(world)
    assert not old.owned & new.owned


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        (MigrationPolicy.BIDIRECTIONAL, True, True),
        (MigrationPolicy.UPGRADE, True, False),
        (MigrationPolicy.DOWNGRADE, False, True),
        (MigrationPolicy.DISABLED, False, False),
    ],
)
def test_policies(policy: MigrationPolicy, *, upgrades: bool, downgrades: bool) -> None:
    (old,) = classic_group(migration_policy=policy)
    answer = old.world.beat("new")
    assert (answer.error_code == ErrorCode.NONE) is upgrades
    if not upgrades:
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "online upgrade is disabled" in (answer.error_message or "")
        assert old.world.classic().state is ClassicState.STABLE

    world = BothKindsUnderTest(migration_policy=policy)
    world.beat("new")
    joined = world.join("old").answer
    if policy is MigrationPolicy.DISABLED:
        assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return
    assert joined.error_code == ErrorCode.NONE
    world.beat("new", -1)
    assert (GROUP in world.shard.classic) is downgrades


def test_the_last_new_member_may_go_in_any_way() -> None:
    """It leaves, an administrator removes it, its session ends: the group is a classic one."""
    for way in ("leaves", "is removed", "is silent"):
        (old,) = classic_group()
        world, new = old.world, Client(old.world, "new")
        settle_all(new, old)
        if way == "leaves":
            new.leave()
        elif way == "is removed":
            assert world.remove("new") == [ErrorCode.NONE]
        else:
            for _ in range(100):
                old.step()
                world.pass_time(500)
        world.pass_time(1)
        settle_all(old)
        assert world.classic().state is ClassicState.STABLE, way
        assert old.owned == all_of(world), way


def test_a_classic_group_that_is_left_over_asks_its_members_to_join() -> None:
    (old,) = classic_group()
    world, new = old.world, Client(old.world, "new")
    settle_all(new, old)
    group_epoch = world.group().group_epoch
    new.leave()
    group = world.classic()
    assert group.state is ClassicState.PREPARING_REBALANCE
    assert group.generation == group_epoch
    assert world.classic_beat(old.member_id, group_epoch) == ErrorCode.REBALANCE_IN_PROGRESS
    world.pass_time(REBALANCE_MS)
    assert world.classic().state is ClassicState.EMPTY, "nobody joined"


def test_too_large_for_a_classic_group_it_stays() -> None:
    world = BothKindsUnderTest()
    world.shard.consumer.mixed._classic_size_max = 1
    world.beat("new")
    for name in ("x", "y"):
        world.join(name)
    world.beat("new", -1)
    assert set(world.group().members) == {"x", "y"}


def test_sessions_of_classic_members_are_their_own() -> None:
    """A member that says nothing is out after its own timeout, not after the group's setting."""
    (old,) = classic_group(session_timeout_ms=200_000)
    world = old.world
    world.beat("new")
    assert world.now_ms >= 0
    world.pass_time(SESSION_MS)
    assert set(world.group().members) == {"new"}


@pytest.mark.parametrize("late", ["join", "sync"])
def test_who_does_not_join_or_sync_in_time_is_out(late: str) -> None:
    (old,) = classic_group(session_timeout_ms=200_000)
    world = old.world
    world.beat("new")
    if late == "sync":
        answer = world.join(old.member_id).answer
        old.generation = answer.generation_id
    for _ in range(8):
        world.classic_beat(old.member_id, old.generation)
        world.pass_time(REBALANCE_MS // 8)
    assert set(world.group().members) == {"new"}


def test_who_joins_and_syncs_in_time_stays() -> None:
    (old,) = classic_group(session_timeout_ms=200_000)
    world, new = old.world, Client(old.world, "new")
    settle_all(new, old)
    for _ in range(20):
        old.step()
        world.pass_time(REBALANCE_MS // 10)
    assert old.member_id in world.group().members


def test_waiting_joins_and_syncs_are_sent_into_the_new_group() -> None:
    one, two = classic_group(EAGER, 2)
    world = one.world
    waiting = world.join(two.member_id, subscription(["t", "u"], {}, version=EAGER))
    assert waiting.waits
    world.beat("new")
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert waiting.answer.member_id == two.member_id

    one, two = classic_group(EAGER, 2)
    world = one.world
    leader = world.classic().leader
    follower = two if leader == one.member_id else one
    other = one if follower is two else two
    world.join(follower.member_id, subscription(["t", "u"], {}, version=EAGER))
    world.join(other.member_id)
    syncing = world.sync(follower.member_id, world.classic().generation)
    assert syncing.waits
    world.beat("new")
    assert syncing.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(world.group().members) == {one.member_id, two.member_id, "new"}


def test_a_group_in_its_first_rebalance_migrates_too() -> None:
    """Kafka fails here: no protocol is chosen yet. The member's favourite counts."""
    world = BothKindsUnderTest()
    waiting = world.join()
    assert waiting.waits
    assert world.beat("new").error_code == ErrorCode.NONE
    member_id = waiting.answer.member_id
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = world.join(member_id).answer
    assert answer.error_code == ErrorCode.NONE
    assert world.sync(member_id, answer.generation_id).answer.error_code == ErrorCode.NONE


# Static members


def test_a_static_member_comes_back_with_the_new_protocol() -> None:
    """Its partitions are its own; with no classic member left there is no way back."""
    (old,) = classic_group()
    world = old.world
    static = ClassicClient(world, instance="i")
    settle_all(old, static)
    kept = set(static.owned)
    assert kept
    new = Client(world, "new", instance_id="i")
    new.beat()
    assert new.owned == kept
    stale = world.classic_beat(static.member_id, static.generation, "i")
    assert stale == ErrorCode.FENCED_INSTANCE_ID
    assert set(world.group().members) == {old.member_id, "new"}


def test_a_static_member_comes_back_with_the_classic_protocol() -> None:
    """It was the last of the new kind: the group is classic, and nobody has to join again."""
    world = BothKindsUnderTest()
    new = Client(world, "new", instance_id="i")
    settle_all(new)
    group_epoch = world.group().group_epoch
    answer = world.join(instance="i").answer
    assert answer.error_code == ErrorCode.NONE
    assert answer.generation_id == group_epoch
    group = world.classic()
    assert group.state is ClassicState.STABLE
    assert list(group.members) == [answer.member_id]
    content = world.sync(answer.member_id, group_epoch, group_instance_id="i").answer.assignment
    assert assigned(world.topics, content) == all_of(world)

    after = world.successor().classic()
    assert after.as_record() == group.as_record()


def test_with_another_subscription_the_group_rebalances() -> None:
    world = BothKindsUnderTest(KnownTopics(t=4, u=2))
    settle_all(Client(world, "new", instance_id="i"))
    answer = world.join("", subscription(["u"], {}, version=EAGER), instance="i").answer
    assert answer.error_code == ErrorCode.NONE
    assert world.classic().state is ClassicState.PREPARING_REBALANCE


def test_static_members_are_known_by_their_instances() -> None:
    world = BothKindsUnderTest()
    world.beat("new")
    assert world.join("x", instance="i").error == ErrorCode.UNKNOWN_MEMBER_ID
    first = world.join(instance="i").answer.member_id
    assert world.join("x", instance="i").error == ErrorCode.FENCED_INSTANCE_ID
    second = world.join(instance="i").answer.member_id
    assert set(world.group().members) == {"new", second}
    assert first != second
    assert world.classic_beat(second, 1, "j") == ErrorCode.UNKNOWN_MEMBER_ID
