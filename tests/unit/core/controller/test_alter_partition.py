"""AlterPartition: every way in which a leader can be stale, and the codes it hears."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.controller.cluster import (
    CAREFUL,
    ID,
    KEY,
    Choices,
    cluster,
    roles,
    state,
)
from tests.unit.core.metadata.given import apply, topic_id
from tidelog.core.controller.alter_partition import (
    IsrChange,
    IsrChanged,
    Member,
    decide_isr_changes,
    refuse_broker_epoch,
)
from tidelog.core.controller.events import IsrChangeAccepted, IsrChangeRefused
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.model.errors import ErrorCode

BEFORE = replace(state(1, 2, 3, isr=(1, 2)), leader_epoch=5, partition_epoch=7)
GROWN = IsrChange(
    key=KEY,
    leader_epoch=5,
    partition_epoch=7,
    members=(Member(1, 1), Member(2, 2), Member(3, 3)),
    leader_is_recovering=False,
)
SHRUNK = replace(GROWN, members=(Member(1, 1),))


def decided(
    image: ClusterImage, requested: IsrChange, *, leader: int = 1, choices: Choices = CAREFUL
) -> tuple[IsrChanged, list[object]]:
    decision = decide_isr_changes(image, choices, leader=leader, requests=[requested])
    (outcome,) = decision.outcomes
    apply(image, decision.records)
    return outcome, decision.events


def error(requested: IsrChange, *, before: PartitionState = BEFORE, leader: int = 1) -> ErrorCode:
    image = cluster(before)
    outcome, events = decided(image, requested, leader=leader)
    if outcome.error != ErrorCode.NONE:
        assert outcome.state is None
        assert image.topics["t"].partitions[0] == before, "a refusal changes nothing"
        assert isinstance(events[-1], IsrChangeRefused)
    return outcome.error


def test_a_replica_that_has_caught_up_joins_without_a_new_leader_epoch() -> None:
    image = cluster(BEFORE)

    outcome, events = decided(image, GROWN)

    after = image.topics["t"].partitions[0]
    assert outcome == IsrChanged(key=KEY, state=after)
    assert roles(after) == (1, (1, 2, 3), (), ())
    assert (after.leader_epoch, after.partition_epoch) == (5, 8)
    assert events == [IsrChangeAccepted(topic="t", partition=0, isr=(1, 2, 3), partition_epoch=8)]


@pytest.mark.scenario("X-6")
def test_a_shrink_below_the_minimum_keeps_the_other_eligible() -> None:
    image = cluster(BEFORE)

    outcome, _ = decided(image, SHRUNK)

    assert outcome.state is not None
    assert roles(outcome.state) == (1, (1,), (2,), ())


def test_the_same_wish_again_changes_nothing_and_is_told_the_state() -> None:
    image = cluster(BEFORE)
    same = replace(GROWN, members=(Member(1, 1), Member(2, 2)))

    outcome, _ = decided(image, same)

    assert outcome == IsrChanged(key=KEY, state=BEFORE)


def test_a_recovered_leader_may_let_others_in_and_a_recovering_one_not() -> None:
    before = replace(state(1, 2, 3, isr=(1,), recovering=True), leader_epoch=5, partition_epoch=7)

    assert error(replace(GROWN, leader_is_recovering=True), before=before) == (
        ErrorCode.INVALID_REQUEST
    )
    assert error(replace(SHRUNK, leader_is_recovering=True), before=before) == ErrorCode.NONE
    image = cluster(before)
    outcome, _ = decided(image, GROWN)
    assert outcome.state is not None
    assert not outcome.state.leader_is_recovering


@pytest.mark.scenario("X-10")
@pytest.mark.parametrize(
    ("requested", "code"),
    [
        (replace(GROWN, key=PartitionKey(topic_id(9), 0)), ErrorCode.UNKNOWN_TOPIC_ID),
        (replace(GROWN, key=PartitionKey(ID, 1)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (replace(GROWN, leader_epoch=6), ErrorCode.NOT_CONTROLLER),
        (replace(GROWN, partition_epoch=8), ErrorCode.NOT_CONTROLLER),
        (replace(GROWN, leader_epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (replace(GROWN, leader_epoch=4, partition_epoch=6), ErrorCode.FENCED_LEADER_EPOCH),
        (replace(GROWN, partition_epoch=6), ErrorCode.INVALID_UPDATE_VERSION),
        (replace(GROWN, members=(Member(1, 1), Member(4, 4))), ErrorCode.INVALID_REQUEST),
        (replace(GROWN, members=(Member(1, 1), Member(1, 1))), ErrorCode.INVALID_REQUEST),
        (replace(GROWN, members=(Member(2, 2),)), ErrorCode.INVALID_REQUEST),
        (replace(GROWN, members=()), ErrorCode.INVALID_REQUEST),
        (replace(SHRUNK, leader_is_recovering=True), ErrorCode.INVALID_REQUEST),
        (replace(GROWN, members=(Member(1, 1), Member(3, 2))), ErrorCode.INELIGIBLE_REPLICA),
        (replace(GROWN, members=(Member(1, 1), Member(3, None))), ErrorCode.NONE),
    ],
    ids=[
        "no topic", "no partition", "leader epoch ahead", "partition epoch ahead",
        "leader epoch behind", "both behind", "partition epoch behind", "stranger", "twice",
        "without itself", "nobody", "recovering again", "another process", "any process",
    ],
)  # fmt: skip
def test_each_stale_wish_has_its_code(requested: IsrChange, code: ErrorCode) -> None:
    assert error(requested) == code


def test_who_does_not_lead_has_no_say() -> None:
    assert error(GROWN, leader=2) == ErrorCode.INVALID_REQUEST


@pytest.mark.scenario("X-10")
@pytest.mark.parametrize("absent", ["fenced", "leaving", "forgotten"])
def test_a_replica_that_is_fenced_leaving_or_forgotten_may_not_join(absent: str) -> None:
    image = cluster(
        BEFORE,
        fenced=[3] if absent == "fenced" else [],
        leaving=[3] if absent == "leaving" else [],
    )
    if absent == "forgotten":
        del image.brokers[3]

    outcome, _ = decided(image, GROWN)

    assert outcome.error == ErrorCode.INELIGIBLE_REPLICA


@pytest.mark.scenario("X-9")
def test_a_process_that_was_replaced_is_told_so() -> None:
    image = cluster(BEFORE)

    assert refuse_broker_epoch(image, broker_id=1, broker_epoch=1) == ErrorCode.NONE
    assert refuse_broker_epoch(image, broker_id=1, broker_epoch=0) == 77
    assert refuse_broker_epoch(image, broker_id=9, broker_epoch=1) == 77


def test_a_leader_whose_own_directory_is_lost_is_replaced() -> None:
    """Kafka answers with a new leader, though the change was written."""
    image = cluster(BEFORE)
    image.brokers[1] = replace(image.brokers[1], log_directories=(b"x" * 16,))

    outcome, _ = decided(image, GROWN)

    assert outcome.error == ErrorCode.NEW_LEADER_ELECTED
    assert image.topics["t"].partitions[0].leader == 2
