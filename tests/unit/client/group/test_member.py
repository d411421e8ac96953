"""A group member in good times and bad: joins, rebalances, moves, fencing, refused commits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, Drop, once
from tests.unit.client.group.given import GROUP, TOPIC, Stage
from tidelog.client.group.config import group_config
from tidelog.client.group.member import GroupMember, MembershipState
from tidelog.client.settings import ConfigError
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_08_offset_commit import OffsetCommitRequest
from tidelog.core.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from tidelog.core.wire.messages.api_11_join_group import JoinGroupRequest
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest
from tidelog.core.wire.messages.api_13_leave_group import LeaveGroupRequest
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupRequest


@pytest.fixture(name="stage")
def _stage() -> Stage:
    return Stage()


def test_the_first_member_gets_everything(stage: Stage) -> None:
    member = stage.first()

    assert member.told == [("assigned", (0, 1, 2, 3))]
    assert member.committed == dict.fromkeys(range(4))
    assert isinstance(member.member, GroupMember)
    assert member.member.is_leader and member.member.assignor == "range"
    asked = stage.cluster.requests(JoinGroupRequest)
    assert [each.request.member_id for each in asked] == ["", member.member.member_id]


@pytest.mark.parametrize(
    ("strategy", "shares"), [("range", ([0, 1], [2, 3])), ("roundrobin", ([0, 2], [1, 3]))]
)
def test_two_members_share_a_topic(
    stage: Stage, strategy: str, shares: tuple[list[int], list[int]]
) -> None:
    first = stage.first(partition_assignment_strategy=strategy)
    second = stage.join(partition_assignment_strategy=strategy)
    stage.clock.run_until(lambda: first.owned and second.owned and len(first.owned) == 2)

    assert sorted((first.owned, second.owned)) == sorted(shares)
    assert first.told[1] == ("revoked", (0, 1, 2, 3))


def test_nothing_is_owned_while_a_join_is_on_its_way(stage: Stage) -> None:
    first = stage.first()
    owned_at_joins = []

    def look(broker_id: int, request: Any) -> None:
        if isinstance(request, JoinGroupRequest) and request.member_id == first.member.member_id:
            owned_at_joins.append(first.owned)

    stage.rule(look)
    stage.join()
    stage.clock.run_until(lambda: len(first.owned) == 2)

    assert owned_at_joins == [[]]


def test_what_is_revoked_is_committed_before_the_join(stage: Stage) -> None:
    first = stage.first()
    first.commit_at_revocation = 7
    second = stage.join()
    stage.clock.run_until(lambda: bool(second.owned))

    assert [each.is_ok for each in first.outcomes] == [True]
    assert set(second.committed.values()) == {7}
    after = [type(each.request) for each in stage.cluster.seen]
    assert after.index(OffsetCommitRequest) < _last(after, JoinGroupRequest)


def _last(kinds: list[type], kind: type) -> int:
    return len(kinds) - 1 - kinds[::-1].index(kind)


def test_who_leaves_is_replaced_at_once(stage: Stage) -> None:
    first, second = stage.first(), stage.join()
    stage.clock.run_until(lambda: len(first.owned) == 2)
    second.commit(2, 5)
    second.leave()
    stage.clock.run_until(lambda: len(first.owned) == 4, within_ms=5_000)

    assert second.member.state == MembershipState.LEFT
    assert [each.is_ok for each in second.outcomes] == [True]
    assert first.committed[2] == 5


def test_who_dies_is_replaced_after_its_session(stage: Stage) -> None:
    first, second = stage.first(), stage.join(session_timeout_ms=10_000)
    stage.clock.run_until(lambda: len(first.owned) == 2)
    second.die()
    stage.clock.run_for(6_000)
    assert len(first.owned) == 2
    stage.clock.run_until(lambda: len(first.owned) == 4, within_ms=20_000)


def test_heartbeats_come_at_their_interval(stage: Stage) -> None:
    stage.first()
    before = len(stage.cluster.requests(HeartbeatRequest))
    stage.clock.run_for(30_000)

    assert len(stage.cluster.requests(HeartbeatRequest)) - before in (9, 10)


def test_a_coordinator_that_moved_costs_no_rebalance(stage: Stage) -> None:
    member = stage.first()
    stage.coordinator.move(3)
    stage.clock.run_for(20_000)
    member.commit(1, 9)
    stage.clock.run_until(lambda: bool(member.outcomes))

    assert member.told == [("assigned", (0, 1, 2, 3))]
    assert member.member.coordinator_id == 3
    assert stage.committed(1) == 9


def test_a_coordinator_that_dies_is_found_elsewhere(stage: Stage) -> None:
    member = stage.first()
    stage.cluster.kill(2)
    stage.coordinator.move(1)
    stage.clock.run_for(10_000)

    assert member.told == [("assigned", (0, 1, 2, 3))]
    assert member.member.coordinator_id == 1
    assert stage.cluster.requests(HeartbeatRequest, 1)


@pytest.mark.parametrize("api", [JoinGroupRequest, SyncGroupRequest])
def test_a_coordinator_that_moves_during_a_rebalance(stage: Stage, api: type[Any]) -> None:
    def move(broker_id: int, request: Any) -> Close | None:
        if isinstance(request, api) and request.member_id:
            stage.coordinator.move(1)
            return Close()
        return None

    stage.rule(once(move))
    member = stage.join()
    stage.clock.run_until(lambda: member.owned == [0, 1, 2, 3], within_ms=120_000)


def test_a_request_that_is_never_answered_is_made_again(stage: Stage) -> None:
    stage.rule(once(lambda _, request: Drop() if request.api_key == 9 else None))
    stage.first()


@pytest.mark.parametrize(
    ("api_key", "error"),
    [
        (11, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (11, ErrorCode.NOT_COORDINATOR),
        (11, ErrorCode.UNKNOWN_MEMBER_ID),
        (11, ErrorCode.REBALANCE_IN_PROGRESS),
        (14, ErrorCode.REBALANCE_IN_PROGRESS),
        (14, ErrorCode.ILLEGAL_GENERATION),
        (14, ErrorCode.UNKNOWN_MEMBER_ID),
        (14, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (9, ErrorCode.NOT_COORDINATOR),
        (9, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (9, ErrorCode.UNSTABLE_OFFSET_COMMIT),
    ],
)
def test_what_passes_is_tried_again(stage: Stage, api_key: int, error: ErrorCode) -> None:
    stage.refuse_once(api_key, error)
    stage.first()


@pytest.mark.parametrize(
    ("api_key", "error"),
    [
        (11, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (11, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (11, ErrorCode.INVALID_SESSION_TIMEOUT),
        (11, ErrorCode.GROUP_MAX_SIZE_REACHED),
        (11, ErrorCode.FENCED_INSTANCE_ID),
        (14, ErrorCode.FENCED_INSTANCE_ID),
        (9, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_what_does_not_pass_fails(stage: Stage, api_key: int, error: ErrorCode) -> None:
    stage.refuse_once(api_key, error)
    member = stage.join()
    stage.clock.run_until(lambda: member.member.state == MembershipState.FAILED)

    assert member.member.error == error and member.owned == []
    asked = len(stage.cluster.seen)
    stage.clock.run_for(60_000)
    assert not [each for each in stage.cluster.seen[asked:] if each.request.api_key in (11, 12)]


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_heartbeat_from_the_past_loses_everything_and_joins_again(
    stage: Stage, error: ErrorCode
) -> None:
    member = stage.first()
    before = member.member.member_id
    stage.refuse_once(12, error)
    stage.clock.run_until(lambda: len(member.told) == 3, within_ms=60_000)

    assert member.told[1:] == [("lost", (0, 1, 2, 3)), ("assigned", (0, 1, 2, 3))]
    is_same = member.member.member_id == before
    assert is_same == (error == ErrorCode.ILLEGAL_GENERATION)


def test_a_fenced_instance_stops(stage: Stage) -> None:
    member = stage.first(group_instance_id="one")
    stage.refuse_once(12, ErrorCode.FENCED_INSTANCE_ID)
    stage.clock.run_until(lambda: member.member.is_over)

    assert member.told[-1] == ("lost", (0, 1, 2, 3))
    assert member.member.error == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_comes_back_to_what_it_had(stage: Stage) -> None:
    first = stage.first(group_instance_id="one")
    first.leave()
    stage.clock.run_for(1_000)
    assert first.member.state == MembershipState.LEFT
    assert not stage.cluster.requests(LeaveGroupRequest)
    again = stage.join(group_instance_id="one")
    again.until_stable()

    assert again.owned == [0, 1, 2, 3]


# What else changes


def test_a_topic_that_grows_is_assigned_again(stage: Stage) -> None:
    member = stage.first(metadata_max_age_ms=1_000)
    stage.cluster.partitions[TopicPartition(TOPIC, 4)] = type(stage.cluster[f"{TOPIC}-0"])(leader=1)
    stage.clock.run_until(lambda: member.owned == [0, 1, 2, 3, 4], within_ms=30_000)


def test_a_member_that_leaves_while_it_joins_does_not_wait(stage: Stage) -> None:
    first = stage.first()
    stage.rule(lambda _, request: Drop() if request.api_key == 12 else None)
    second = stage.join()
    stage.clock.run_until(
        lambda: second.member.state == MembershipState.JOINING and bool(second.member.member_id)
    )
    second.leave()
    stage.clock.run_until(lambda: second.member.is_over, within_ms=6_000)

    assert second.member.state == MembershipState.LEFT
    assert first.member.state == MembershipState.STABLE


def test_the_coordinator_has_a_connection_of_its_own(stage: Stage) -> None:
    member = stage.first()
    found = len(stage.cluster.requests(FindCoordinatorRequest))
    member.commit(0, 1)
    stage.clock.run_until(lambda: bool(member.outcomes))

    assert len(stage.cluster.requests(FindCoordinatorRequest)) == found
    assert stage.cluster.brokers[2].sockets


@pytest.mark.parametrize(
    "settings",
    [
        {"group.id": ""},
        {"heartbeat.interval.ms": 45_000},
        {"partition.assignment.strategy": "sticky"},
    ],
)
def test_settings_that_no_member_starts_with(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        group_config({"bootstrap.servers": "b1:9092", "group.id": GROUP, **settings})
