"""A little world for the machine alone: lost and reordered messages, crashes, forgetful disks.

It plays the shell in the simplest way and watches: one leader per epoch, one vote per voter and
epoch, committed records that never change, and leaders that have all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from tests.unit.core.quorum.given import MemoryLog
from tidelog.core.model.errors import ErrorCode
from tidelog.core.quorum.divergence import Diverged, cut_point, judge_fetch
from tidelog.core.quorum.machine import Quorum
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.values import (
    BeginEpoch,
    ElectionState,
    EndEpoch,
    LogPosition,
    Ready,
    Timing,
    VoteCall,
)

TIMING = Timing(election_timeout_ms=200, fetch_timeout_ms=400, election_backoff_max_ms=200)
Deliver = Callable[[], None]


class Voter:
    """One node: what its disk holds, and a machine while it runs."""

    def __init__(self, world: Model, node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.log = MemoryLog()
        self.stored: ElectionState | None = None
        self.machine: Quorum | None = None
        self.committed = 0

    def start(self) -> None:
        self.committed = 0
        self.machine = Quorum(
            node_id=self.node_id,
            voters=self.world.voters,
            log=self.log,
            timing=TIMING,
            random=Random(self.world.random.random()),
            stored=self.stored,
        )
        self.carry_out(self.machine.on_start(self.world.now_ms))

    def crash(self, *, loses_power: bool) -> None:
        self.machine = None
        if loses_power:
            kept = self.world.random.randint(self.log.synced_end_offset, len(self.log.entries))
            self.log.cut(kept)
        self.log.sync()  # what a disk still has after a crash stays there

    def carry_out(self, ready: Ready) -> None:
        machine = self.machine
        assert machine is not None
        if ready.store is not None:
            self.stored = ready.store
            self.world.saw_vote(self.node_id, ready.store)
        for change in ready.changes:
            if change.role is Role.LEADER:
                self.world.saw_leader(self, change.quorum_epoch)
                self.log.append(change.quorum_epoch, f"leader {self.node_id}")
        if ready.high_watermark is not None:
            assert ready.high_watermark >= self.committed, "it goes back"
            self.committed = ready.high_watermark
            self.world.saw_committed(self.log, ready.high_watermark)
        machine.check()

    def sync(self) -> None:
        self.log.sync()
        if self.machine is not None:
            self.carry_out(self.machine.on_synced(self.world.now_ms))

    def poll(self) -> None:
        """Send what is wished for."""
        machine, world = self.machine, self.world
        if machine is None:
            return
        self.carry_out(machine.on_tick(world.now_ms))
        for voter in machine.others:
            wish = machine.request_for(voter, world.now_ms)
            if wish is not None:
                world.send(self.node_id, voter, partial(self._ask, voter, wish))
        if machine.wants_fetch:
            target = machine.leader_id or world.random.choice(machine.others)
            if target != self.node_id and self.log.synced_end_offset == len(self.log.entries):
                asked, quorum_epoch = self.log.position, machine.quorum_epoch
                world.send(self.node_id, target, lambda: self._fetch(target, asked, quorum_epoch))

    # A message arrives at `target`; its answer travels back.

    def _ask(self, target: int, wish: VoteCall | BeginEpoch | EndEpoch) -> None:
        other = self.world.nodes[target]
        machine, now_ms = other.machine, self.world.now_ms
        assert machine is not None
        if isinstance(wish, VoteCall):
            ready = machine.on_vote_call(wish, now_ms)
            other.carry_out(ready)
            answer = ready.reply
            assert answer is not None
            back = lambda m: m.on_vote_answer(target, wish, answer, self.world.now_ms)  # noqa: E731
        elif isinstance(wish, BeginEpoch):
            if wish.quorum_epoch >= machine.quorum_epoch:
                other.carry_out(machine.on_begin_epoch(wish.leader_id, wish.quorum_epoch, now_ms))
            told = (machine.leader_id, machine.quorum_epoch)
            back = lambda m: m.on_begin_answer(target, *told, self.world.now_ms)  # noqa: E731
        else:
            if wish.quorum_epoch >= machine.quorum_epoch:
                other.carry_out(
                    machine.on_end_epoch(wish.leader_id, wish.quorum_epoch, wish.preferred, now_ms)
                )
            told = (machine.leader_id, machine.quorum_epoch)
            back = lambda m: m.on_end_answer(target, *told, self.world.now_ms)  # noqa: E731
        self._answer(target, back)

    def _answer(self, source: int, back: Callable[[Quorum], Ready]) -> None:
        """An answer reaches only the life that asked."""
        asker = self.machine

        def arrive() -> None:
            if self.machine is asker and asker is not None:
                self.carry_out(back(asker))

        self.world.send(source, self.node_id, arrive)

    def _fetch(self, target: int, asked: LogPosition, quorum_epoch: int) -> None:
        other = self.world.nodes[target]
        machine = other.machine
        assert machine is not None
        error, verdict, records = ErrorCode.NONE, None, []
        if quorum_epoch != machine.quorum_epoch or not machine.is_leader:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            verdict = judge_fetch(asked, other.log, oldest_snapshot=None, newest_snapshot=None)
            if verdict is None:
                other.carry_out(machine.on_fetch(self.node_id, asked.end_offset, self.world.now_ms))
                records = other.log.entries[asked.end_offset :]
        told = (machine.leader_id, machine.quorum_epoch, machine.published_high_watermark)

        def back(mine: Quorum) -> Ready:
            leader_id, quorum_epoch, high_watermark = told
            self.carry_out(
                mine.on_fetch_answer(
                    target, error, leader_id=leader_id, quorum_epoch=quorum_epoch,
                    now_ms=self.world.now_ms,
                )
            )  # fmt: skip
            is_stale = self.log.position != asked
            if error or is_stale or not mine.is_from_leader(target, quorum_epoch):
                return Ready()
            if isinstance(verdict, Diverged):
                self.log.cut(cut_point(verdict.at, self.log))
                assert len(self.log.entries) >= self.committed, "a committed record was cut"
                return Ready()
            self.log.entries += records
            return mine.on_leader_high_watermark(high_watermark or 0)

        self._answer(target, back)


class Model:
    """Steps at random; then heals, and must come to rest with equal logs."""

    def __init__(self, seed: int, voters_count: int, *, loses_power: bool = True) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.voters = tuple(range(1, voters_count + 1))
        self.nodes = {node_id: Voter(self, node_id) for node_id in self.voters}
        self.messages: list[tuple[int, int, Deliver]] = []
        self.committed: list[tuple[int, str]] = []
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], int] = {}
        self.loses_power = loses_power
        self.cut: set[int] = set()
        self.written = 0

    def send(self, source: int, target: int, deliver: Deliver) -> None:
        if source not in self.cut and target not in self.cut:
            self.messages.append((source, target, deliver))

    def deliver(self, at: int) -> None:
        _, target, deliver = self.messages.pop(at)
        if self.nodes[target].machine is not None and target not in self.cut:
            deliver()

    # What must hold

    def saw_leader(self, node: Voter, quorum_epoch: int) -> None:
        assert self.leaders.setdefault(quorum_epoch, node.node_id) == node.node_id, "two leaders"
        assert node.log.entries[: len(self.committed)] == self.committed, "an incomplete leader"

    def saw_vote(self, voter: int, state: ElectionState) -> None:
        if state.voted_for is not None:
            key = (voter, state.quorum_epoch)
            assert self.votes.setdefault(key, state.voted_for) == state.voted_for, "voted twice"

    def saw_committed(self, log: MemoryLog, high_watermark: int) -> None:
        known = min(high_watermark, len(self.committed))
        assert log.entries[:known] == self.committed[:known], "committed records differ"
        self.committed += log.entries[known:high_watermark]

    # Chaos, then peace

    def step(self) -> None:
        chance = self.random.random()
        node = self.nodes[self.random.choice(self.voters)]
        if chance < 0.55 and self.messages:
            self.deliver(self.random.randrange(len(self.messages)))
        elif chance < 0.62 and self.messages:
            self.messages.pop(self.random.randrange(len(self.messages)))
        elif chance < 0.82:
            self.now_ms += self.random.choice((0, 1, 10, 60))
            node.poll()
        elif chance < 0.92:
            node.sync()
        elif chance < 0.97:
            self.write(node)
        elif chance < 0.98:
            self.cut = {node.node_id} if self.random.random() < 0.5 else set()
        elif node.machine is None:
            node.start()
        elif chance > 0.988:
            node.crash(loses_power=self.loses_power)

    def write(self, node: Voter) -> None:
        if node.machine is not None and node.machine.is_leader:
            self.written += 1
            node.log.append(node.machine.quorum_epoch, f"w{self.written}")

    def heal(self) -> None:
        self.cut = set()
        for node in self.nodes.values():
            if node.machine is None:
                node.start()

    def run_quietly(self, ms: int) -> None:
        until_ms = self.now_ms + ms
        while self.now_ms < until_ms:
            self.now_ms += 5
            for node in self.nodes.values():
                node.poll()
                while self.messages:
                    self.deliver(0)
                node.sync()

    def has_come_to_rest(self) -> bool:
        ends = {tuple(node.log.entries) for node in self.nodes.values()}
        return len(ends) == 1 and {n.committed for n in self.nodes.values()} == {
            len(self.committed)
        }
