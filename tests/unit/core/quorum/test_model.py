"""Many random histories of three and five machines: safe all the time, and alive once healed."""

from __future__ import annotations

import pytest

from tests.unit.core.quorum.given import MemoryLog
from tests.unit.core.quorum.model import TIMING, Model, Voter
from tidelog.core.quorum.leader_term import LeaderTerm
from tidelog.core.quorum.machine import Quorum
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.values import ElectionState, Ready, VoteCall

STEPS = 2_500


def history(seed: int, voters_count: int) -> Model:
    model = Model(seed, voters_count)
    for node in model.nodes.values():
        node.start()
    for _ in range(STEPS):
        model.step()
    return model


@pytest.mark.parametrize("voters_count", [3, 5])
@pytest.mark.parametrize("seed", range(25))
def test_random_histories_are_safe_and_end_well(seed: int, voters_count: int) -> None:
    model = history(seed, voters_count)

    model.heal()
    model.run_quietly(3_000)

    leaders = [n for n in model.nodes.values() if n.machine is not None and n.machine.is_leader]
    assert len(leaders) == 1
    before = len(model.committed)
    model.write(leaders[0])
    model.run_quietly(200)
    assert len(model.committed) > before
    assert model.has_come_to_rest()


def test_the_histories_are_worth_something() -> None:
    """Elections, commits and lost tails do happen in them."""
    models = [history(seed, 3) for seed in range(10)]

    assert sum(len(model.leaders) for model in models) > 30
    assert sum(len(model.committed) for model in models) > 100
    assert any(model.written > len(model.committed) for model in models)


def fails(seeds: range, voters_count: int = 3) -> bool:
    for seed in seeds:
        try:
            model = history(seed, voters_count)
            model.heal()
            model.run_quietly(1_000)
        except AssertionError:
            return True
    return False


def test_the_model_notices_a_forgotten_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Voter.start

    def forgetful(self: Voter) -> None:
        if self.stored is not None:
            self.stored = ElectionState(self.stored.quorum_epoch, self.stored.leader_id, None)
        start(self)

    monkeypatch.setattr(Voter, "start", forgetful)
    assert fails(range(200))


def test_the_model_notices_votes_for_any_log(monkeypatch: pytest.MonkeyPatch) -> None:
    on_vote_call = Quorum.on_vote_call

    def generous(self: Quorum, call: VoteCall, now_ms: int) -> Ready:
        log, self._log = self._log, MemoryLog()
        try:
            return on_vote_call(self, call, now_ms)
        finally:
            self._log = log

    monkeypatch.setattr(Quorum, "on_vote_call", generous)
    assert fails(range(200))


def test_the_model_notices_a_leader_that_leads_on_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_start = Quorum.on_start

    def stubborn(self: Quorum, now_ms: int) -> Ready:
        ready = on_start(self, now_ms)
        if self.role is Role.RESIGNED:
            self.role = Role.LEADER
            self.leadership = LeaderTerm(
                node_id=self.node_id,
                voters=self.voters,
                epoch_start_offset=self._log.position.end_offset,
                granted_by=(),
                timing=TIMING,
                now_ms=now_ms,
            )
        return ready

    monkeypatch.setattr(Quorum, "on_start", stubborn)
    assert fails(range(200))


def test_the_model_notices_acknowledgements_of_what_is_not_synced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        MemoryLog,
        "synced_end_offset",
        property(lambda self: len(self.entries), lambda self, _: None),
        raising=False,
    )

    def crash(self: Voter, *, loses_power: bool) -> None:
        self.machine = None
        self.log.cut(self.world.random.randint(0, len(self.log.entries)))

    monkeypatch.setattr(Voter, "crash", crash)
    assert fails(range(100))
