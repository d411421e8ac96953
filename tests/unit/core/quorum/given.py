"""A log in memory that forgets what was not synced, and a machine over it."""

from __future__ import annotations

from random import Random

from tidelog.core.model.errors import ErrorCode
from tidelog.core.quorum.machine import Quorum
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.values import (
    ElectionState,
    LogPosition,
    Ready,
    Timing,
    VoteAnswer,
    VoteCall,
)

TIMING = Timing()
THREE = (1, 2, 3)


class MemoryLog:
    """Entries are (quorum epoch, value); the first `synced` of them are durable."""

    def __init__(self, *entries: tuple[int, str]) -> None:
        self.entries = list(entries)
        self.synced_end_offset = len(entries)
        self.log_start_offset = 0

    @property
    def position(self) -> LogPosition:
        newest = self.entries[-1][0] if self.entries else 0
        return LogPosition(newest, len(self.entries))

    def end_of(self, quorum_epoch: int) -> LogPosition | None:
        if not self.entries or quorum_epoch > self.entries[-1][0]:
            return None
        if quorum_epoch < self.entries[0][0]:
            return LogPosition(quorum_epoch, 0)
        ends = [at + 1 for at, entry in enumerate(self.entries) if entry[0] <= quorum_epoch]
        return LogPosition(self.entries[ends[-1] - 1][0], ends[-1])

    def append(self, quorum_epoch: int, value: str) -> None:
        self.entries.append((quorum_epoch, value))

    def sync(self) -> None:
        self.synced_end_offset = len(self.entries)

    def cut(self, end_offset: int) -> None:
        del self.entries[end_offset:]
        self.synced_end_offset = min(self.synced_end_offset, end_offset)


def quorum(
    node_id: int = 1,
    *,
    voters: tuple[int, ...] = THREE,
    log: MemoryLog | None = None,
    stored: ElectionState | None = None,
    now_ms: int = 0,
) -> Quorum:
    """A machine that has started."""
    machine = Quorum(
        node_id=node_id,
        voters=voters,
        log=log or MemoryLog(),
        timing=TIMING,
        random=Random(7),
        stored=stored,
    )
    machine.on_start(now_ms)
    machine.check()
    return machine


def granted(machine: Quorum, voter: int, now_ms: int = 0, *, is_granted: bool = True) -> Ready:
    """The voter answers the call that the machine has for it now."""
    call = machine.request_for(voter, now_ms)
    assert isinstance(call, VoteCall), call
    answer = VoteAnswer(
        error=ErrorCode.NONE,
        quorum_epoch=call.quorum_epoch,
        leader_id=None,
        is_granted=is_granted,
    )
    ready = machine.on_vote_answer(voter, call, answer, now_ms)
    machine.check()
    return ready


def leader(log: MemoryLog, *, voters: tuple[int, ...] = THREE, now_ms: int = 0) -> Quorum:
    """Node 1, elected by node 2, with the first record of its epoch appended."""
    machine = quorum(1, voters=voters, log=log, now_ms=now_ms)
    assert machine.deadline_ms is not None
    machine.on_tick(machine.deadline_ms)
    for _ in range(2):
        for voter in voters[1 : len(voters) // 2 + 1]:
            granted(machine, voter, now_ms)
    assert machine.role is Role.LEADER
    log.append(machine.quorum_epoch, "leader change")
    return machine


def follower(
    node_id: int = 2,
    *,
    leader_id: int = 1,
    quorum_epoch: int = 3,
    log: MemoryLog | None = None,
    has_fetched: bool = True,
    now_ms: int = 0,
) -> Quorum:
    machine = quorum(node_id, log=log, now_ms=now_ms)
    machine.on_begin_epoch(leader_id, quorum_epoch, now_ms)
    if has_fetched:
        machine.on_fetch_answer(
            leader_id,
            ErrorCode.NONE,
            leader_id=leader_id,
            quorum_epoch=quorum_epoch,
            now_ms=now_ms,
        )
    assert machine.role is Role.FOLLOWER
    machine.check()
    return machine


def call(
    candidate_id: int,
    quorum_epoch: int,
    *,
    pre: bool = False,
    position: LogPosition = LogPosition(0, 0),  # noqa: B008 an immutable value
) -> VoteCall:
    return VoteCall(
        candidate_id=candidate_id, quorum_epoch=quorum_epoch, position=position, is_pre_vote=pre
    )
