"""The metadata quorum in trouble: controllers die in mid-sentence, or lose majority or power."""

from __future__ import annotations

from collections import Counter

from tidelog.core.wire.record_batch import batches
from tidelog.lab.audit import CLEAN
from tidelog.lab.evidence import segments
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import ok
from tidelog.lab.story import story

CONTROLLERS = (4, 5, 6)


@story("X-14")
def a_controller_dies_before_a_majority_has_its_decision(lab: Lab) -> None:
    """It has written that 1 is fenced and 2 leads, nobody has read it; another one takes over."""
    active, others = _begin(lab)
    lab.withhold(active, *others, 1, 2, 3, purpose="quorum")
    lab.kill(1)
    lab.listen_to(2)
    lab.pass_ms(200)
    lab.step("X-14", "the decision is on the disk of the active controller, and nowhere else")
    written = {node: _metadata_end(lab, node) for node in CONTROLLERS}
    lab.true(
        "it has more than both others", all(written[active] > written[each] for each in others)
    )
    lab.same("as 2 knows it, 1 leads", lab.desc(via=2).leader, 1)
    lab.kill(active)
    lab.let_pass(active, *others, 1, 2, 3, purpose="quorum")
    lab.until("another controller", lambda: lab.quorum().leader_id in others)
    lab.until_led(2)
    lab.step("X-14", "the new controller finishes the election; 2 leads")
    lab.same("leader, ISR", (lab.desc().leader, lab.desc().isr), (2, (2, 3)))
    lab.same("a write", lab.writer("writer").write("after"), ok(10))
    lab.start(active, 1)
    lab.until_isr(1, 2, 3)
    lab.step("X-14", "no leader epoch had two leaders")
    lab.same("leader epochs with two", _double_leaders(lab), [])
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-15")
def the_controllers_have_no_majority(lab: Lab) -> None:
    """Two of three controllers are gone: leaders serve on, but nothing can be decided."""
    _begin(lab)
    writer = lab.writer("writer", idempotent=True)
    lab.kill(5, 6)
    lab.listen_to(2)
    lab.step("X-15", "existing leaders serve as before")
    lab.same("acks=all", writer.write("one"), ok(10))
    lab.pass_ms(10_000)
    lab.same("acks=all, longer than any session later", writer.write("two"), ok(11))
    lab.kill(3)
    stalled = writer.begin("three")
    lab.pass_ms(20_000)
    lab.step("X-15", "a follower dies: the ISR cannot shrink, acks=all stalls, nobody is elected")
    lab.same("the answer", stalled.answer, None)
    state = lab.desc()
    lab.same("leader, epoch, ISR", (state.leader, state.leader_epoch, state.isr), (1, 0, (1, 2, 3)))

    lab.start(5, 6)
    lab.until("a controller", lambda: lab.quorum().leader_id in CONTROLLERS)
    lab.until_isr(1, 2)
    lab.step("X-15", "the majority is back: the ISR shrinks, and the write is acknowledged")
    lab.same("the answer", writer.wait(stalled), ok(12))
    lab.start(3)
    lab.until_isr(1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-44")
def a_voter_loses_its_power_around_its_vote(lab: Lab) -> None:
    """Whenever the power fails around a vote: no quorum epoch ever has two leaders."""
    active, _ = _begin(lab)
    for moment_ms in (0, 1, 2, 3, 5, 8):
        voter = next(node for node in CONTROLLERS if node != active)
        lab.kill(active)
        lab.pass_ms(moment_ms)
        lab.lose_power(voter, keeps="chance")
        lab.start(voter)
        lab.until("a controller", lambda: lab.quorum().leader_id in CONTROLLERS)
        lab.start(active)
        lab.until_unfenced(1, 2, 3)
        active = lab.quorum().leader_id
    leaders = Counter(
        (each.fields["quorum_epoch"], node)
        for node in CONTROLLERS
        for each in lab.happenings(node, "RoleChanged")
        if str(each.fields["role"]).upper().endswith("LEADER")
    )
    epochs = Counter(quorum_epoch for quorum_epoch, _ in leaders)
    lab.step("X-44", "every quorum epoch had one leader at most")
    lab.same("epochs with two", [each for each, count in epochs.items() if count > 1], [])
    lab.true("there were several elections", len(epochs) >= 3)
    lab.same("a write", lab.writer("writer").write("after"), ok(10))


def _begin(lab: Lab) -> tuple[int, tuple[int, ...]]:
    """Three brokers, three controllers, ten records; who is active, and who is not."""
    lab.cluster(controllers=CONTROLLERS, profile="tidelog")
    lab.create("orders", (1, 2, 3), min_insync_replicas="2")
    lab.fill(10)
    lab.until_quiet()
    active = lab.quorum().leader_id
    return active, tuple(node for node in CONTROLLERS if node != active)


def _metadata_end(lab: Lab, node: int) -> int:
    """Where the metadata log on a node's disk ends."""
    files = lab.engine.log_files(node, "__cluster_metadata", 0)
    return max((header.end_offset for _, header in batches(segments(files))), default=0)


def _double_leaders(lab: Lab) -> list[int]:
    """Leader epochs in which two brokers believed to lead the story's partition."""
    leaders = {
        (each.fields["leader_epoch"], node)
        for node in (1, 2, 3)
        for each in lab.happenings(node, "BecameLeader")
    }
    counts = Counter(leader_epoch for leader_epoch, _ in leaders)
    return [leader_epoch for leader_epoch, count in counts.items() if count > 1]
