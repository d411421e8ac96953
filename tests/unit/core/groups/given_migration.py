"""A coordinator partition whose groups have members of both protocols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.unit.core.groups.given import Caller
from tests.unit.core.groups.given_consumers import GROUP, ConsumersUnderTest, KnownTopics
from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.classic_join import Joiner
from tidelog.core.groups.classic_member import GroupProtocol
from tidelog.core.groups.consumer_protocol import read_assignment, write_assignment
from tidelog.core.groups.consumer_records import PartitionKey
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest
from tidelog.core.wire.messages.api_13_leave_group import LeaveGroupRequest, LeaveGroupRequestMember
from tidelog.core.wire.messages.api_14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

SESSION_MS, REBALANCE_MS = 15_000, 60_000
EAGER, COOPERATIVE = 0, 1
"""Versions of what classic members write: the first one has no partitions."""


def subscription(topics: Iterable[str], owned: dict[str, list[int]], *, version: int) -> bytes:
    """As a consumer writes it, without user data."""
    names = sorted(topics)
    content = version.to_bytes(2, "big") + len(names).to_bytes(4, "big")
    for name in names:
        content += len(name).to_bytes(2, "big") + name.encode()
    content += b"\xff\xff\xff\xff"
    if version >= COOPERATIVE:  # the same layout as that of an assignment, without its ends
        content += write_assignment(owned, version=0)[2:-4]
    return content


def assigned(topics: KnownTopics, content: bytes) -> set[PartitionKey]:
    """What an assignment gives."""
    keys = set()
    for name, indexes in read_assignment(content).partitions:
        topic_id = topics.topic_id(name)
        assert topic_id is not None
        keys |= {(topic_id, index) for index in indexes}
    return keys


class BothKindsUnderTest(ConsumersUnderTest):
    """Answers go to callers: a join may wait."""

    def take(self, outcome: Outcome) -> list[Any]:
        self.apply(outcome.records)
        self.shard.check()
        rest = []
        for reply_to, answer in outcome.replies:
            caller: object = reply_to
            if isinstance(caller, Caller):
                caller.answers.append(answer)
            else:
                rest.append(answer)
        return rest

    def classic(self) -> ClassicGroup:
        group = self.shard.classic.get(GROUP)
        assert group is not None, "the group is not a classic one"
        return group

    def join(
        self,
        member_id: str = "",
        *metadata: bytes,
        names: tuple[str, ...] = ("range",),
        instance: str | None = None,
        protocol_type: str = "consumer",
        version: int = 3,
    ) -> Caller:
        caller = Caller()
        given = metadata or (subscription(["t"], {}, version=EAGER),)
        joiner = Joiner(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=instance,
            client_id="client",
            client_host="/127.0.0.1",
            version=version,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type=protocol_type,
            protocols=tuple(GroupProtocol(name, given[0]) for name in names),
        )
        self.take(self.shard.join(joiner, ReplyTo(caller), self.now_ms))
        return caller

    def sync(
        self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **f: Any
    ) -> Caller:
        caller = Caller()
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=to, assignment=content)
                for to, content in (assignments or {}).items()
            ],
            **f,
        )
        self.take(self.shard.sync(request, ReplyTo(caller), self.now_ms))
        return caller

    def classic_beat(self, member_id: str, generation: int, instance: str | None = None) -> int:
        caller = Caller()
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        self.take(self.shard.heartbeat(request, ReplyTo(caller), self.now_ms))
        return caller.error

    def remove(self, *member_ids: str) -> list[int]:
        """LeaveGroup; the code of each."""
        caller = Caller()
        members = [LeaveGroupRequestMember(member_id=each) for each in member_ids]
        request = LeaveGroupRequest(group_id=GROUP, members=members)
        self.take(self.shard.leave(request, ReplyTo(caller), self.now_ms))
        return [member.error_code for member in caller.answer.members]

    def successor(self) -> BothKindsUnderTest:
        return BothKindsUnderTest(self.topics, self.log, now_ms=self.now_ms, **self.given)


@dataclass
class ClassicClient:
    """A consumer of the classic protocol; an eager one gives back everything before it joins."""

    world: BothKindsUnderTest
    version: int = EAGER
    instance: str | None = None
    topics: tuple[str, ...] = ("t",)
    member_id: str = ""
    generation: int = -1
    owned: set[PartitionKey] = field(default_factory=set)
    waits: Caller | None = None
    """A join or a sync without an answer yet."""
    rejoins: bool = True

    def step(self) -> None:
        """Do the next thing: take an answer, or join, or send a heartbeat."""
        if self.waits is not None:
            if not self.waits.waits:
                caller, self.waits = self.waits, None
                self._answered(caller.answer)
        elif self.rejoins:
            self._join()
        else:
            self._note(self.world.classic_beat(self.member_id, self.generation, self.instance))

    def _join(self) -> None:
        if self.version == EAGER:
            self.owned.clear()
        named: dict[str, list[int]] = {}
        for topic_id, index in sorted(self.owned):
            name = self.world.topics.name(topic_id)
            if name is not None:
                named.setdefault(name, []).append(index)
        metadata = subscription(self.topics, named, version=self.version)
        self.waits = self.world.join(self.member_id, metadata, instance=self.instance, version=5)

    def _answered(self, answer: Any) -> None:
        if answer.error_code:
            self.member_id = getattr(answer, "member_id", "") or self.member_id
            self._note(answer.error_code)
        elif hasattr(answer, "generation_id"):
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.rejoins = False
            shares = self._assign(answer) if answer.leader == self.member_id else {}
            self.waits = self.world.sync(
                self.member_id, self.generation, shares, group_instance_id=self.instance
            )
        else:
            before, self.owned = self.owned, assigned(self.world.topics, answer.assignment)
            # A cooperative member that gives something back joins again at once.
            self.rejoins = self.version != EAGER and bool(before - self.owned)

    def _assign(self, answer: Any) -> dict[str, bytes]:
        """In turn, all of the topic: members of a classic group are eager here."""
        ids = sorted(member.member_id for member in answer.members)
        shares: dict[str, list[int]] = {member_id: [] for member_id in ids}
        for index in range(self.world.topics.partitions_count("t")):
            shares[ids[index % len(ids)]].append(index)
        return {to: write_assignment({"t": share}, version=0) for to, share in shares.items()}

    def _note(self, error: int) -> None:
        if error == ErrorCode.NONE:
            return
        self.rejoins = True
        if error not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED):
            self.owned.clear()
            if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.member_id = ""


def classic_group(version: int = EAGER, count: int = 1, **settings: Any) -> list[ClassicClient]:
    """A stable classic group of so many members, which have everything."""
    world = BothKindsUnderTest(KnownTopics(t=4), **settings)
    clients = [ClassicClient(world, version) for _ in range(count)]
    settle_all(*clients)
    assert world.classic().state is ClassicState.STABLE
    return clients


def settle_all(*clients: Any, rounds: int = 12) -> None:
    """Everybody goes on until nothing should change any more."""
    for _ in range(rounds):
        for client in clients:
            client.step() if isinstance(client, ClassicClient) else client.beat()
            client.world.pass_time(500)
