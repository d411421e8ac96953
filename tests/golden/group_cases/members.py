"""The usual requests of a group's members in few words. Each case has a group of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.golden.talk import Talk

NOT_READY = (14, 15, 16)
REBALANCE_IN_PROGRESS = 27
QUIET_JOIN, QUIET_STATIC_JOIN, QUIET_SYNC, QUIET_HEARTBEAT = 3, 8, 3, 3


def subscription(topic: str) -> bytes:
    """What a consumer says about itself. Kafka never answers a join with anything else: it stumbles
    over it when the generation begins."""
    name = topic.encode()
    return b"\0\0" + b"\0\0\0\1" + len(name).to_bytes(2, "big") + name + b"\xff\xff\xff\xff"


RANGE = {"name": "range", "metadata": subscription("a")}
ROUND_ROBIN = {"name": "roundrobin", "metadata": subscription("b")}


@dataclass(frozen=True, slots=True)
class Member:
    """Who a member is, and in which generation."""

    id: str
    generation: int
    instance: str | None = None


def ready(talk: Talk) -> str:
    """The id of this case's group, once a coordinator has it."""
    group = talk.name("g")

    def found() -> bool:
        answer = talk.quietly("FindCoordinator", 4, coordinator_keys=[group])
        return bool(answer["coordinators"][0]["error_code"] == 0)

    def active() -> bool:
        return quiet_heartbeat(talk, group, Member("nobody", 0)) not in NOT_READY

    found()
    talk.wait_for(found, "a coordinator")
    talk.wait_for(active, "a coordinator that has loaded")
    return group


def joining(group: str, member_id: str = "", **fields: Any) -> dict[str, Any]:
    """The fields of a JoinGroup."""
    return {
        "group_id": group,
        "session_timeout_ms": 60_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [RANGE],
        **fields,
    }


def join(talk: Talk, version: int, group: str, member_id: str = "", **fields: Any) -> Any:
    """JoinGroup of a member of consumers."""
    on = fields.pop("on", 1)
    return talk.ask("JoinGroup", version, on=on, **joining(group, member_id, **fields))


def sync(
    talk: Talk,
    version: int,
    group: str,
    member: Member,
    assignments: dict[str, bytes] | None = None,
    **fields: Any,
) -> Any:
    """SyncGroup; from version 5 on it names the protocol."""
    return talk.ask("SyncGroup", version, **syncing(version, group, member, assignments, **fields))


def syncing(
    version: int,
    group: str,
    member: Member,
    assignments: dict[str, bytes] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    named = {"group_instance_id": member.instance} if member.instance else {}
    return {
        "group_id": group,
        "generation_id": member.generation,
        "member_id": member.id,
        "assignments": [
            {"member_id": to, "assignment": content} for to, content in (assignments or {}).items()
        ],
        **named,
        **protocol,
        **fields,
    }


def heartbeat(talk: Talk, version: int, group: str, member: Member, **fields: Any) -> Any:
    named = {"group_instance_id": member.instance} if member.instance else {}
    return talk.ask(
        "Heartbeat",
        version,
        **{
            "group_id": group,
            "generation_id": member.generation,
            "member_id": member.id,
            **named,
            **fields,
        },
    )


def leave(talk: Talk, version: int, group: str, *members: dict[str, Any]) -> Any:
    """LeaveGroup: of one member below version 3."""
    if version < 3:
        return talk.ask("LeaveGroup", version, group_id=group, member_id=members[0]["member_id"])
    return talk.ask("LeaveGroup", version, group_id=group, members=list(members))


def describe(talk: Talk, group: str, version: int = 6) -> Any:
    """How the group stands, as one more step of a case."""
    return talk.ask("DescribeGroups", version, groups=[group])


# Preparations: not recorded


def wait_until_known(talk: Talk, group: str) -> None:
    """Until the group is committed: Kafka's refusals do not wait for that, its descriptions do."""

    def known() -> bool:
        answer = talk.quietly("DescribeGroups", 6, groups=[group])
        return bool(answer["groups"][0]["error_code"] == 0)

    talk.wait_for(known, "the group")


def quiet_join(
    talk: Talk, group: str, member_id: str = "", *, instance: str | None = None, **fields: Any
) -> Member:
    """A member of the group's next generation; nobody else may be in it."""
    version = QUIET_JOIN if instance is None else QUIET_STATIC_JOIN
    named = {} if instance is None else {"group_instance_id": instance}
    answer = talk.quietly("JoinGroup", version, **joining(group, member_id, **named, **fields))
    assert answer["error_code"] == 0, answer
    talk.learn_member(answer["member_id"])
    return Member(answer["member_id"], answer["generation_id"], instance)


def stable(talk: Talk, group: str, *, instance: str | None = None, **fields: Any) -> Member:
    """A stable group with one member."""
    member = quiet_join(talk, group, instance=instance, **fields)
    quiet_sync(talk, group, member, {member.id: b"all"})
    return member


def quiet_sync(
    talk: Talk, group: str, member: Member, assignments: dict[str, bytes] | None = None
) -> None:
    answer = talk.quietly(
        "SyncGroup", QUIET_SYNC, **syncing(QUIET_SYNC, group, member, assignments)
    )
    assert answer["error_code"] == 0, answer


def quiet_heartbeat(talk: Talk, group: str, member: Member) -> int:
    code: int = talk.quietly(
        "Heartbeat",
        QUIET_HEARTBEAT,
        group_id=group,
        generation_id=member.generation,
        member_id=member.id,
        group_instance_id=member.instance,
    )["error_code"]
    return code


def begin_rebalance(
    talk: Talk, group: str, member: Member, *, version: int = QUIET_JOIN, **fields: Any
) -> Callable[[], Any]:
    """A second member joins, and waits for the first; calling what comes back gives its answer."""
    finish = talk.start("JoinGroup", version, on="newcomer", **joining(group, **fields))

    def is_rebalancing() -> bool:
        return quiet_heartbeat(talk, group, member) == REBALANCE_IN_PROGRESS

    talk.wait_for(is_rebalancing, "a rebalance")
    return finish


def completed_pair(talk: Talk, group: str) -> tuple[Member, Member]:
    """Leader and follower of a generation whose assignment is not there yet."""
    first = stable(talk, group)
    joined = begin_rebalance(talk, group, first)
    leader = quiet_join(talk, group, first.id)
    follower = joined()
    talk.steps.clear()
    return leader, Member(follower["member_id"], follower["generation_id"])


def stable_pair(talk: Talk, group: str) -> tuple[Member, Member]:
    """Leader and follower of a stable group."""
    leader, follower = completed_pair(talk, group)
    quiet_sync(talk, group, leader, {leader.id: b"half", follower.id: b"other half"})
    quiet_sync(talk, group, follower)
    return leader, follower
