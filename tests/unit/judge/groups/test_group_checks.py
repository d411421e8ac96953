"""Each check of a history of groups condemns a planted lie and forgives its innocent twin."""

from __future__ import annotations

import pytest

from tidelog.judge.groups.group_checks import GROUP_CHECKS, judge_groups
from tidelog.judge.groups.group_history import (
    NO_GENERATION,
    GroupAtRest,
    GroupJoined,
    GroupOperation,
    GroupSynced,
    MemberHeartbeat,
    OffsetCommitted,
    OffsetFetched,
    OffsetsRemoved,
    RecordDelivered,
    RequestUnanswered,
)
from tidelog.judge.history import CallOutcome

G, P = "payments", "orders-0"
OK, UNKNOWN, REFUSED = CallOutcome.OK, CallOutcome.UNKNOWN, CallOutcome.REFUSED

Case = tuple[str, str, list[GroupOperation]]


def joined(
    at: int, member: str, generation: int, *, instance: str | None = None, deposed: bool = False
) -> GroupJoined:
    return GroupJoined(
        at_us=at, invoked_us=at - 1, group=G, member=member, instance=instance,
        generation=generation, from_deposed=deposed,
    )  # fmt: skip


def synced(
    at: int,
    member: str,
    generation: int,
    *partitions: str,
    instance: str | None = None,
    deposed: bool = False,
) -> GroupSynced:
    return GroupSynced(
        at_us=at, invoked_us=at - 1, group=G, member=member, instance=instance,
        generation=generation, partitions=partitions, from_deposed=deposed,
    )  # fmt: skip


def beat(
    at: int,
    member: str,
    sent: int,
    member_epoch: int | None,
    *assigned: str,
    owned: tuple[str, ...] | None = None,
    unchanged: bool = False,
    error: str | None = None,
    deposed: bool = False,
) -> MemberHeartbeat:
    """A heartbeat; without an epoch it was refused, or lost."""
    return MemberHeartbeat(
        at_us=at, invoked_us=at - 1, group=G, member=member, sent_epoch=sent, owned=owned,
        member_epoch=member_epoch, error=error, from_deposed=deposed,
        assigned=None if unchanged or member_epoch is None else assigned,
    )  # fmt: skip


def commit(
    at: int,
    token: str,
    *,
    outcome: CallOutcome = OK,
    invoked: int | None = None,
    member: str = "",
    instance: str | None = None,
    generation: int = NO_GENERATION,
) -> OffsetCommitted:
    return OffsetCommitted(
        at_us=at, invoked_us=at - 1 if invoked is None else invoked, group=G, partition=P,
        token=token, offset=ord(token), outcome=outcome, member=member, instance=instance,
        generation=generation, error="why",
    )  # fmt: skip


def fetched(
    at: int,
    token: str | None,
    *,
    offset: int | None = None,
    invoked: int | None = None,
    deposed: bool = False,
) -> OffsetFetched:
    usual = -1 if token is None else ord(token)
    return OffsetFetched(
        at_us=at, invoked_us=at - 1 if invoked is None else invoked, group=G, partition=P,
        token=token, offset=usual if offset is None else offset, reader="r", from_deposed=deposed,
    )  # fmt: skip


def deleted(
    at: int, *, outcome: CallOutcome = OK, partition: str | None = None, invoked: int | None = None
) -> OffsetsRemoved:
    return OffsetsRemoved(
        at_us=at, invoked_us=at - 1 if invoked is None else invoked, group=G,
        partition=partition, outcome=outcome,
    )  # fmt: skip


def rest(*owned: tuple[str, str], members: tuple[str, ...] = ("m", "n")) -> GroupAtRest:
    return GroupAtRest(at_us=90, group=G, partitions=(P, "orders-1"), members=members, owned=owned)


def delivered(at: int, member: str, offset: int) -> RecordDelivered:
    return RecordDelivered(
        at_us=at, group=G, member=member, partition=P, offset=offset, payload=f"r{offset}"
    )


CONDEMNED: list[Case] = [
    ("owned twice", "two members in one generation", [synced(2, "m", 3, P), synced(4, "n", 3, P)]),
    ("owned twice", "two static members", [
        synced(2, "m", 3, P, instance="i"), synced(4, "n", 3, P, instance="k"),
    ]),
    ("owned twice", "the group was not deleted, though somebody tried", [
        synced(2, "m", 3, P), deleted(4, outcome=REFUSED), synced(6, "n", 3, P),
    ]),
    ("owned twice", "the group was deleted before both of them", [
        deleted(2), synced(4, "m", 3, P), synced(6, "n", 3, P),
    ]),
    ("unowned", "nobody has the second", [rest(("m", P))]),
    ("commit forgotten", "no offset after a commit", [commit(2, "a"), fetched(4, None)]),
    ("commit forgotten", "the one before", [
        commit(2, "a"), commit(4, "b"), fetched(6, "a"),
    ]),
    ("commit forgotten", "seen once, then gone, though its caller never heard of it", [
        commit(2, "a"), commit(4, "b", outcome=UNKNOWN), fetched(6, "b"), fetched(8, "a"),
    ]),
    ("commit forgotten", "a deposed coordinator showed it: it was committed", [
        commit(2, "a"), commit(4, "b", outcome=UNKNOWN), fetched(6, "b", deposed=True),
        fetched(8, "a"),
    ]),
    ("commit forgotten", "the deletion came before it", [
        deleted(2), commit(4, "a"), fetched(6, None),
    ]),
    ("commit forgotten", "the deletion was refused", [
        commit(2, "a"), deleted(4, outcome=REFUSED), fetched(6, None),
    ]),
    ("commit forgotten", "another partition's offset was deleted", [
        commit(2, "a"), deleted(4, partition="orders-1"), fetched(6, None),
    ]),
    ("deleted offset back", "after the group's deletion", [
        commit(2, "a"), deleted(4), fetched(6, "a"),
    ]),
    ("deleted offset back", "after the offset's deletion", [
        commit(2, "a"), deleted(4, partition=P), fetched(6, "a"),
    ]),
    ("offset invented", "nobody committed it", [fetched(2, "a")]),
    ("offset invented", "another number than was committed", [
        commit(2, "a"), fetched(4, "a", offset=1),
    ]),
    ("fenced commit", "after the next generation's assignment", [
        synced(2, "m", 3, P), synced(4, "n", 4, P), commit(6, "a", member="m", generation=3),
    ]),
    ("fenced commit", "after the next process of a static member", [
        synced(2, "m", 3, P, instance="i"), joined(4, "n", 3, instance="i"),
        synced(6, "n", 3, P, instance="i"),
        commit(8, "a", member="m", instance="i", generation=3),
    ]),
    ("refused commit", "it counts nevertheless", [
        commit(2, "a", outcome=REFUSED), fetched(4, "a"),
    ]),
    ("generation denied", "a join into an earlier one", [
        synced(2, "m", 3, P), joined(4, "n", 2),
    ]),
    ("generation denied", "an assignment of an earlier one", [
        synced(2, "m", 3, P), synced(4, "n", 2),
    ]),
    ("generation denied", "another assignment in the same one", [
        synced(2, "m", 3, P), synced(4, "m", 3),
    ]),
    ("delivered after commit", "a new member begins too early", [
        synced(1, "m", 3, P), commit(2, "a", member="m", generation=3), synced(4, "n", 4, P),
        delivered(5, "n", ord("a") - 1),
    ]),
    ("delivered after commit", "the member itself, after a rebalance", [
        synced(1, "m", 3, P), commit(2, "b", member="m", generation=3), synced(4, "m", 4, P),
        delivered(5, "m", ord("a")),
    ]),
    ("owned twice", "given before the last owner has released it", [
        beat(2, "m", 0, 3, P), beat(4, "n", 0, 4, P), beat(6, "m", 3, 3, unchanged=True),
    ]),
    ("owned twice", "given while the last owner gives it back", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, 3), beat(6, "n", 0, 4, P),
        beat(8, "m", 3, 3, unchanged=True, owned=(P,)),
    ]),
    ("fenced commit", "in the epoch before it released the partition", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, 3), beat(6, "m", 3, 4, owned=()),
        commit(8, "a", member="m", generation=3),
    ]),
    ("fenced commit", "after another member was given the partition", [
        beat(2, "m", 0, 3, P), beat(4, "n", 0, 4, P), commit(6, "a", member="m", generation=3),
    ]),
    ("member epoch denied", "a member went back", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, 2, unchanged=True),
    ]),
    ("member epoch denied", "who joins comes to an earlier epoch", [
        beat(2, "m", 0, 3, P), beat(4, "n", 0, 2),
    ]),
    ("member epoch denied", "fenced in the epoch that it was answered", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, None, error="NOT_COORDINATOR"),
        beat(6, "m", 3, None, error="COORDINATOR_LOAD_IN_PROGRESS"),
        beat(8, "m", 3, None, error="FENCED_MEMBER_EPOCH"),
    ]),
    ("unanswered", "a hanging request", [
        RequestUnanswered(at_us=9, invoked_us=1, client="m", request="JoinGroup", broker=1),
    ]),
]  # fmt: skip

FORGIVEN: list[Case] = [
    ("owned twice", "two generations", [synced(2, "m", 3, P), synced(4, "n", 4, P)]),
    ("owned twice", "two processes of a static member", [
        synced(2, "m", 3, P, instance="i"), synced(4, "n", 3, P, instance="i"),
    ]),
    ("owned twice", "the group was deleted in between", [
        synced(2, "m", 1, P), deleted(4), synced(6, "n", 1, P),
    ]),
    ("owned twice", "the group may have been deleted in between", [
        synced(4, "m", 1, P), deleted(2, outcome=UNKNOWN), synced(6, "n", 1, P),
    ]),
    ("unowned", "everything has an owner", [rest(("m", P), ("n", "orders-1"))]),
    ("unowned", "nobody lives", [rest(members=())]),
    ("commit forgotten", "it is there", [commit(2, "a"), fetched(4, "a")]),
    ("commit forgotten", "asked before it was answered", [
        commit(4, "a"), fetched(6, None, invoked=3),
    ]),
    ("commit forgotten", "two at a time, in either order", [
        commit(4, "a", invoked=1), commit(5, "b", invoked=2), fetched(7, "a"),
    ]),
    ("commit forgotten", "an unknown one may come late", [
        commit(2, "a", outcome=UNKNOWN), commit(4, "b"), fetched(6, "a"),
    ]),
    ("commit forgotten", "an unknown one may never come", [
        commit(2, "a"), commit(4, "b", outcome=UNKNOWN), fetched(6, "a"),
    ]),
    ("commit forgotten", "a coordinator that does not know that it is deposed", [
        commit(2, "a"), commit(4, "b"), fetched(6, "a", deposed=True),
    ]),
    ("commit forgotten", "deleted, or perhaps deleted", [
        commit(2, "a"), deleted(4), fetched(6, None), commit(8, "b"),
        deleted(10, outcome=UNKNOWN), fetched(12, None),
    ]),
    ("deleted offset back", "committed again", [
        commit(2, "a"), deleted(4), commit(6, "b"), fetched(8, "b"),
    ]),
    ("deleted offset back", "a deletion that nobody knows of", [
        commit(2, "a"), deleted(4, outcome=UNKNOWN), fetched(6, "a"),
    ]),
    ("offset invented", "as it was committed", [commit(2, "a"), fetched(4, "a")]),
    ("fenced commit", "in its own generation", [
        synced(2, "m", 3, P), commit(4, "a", member="m", generation=3),
    ]),
    ("fenced commit", "the next generation was only joined", [
        synced(2, "m", 3, P), joined(4, "n", 4), commit(6, "a", member="m", generation=3),
    ]),
    ("fenced commit", "sent before the next assignment", [
        synced(2, "m", 3, P), synced(5, "n", 4, P),
        commit(6, "a", member="m", generation=3, invoked=4),
    ]),
    ("fenced commit", "it was refused", [
        synced(2, "n", 4, P), commit(4, "a", member="m", generation=3, outcome=REFUSED),
    ]),
    ("fenced commit", "the later process of a static member", [
        synced(2, "n", 3, P, instance="i"), joined(4, "m", 3, instance="i"),
        synced(6, "m", 3, P, instance="i"),
        commit(8, "a", member="m", instance="i", generation=3),
    ]),
    ("refused commit", "an unknown one may count", [
        commit(2, "a", outcome=UNKNOWN), fetched(4, "a"),
    ]),
    ("generation denied", "forward", [
        joined(2, "m", 1), synced(4, "m", 1, P), joined(6, "n", 2), synced(8, "n", 2, P),
    ]),
    ("generation denied", "a join of a generation that nobody was given", [
        joined(2, "m", 4), joined(4, "m", 3), synced(6, "m", 3, P),
    ]),
    ("generation denied", "a new group of that name", [
        synced(2, "m", 3, P), deleted(4), joined(6, "n", 1), synced(8, "n", 1, P),
    ]),
    ("generation denied", "a coordinator that does not know that it is deposed", [
        synced(2, "m", 3, P), synced(4, "n", 2, deposed=True),
    ]),
    ("delivered after commit", "from what was committed on", [
        synced(1, "m", 3, P), commit(2, "a", member="m", generation=3), synced(4, "n", 4, P),
        delivered(5, "n", ord("a")),
    ]),
    ("delivered after commit", "what was not committed comes again", [
        synced(1, "m", 3, P), delivered(2, "m", 5), synced(4, "n", 4, P), delivered(5, "n", 5),
    ]),
    ("delivered after commit", "the commit was refused, or came after the assignment", [
        synced(1, "m", 3, P), commit(2, "a", outcome=REFUSED), synced(4, "n", 4, P),
        commit(5, "b", member="n", generation=4), delivered(6, "n", 5),
    ]),
    ("delivered after commit", "another commit may have set the group back", [
        commit(2, "b"), commit(3, "a", outcome=UNKNOWN), synced(4, "n", 4, P), delivered(5, "n", 5),
    ]),
    ("delivered after commit", "the group was deleted", [
        commit(2, "b"), deleted(3), synced(4, "n", 1, P), delivered(5, "n", 5),
    ]),
    ("owned twice", "given after the release was sent", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, 3), beat(6, "m", 3, None, owned=(), error="lost"),
        beat(8, "n", 0, 4, P), beat(10, "m", 3, 4, unchanged=True),
    ]),
    ("owned twice", "the last owner was removed, and does not know it", [
        beat(2, "m", 0, 3, P), beat(4, "n", 0, 4, P),
        beat(6, "m", 3, None, error="UNKNOWN_MEMBER_ID"), beat(8, "m", 0, 5),
    ]),
    ("owned twice", "a coordinator that does not know that it is deposed", [
        beat(2, "m", 0, 3, P), beat(4, "n", 0, 4, P), beat(6, "m", 3, 3, deposed=True, owned=(P,)),
    ]),
    ("owned twice", "a partition comes back", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, 3), beat(6, "m", 3, 4, owned=()),
        beat(8, "n", 0, 4, P), beat(10, "n", -1, -1), beat(12, "m", 4, 5, P),
        beat(14, "m", 5, 5, unchanged=True, owned=(P,)),
    ]),
    ("fenced commit", "in its own epoch, and in an older one since which it has the partition", [
        beat(2, "m", 0, 3, P), commit(4, "a", member="m", generation=3),
        beat(6, "m", 3, 4, unchanged=True), commit(8, "b", member="m", generation=3),
    ]),
    ("fenced commit", "what it was given and has not taken up is its own", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, 4, unchanged=True, owned=()),
        commit(6, "a", member="m", generation=3),
    ]),
    ("member epoch denied", "forward, and a new group of that name", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, 4, unchanged=True), deleted(6), beat(8, "m", 0, 1),
    ]),
    ("member epoch denied", "fenced after two answers were lost", [
        beat(2, "m", 0, 3, P), beat(4, "m", 3, None, error="no answer"),
        beat(6, "m", 3, None, error="no answer"),
        beat(8, "m", 3, None, error="FENCED_MEMBER_EPOCH"),
    ]),
    ("unanswered", "no request", []),
]  # fmt: skip


def parameters(cases: list[Case]) -> list[object]:
    return [pytest.param(check, history, id=f"{check}: {why}") for check, why, history in cases]


@pytest.mark.parametrize(("check", "history"), parameters(CONDEMNED))
def test_a_lie_is_condemned_by_its_check_alone(check: str, history: list[GroupOperation]) -> None:
    assert {anomaly.name for anomaly in judge_groups(history)} == {check}


@pytest.mark.parametrize(("check", "history"), parameters(FORGIVEN))
def test_an_innocent_history_is_forgiven_by_every_check(
    check: str, history: list[GroupOperation]
) -> None:
    assert judge_groups(history) == []


def test_every_kind_of_anomaly_has_both_a_lie_and_an_innocent_twin() -> None:
    condemned = {check for check, *_ in CONDEMNED}
    assert condemned == {check for check, *_ in FORGIVEN}
    # Commits and deletions are one check; owners and fenced commits have one for each protocol.
    assert len(condemned) == len(GROUP_CHECKS) + 1 - 2
