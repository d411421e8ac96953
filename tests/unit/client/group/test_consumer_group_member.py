"""A KIP-848 member: joins, gives back before others get, and what every error makes of it."""

from __future__ import annotations

# Size: one machine; its errors are a table, and each needs the same stage.
from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, Drop, once
from tests.unit.client.group.given import GROUP, TOPIC, MemberProgram, Stage, refuse
from tidelog.client.group.config import RebalanceProtocol, group_config
from tidelog.client.group.member import MembershipState
from tidelog.client.settings import ConfigError
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_08_offset_commit import OffsetCommitRequest
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)

HEARTBEAT = 68
CONSUMER = {"group_protocol": "consumer"}


class ConsumerStage(Stage):
    """Its members are of the protocol `consumer`."""

    def join(self, **settings: Any) -> MemberProgram:
        return super().join(**(CONSUMER | settings))

    def two(self) -> tuple[MemberProgram, MemberProgram]:
        """They have shared the topic."""
        first, second = self.first(), self.join()
        self.clock.run_until(lambda: len(first.owned) == len(second.owned) == 2)
        return first, second

    def heartbeats(self, member: MemberProgram | None = None) -> list[Any]:
        asked = self.cluster.requests(ConsumerGroupHeartbeatRequest)
        ids = None if member is None else member.member.member_id
        return [each.request for each in asked if ids in (None, each.request.member_id)]


@pytest.fixture(name="stage")
def _stage() -> ConsumerStage:
    return ConsumerStage()


def test_the_first_member_gets_everything_under_an_id_of_its_own(stage: ConsumerStage) -> None:
    member = stage.first(group_remote_assignor="range", client_rack="r1")

    join = stage.heartbeats()[0]
    assert (join.member_epoch, join.topic_partitions) == (0, [])
    assert join.member_id == member.member.member_id and len(join.member_id) == 22
    assert (join.subscribed_topic_names, join.server_assignor) == ([TOPIC], "range")
    assert join.rack_id == "r1"
    assert member.told == [("assigned", (0, 1, 2, 3))]
    assert member.committed == dict.fromkeys(range(4))


def test_in_the_first_version_the_coordinator_makes_the_id(stage: ConsumerStage) -> None:
    stage.cluster.api_versions[HEARTBEAT] = (0, 0)
    member = stage.first()
    stage.clock.run_for(6_000)

    assert stage.heartbeats()[0].member_id == ""
    assert member.member.member_id and stage.heartbeats()[-1].member_id == member.member.member_id


def test_what_has_not_changed_is_not_said_again(stage: ConsumerStage) -> None:
    member = stage.first()
    before = len(stage.heartbeats())
    stage.clock.run_for(30_000)

    later = stage.heartbeats()[before + 1 :]
    assert len(later) in (5, 6), "every 5 s, as the coordinator says"
    assert all(each.subscribed_topic_names is each.topic_partitions is None for each in later)
    assert {each.rebalance_timeout_ms for each in later} == {-1}
    assert member.told == [("assigned", (0, 1, 2, 3))]


def test_only_what_moves_is_taken_from_a_member(stage: ConsumerStage) -> None:
    first, second = stage.two()

    assert sorted(first.owned + second.owned) == [0, 1, 2, 3]
    assert [what for what, _ in first.told] == ["assigned", "revoked"]
    assert first.told[1][1] == tuple(second.owned)
    assert second.told[0] == ("assigned", ()), "it had to wait for what the first one has"


def test_nobody_owns_what_another_has_not_released(stage: ConsumerStage) -> None:
    first = stage.first()
    held: list[list[int]] = []

    def look(broker_id: int, request: Any) -> None:
        both = set(first.owned) & {each for it in stage.members[1:] for each in it.owned}
        held.append(sorted(both))

    stage.rule(look)
    for _ in range(3):
        stage.join()
    stage.clock.run_until(lambda: [len(each.owned) for each in stage.members] == [1, 1, 1, 1])

    assert held and not any(held)


def test_what_is_revoked_is_committed_before_it_is_released(stage: ConsumerStage) -> None:
    first = stage.first()
    first.commit_at_revocation = 7
    stage.refuse_once(8, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    second = stage.join()
    stage.clock.run_until(lambda: len(second.owned) == 2)

    assert [each.is_ok for each in first.outcomes] == [True]
    assert {second.committed[each] for each in second.owned} == {7}
    seen = [each.request for each in stage.cluster.seen]
    last_commit = max(i for i, each in enumerate(seen) if isinstance(each, OffsetCommitRequest))
    release = next(
        i
        for i, each in enumerate(seen)
        if isinstance(each, ConsumerGroupHeartbeatRequest)
        and each.topic_partitions
        and len(each.topic_partitions[0].partitions) == 2
    )
    assert last_commit < release


def test_while_commits_go_on_heartbeats_name_what_is_not_released(stage: ConsumerStage) -> None:
    first = stage.first()
    first.commit_at_revocation = 7
    stage.rule(refuse(8, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    second = stage.join()
    stage.clock.run_until(lambda: first.member.state == MembershipState.REVOKING)
    mine = first.member.member_id
    stage.rule(
        once(
            lambda _, request: (
                Close() if request.api_key == HEARTBEAT and request.member_id == mine else None
            )
        )
    )
    before = len(stage.heartbeats(first))
    stage.clock.run_for(15_000)

    full = [each for each in stage.heartbeats(first)[before:] if each.topic_partitions is not None]
    assert full and len(first.owned) == 2 and second.owned == []
    assert all(sorted(each.topic_partitions[0].partitions) == [0, 1, 2, 3] for each in full)


def test_who_leaves_is_replaced(stage: ConsumerStage) -> None:
    first, second = stage.two()
    index = second.owned[0]
    second.commit(index, 5)
    second.leave()
    stage.clock.run_until(lambda: len(first.owned) == 4, within_ms=10_000)

    assert second.member.state == MembershipState.LEFT
    assert [each.is_ok for each in second.outcomes] == [True]
    assert first.committed[index] == 5
    assert stage.heartbeats(second)[-1].member_epoch == -1


def test_who_dies_is_replaced_after_its_session(stage: ConsumerStage) -> None:
    first, second = stage.two()
    second.die()
    stage.clock.run_for(30_000)
    assert len(first.owned) == 2
    stage.clock.run_until(lambda: len(first.owned) == 4, within_ms=30_000)


def test_a_static_member_that_comes_back_gets_its_own(stage: ConsumerStage) -> None:
    first, second = stage.first(), stage.join(group_instance_id="i")
    stage.clock.run_until(lambda: len(second.owned) == 2)
    had = second.owned
    second.leave()
    stage.clock.run_until(lambda: second.member.is_over)
    assert stage.heartbeats(second)[-1].member_epoch == -2

    again = stage.join(group_instance_id="i")
    stage.clock.run_until(lambda: bool(again.owned))

    assert again.owned == had
    assert first.told[-1][0] == "revoked" and len(first.told) == 2, "the others noticed nothing"


def test_an_instance_id_that_somebody_has_is_refused(stage: ConsumerStage) -> None:
    stage.first(group_instance_id="i")
    second = stage.join(group_instance_id="i")
    stage.clock.run_until(lambda: second.member.is_over)

    assert second.member.error == ErrorCode.UNRELEASED_INSTANCE_ID


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_coordinator_that_moves_costs_no_rebalance(stage: ConsumerStage, is_killed: bool) -> None:
    member = stage.first()
    if is_killed:
        stage.cluster.kill(2)
    stage.coordinator.move(3)
    stage.clock.run_for(20_000)
    member.commit(1, 9)
    stage.clock.run_until(lambda: bool(member.outcomes))

    assert member.told == [("assigned", (0, 1, 2, 3))]
    assert member.member.coordinator_id == 3
    assert stage.committed(1) == 9


def test_a_lost_answer_is_asked_for_again(stage: ConsumerStage) -> None:
    stage.rule(once(lambda _, request: Drop() if request.api_key == HEARTBEAT else None))
    stage.first()

    joins = [each for each in stage.heartbeats() if each.member_epoch == 0]
    assert len(joins) == 2 and joins[0].member_id == joins[1].member_id


def test_the_lost_answer_to_a_release_is_asked_for_again(stage: ConsumerStage) -> None:
    first = stage.first()
    lost: list[int] = []

    def lose(broker_id: int, request: Any) -> Close | None:
        is_release = (
            request.api_key == HEARTBEAT
            and request.member_id == first.member.member_id
            and request.topic_partitions
            and len(request.topic_partitions[0].partitions) == 2
        )
        if is_release and not lost:
            lost.append(1)
            stage.coordinator.submit(request, lambda answer: None)
            return Close()
        return None

    stage.rule(lose)
    second = stage.join()
    stage.clock.run_until(lambda: len(second.owned) == 2)
    stage.clock.run_for(20_000)

    assert lost and [what for what, _ in first.told] == ["assigned", "revoked"], "it was not fenced"


# Every error of a heartbeat


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_what_passes_is_tried_again(stage: ConsumerStage, error: ErrorCode) -> None:
    stage.refuse_once(HEARTBEAT, error)
    member = stage.first()
    stage.refuse_once(HEARTBEAT, error)
    stage.clock.run_for(20_000)

    assert member.told == [("assigned", (0, 1, 2, 3))]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ],
)
def test_who_is_fenced_loses_everything_and_joins_at_epoch_0(
    stage: ConsumerStage, error: ErrorCode
) -> None:
    member = stage.first()
    before = member.member.member_id
    stage.rule(refuse(8, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    member.commit(0, 3)
    stage.refuse_once(HEARTBEAT, error)
    stage.clock.run_until(lambda: len(member.told) == 3, within_ms=60_000)

    assert member.told[1:] == [("lost", (0, 1, 2, 3)), ("assigned", (0, 1, 2, 3))]
    assert member.member.member_id == before
    assert [each.is_ok for each in member.outcomes] == [False], "its commit is over, too"
    rejoin = [each for each in stage.heartbeats() if each.member_epoch == 0][-1]
    assert rejoin.topic_partitions == [] and rejoin.subscribed_topic_names == [TOPIC]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ],
)
def test_what_does_not_pass_fails(stage: ConsumerStage, error: ErrorCode) -> None:
    """At a join, GROUP_ID_NOT_FOUND says that a classic group has the name."""
    stage.refuse_once(HEARTBEAT, error)
    member = stage.join()
    stage.clock.run_until(lambda: member.member.is_over)

    assert member.member.state == MembershipState.FAILED
    assert member.member.error == error
    asked = len(stage.heartbeats())
    stage.clock.run_for(60_000)
    assert len(stage.heartbeats()) == asked


def test_a_cluster_without_the_protocol_is_a_failure(stage: ConsumerStage) -> None:
    del stage.cluster.api_versions[HEARTBEAT]
    member = stage.join()
    stage.clock.run_until(lambda: member.member.is_over)

    assert member.member.error == ErrorCode.UNSUPPORTED_VERSION


def test_who_fails_later_loses_what_it_has(stage: ConsumerStage) -> None:
    member = stage.first()
    stage.refuse_once(HEARTBEAT, ErrorCode.FENCED_INSTANCE_ID)
    stage.clock.run_until(lambda: member.member.is_over)

    assert member.told[-1] == ("lost", (0, 1, 2, 3)) and member.owned == []


# Errors of its offsets


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ],
)
def test_offsets_are_fetched_until_they_are_had(stage: ConsumerStage, error: ErrorCode) -> None:
    stage.refuse_once(9, error)
    stage.first()


def test_offsets_that_may_not_be_read_are_a_failure(stage: ConsumerStage) -> None:
    stage.refuse_once(9, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    member = stage.join()
    stage.clock.run_until(lambda: member.member.is_over)

    assert member.member.error == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_commit_goes_with_the_epoch_of_now(stage: ConsumerStage) -> None:
    first = stage.first()
    first.commit_at_revocation = 7
    stage.rule(once(refuse(8, ErrorCode.STALE_MEMBER_EPOCH)))
    stage.join()
    stage.clock.run_until(lambda: bool(first.outcomes))

    assert [each.is_ok for each in first.outcomes] == [True]


def test_a_commit_that_is_stale_follows_the_member_to_its_epoch(stage: ConsumerStage) -> None:
    first, second = stage.two()
    stage.rule(refuse(8, ErrorCode.STALE_MEMBER_EPOCH))
    first.commit(first.owned[0], 4)
    stage.clock.run_for(500)
    before = first.member.identity
    second.leave()
    stage.clock.run_until(lambda: len(first.owned) == 4)
    assert first.outcomes == []
    stage.cluster.rules.pop(0)
    stage.clock.run_until(lambda: bool(first.outcomes))

    assert first.outcomes[0].is_ok and first.member.identity != before
    sent = stage.cluster.requests(OffsetCommitRequest)[-1].request
    assert sent.generation_id_or_member_epoch == first.member.identity[0]  # type: ignore[index]


def test_a_commit_of_an_unknown_member_joins_again(stage: ConsumerStage) -> None:
    member = stage.first()
    stage.refuse_once(8, ErrorCode.UNKNOWN_MEMBER_ID)
    member.commit(0, 1)
    stage.clock.run_until(lambda: len(member.told) == 3)

    assert member.outcomes[0].error == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.told[1:] == [("lost", (0, 1, 2, 3)), ("assigned", (0, 1, 2, 3))]


def test_nobody_commits_before_it_has_joined(stage: ConsumerStage) -> None:
    member = stage.join()
    member.commit(0, 1)

    assert [each.error for each in member.outcomes] == [ErrorCode.UNKNOWN_MEMBER_ID]


# What else changes


def test_a_topic_that_grows_is_assigned_again(stage: ConsumerStage) -> None:
    member = stage.first(metadata_max_age_ms=1_000)
    stage.coordinator.topics.grow(TOPIC, 5)
    stage.cluster.partitions[TopicPartition(TOPIC, 4)] = type(stage.cluster[f"{TOPIC}-0"])(leader=1)
    stage.clock.run_until(lambda: member.owned == [0, 1, 2, 3, 4], within_ms=30_000)

    assert member.told == [("assigned", (0, 1, 2, 3)), ("assigned", (4,))]


def test_a_topic_that_the_metadata_does_not_have_yet_is_waited_for(stage: ConsumerStage) -> None:
    known = stage.cluster.topics[TOPIC]
    stage.cluster.topics[TOPIC] = bytes(15) + b"\x77"
    member = stage.join()
    stage.clock.run_until(lambda: member.member.identity is not None)
    stage.clock.run_for(1_000)
    assert member.told == [] and not member.is_stable
    stage.cluster.topics[TOPIC] = known
    stage.clock.run_until(lambda: member.owned == [0, 1, 2, 3], within_ms=10_000)


def test_a_member_leaves_while_it_joins(stage: ConsumerStage) -> None:
    stage.rule(once(lambda _, request: Drop() if request.api_key == HEARTBEAT else None))
    member = stage.join()
    stage.clock.run_until(lambda: member.member.state == MembershipState.JOINING)
    member.leave()
    stage.clock.run_until(lambda: member.member.is_over, within_ms=6_000)

    assert member.member.state == MembershipState.LEFT


@pytest.mark.parametrize(
    "settings",
    [
        {"group.protocol": "new"},
        {"group.protocol": "consumer", "session.timeout.ms": 9_000},
        {"group.protocol": "consumer", "heartbeat.interval.ms": 900},
        {"group.protocol": "consumer", "partition.assignment.strategy": "range"},
        {"group.remote.assignor": "uniform"},
    ],
)
def test_settings_that_contradict_the_protocol(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        group_config({"bootstrap.servers": "b1:9092", "group.id": GROUP, **settings})


def test_the_protocol_is_classic_unless_said_otherwise() -> None:
    given = {"bootstrap.servers": "b1:9092", "group.id": GROUP}

    assert group_config(given).protocol is RebalanceProtocol.CLASSIC
    chosen = group_config({**given, "group.protocol": "CONSUMER"})
    assert chosen.protocol is RebalanceProtocol.CONSUMER
