"""Document 3, the timeline: from the death of broker 1 in leader epoch 5 to broker 2 in epoch 6.

Heartbeats every 3 s, a session of 6 s: the profile `documents`. The controller is a node by itself,
as the document has it, and a quorum of one (N15).
"""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import AT_RISK, COMMITTED, baseline, led_by_1_in_epoch_5
from tidelog.lab.stories.cast import CONTROLLER, FENCED, NOT_LEADER, UNKNOWN_EPOCH, ok
from tidelog.lab.story import story


@story(
    "D3-T2", "D3-T3", "D3-T8", "D3-T9", "D3-T10", "D3-T12", "D3-T13", "D3-T15", "D3-T16",
    "D3-T17", "D3-T11", "D3-U1", "D3-U5", "D3-U6", "N14", "N15", "N16",
)  # fmt: skip
def d3_timeline(lab: Lab) -> None:
    """Broker 1 dies with five records that nobody else has; broker 2 leads six seconds later."""
    baseline(lab)
    lab.step("D3-T8", "before: leader 1, ISR [1, 2, 3]")
    before = lab.desc()
    lab.same("leader, ISR", (before.leader, before.isr), (1, (1, 2, 3)))
    died_us = lab.now_us
    lab.kill(1)
    lab.release(2, 3)
    lab.until("an election", lambda: _leader_is_in_sync(lab) and lab.desc().leader != 1)
    waited_ms = (lab.now_us - died_us) / 1_000

    lab.step("D3-T2", "N14", "the controller waits for the session, from the last heartbeat on")
    lab.lasted("milliseconds from the crash", waited_ms, 2_900, 6_300)
    fenced = lab.happenings(CONTROLLER, "BrokerFenced", since_us=died_us)
    lab.same("brokers fenced", [each.fields["broker_id"] for each in fenced], [1])
    lab.step("N15", "the controller is the leader of a quorum")
    lab.same("its leader", lab.quorum().leader_id, CONTROLLER)
    _followers_waited(lab, died_us)
    _one_change(lab)
    _broker_2_serves(lab, died_us)

    lab.step("D3-T17", "D3-U1", "1000–1004 are lost, and were never visible to anybody")
    verdict = lab.audit()
    lab.same("lost", verdict.lost, AT_RISK)
    lab.same("read then lost", verdict.read_then_lost, ())
    lab.step("D3-U5", "offset 1000 is used again, in another leader epoch")
    lab.same("on broker 1's disk", lab.log(1)[1000][:3], (1000, 5, "r1000"))
    lab.same("on broker 2's", lab.log(2)[1000][:3], (1000, 6, "new"))


def _leader_is_in_sync(lab: Lab) -> bool:
    """N16: no image shows a leader that is not in the ISR. Always true, or the story ends."""
    state = lab.desc()
    assert state.leader in state.isr, state
    return True


def _followers_waited(lab: Lab, died_us: int) -> None:
    lab.step("D3-T3", "followers 2 and 3 tried again, at most a second apart, and kept their logs")
    for follower in (2, 3):
        tries = lab.happenings(follower, "FollowerBackedOff", since_us=died_us)
        lab.true(f"{follower} noticed", bool(tries))
        waits_ms = [each.fields["wait_ms"] for each in tries if each.fields["wait_ms"] is not None]
        lab.between(f"the longest wait of {follower}", max(waits_ms, default=0), 0, 1_000)
    lab.same("end(3)", lab.end(3), COMMITTED)


def _one_change(lab: Lab) -> None:
    state = lab.desc()
    lab.step("D3-T9", "N16", "the new ISR came with the new leader, in one record")
    lab.same("the ISR", state.isr, (2, 3))
    lab.step("D3-T10", "D3-U6", "the first of [2, 3] leads at once: nobody waits for broker 1")
    lab.same("the leader", state.leader, 2)
    lab.step("D3-T12", "leader 2, ISR [2, 3], leader epoch 6, online")
    lab.same("leader epoch, error", (state.leader_epoch, state.error), (6, ErrorCode.NONE))
    lab.step("D3-T11", "a fetch that still believes in epoch 5 is refused")
    fetch = lab.fetch(2, COMMITTED, leader_epoch=5)
    lab.same("the error", ErrorCode(fetch.error_code), FENCED)


def _broker_2_serves(lab: Lab, died_us: int) -> None:
    lab.step("D3-T13", "2 and 3 replay the record, and change their roles")
    lab.until("3 follows", lambda: bool(lab.happenings(3, "BecameFollower", since_us=died_us)))
    leads = lab.happenings(2, "BecameLeader", since_us=died_us)[-1].fields
    follows = lab.happenings(3, "BecameFollower", since_us=died_us)[-1].fields
    lab.same("2 leads in", (leads["leader_epoch"], leads["start_offset"]), (6, COMMITTED))
    lab.same("3 follows", (follows["leader_id"], follows["leader_epoch"]), (2, 6))

    lab.until_high_watermark(COMMITTED)
    lab.step("D3-T15", "2 has the end and the high watermark 1000; the next write takes 1000")
    lab.same("end(2)", lab.end(2), COMMITTED)
    lab.same("the answer to a write", lab.writer("lucky").write("new"), ok(COMMITTED))
    lab.step("D3-T16", "3 fetches from 2 in leader epoch 6")
    epochs = {each.current_leader_epoch for each in lab.follower_fetches(2, 3, since_us=died_us)}
    lab.same("leader epochs in 3's fetches", epochs, {6})


@story("D3-T11")
def the_isolated_leader_does_not_know_epoch_6(lab: Lab) -> None:
    """Broker 1 lives but hears of nothing: whoever knows leader epoch 6 is sent away by it."""
    baseline(lab)
    lab.isolate(1)
    lab.release(2, 3)
    lab.listen_to(2)
    lab.until_led(2)
    lab.step("D3-T11", "a fetch in epoch 6 at broker 1: it knows of no such leadership")
    fetch = lab.fetch(1, COMMITTED, leader_epoch=6)
    lab.same("the error", ErrorCode(fetch.error_code), UNKNOWN_EPOCH)


@story("D3-T15", "N10")
def the_new_leader_does_not_know_its_high_watermark_at_once(lab: Lab) -> None:
    """One record is on 1 and 2 when 1 dies: until 3 fetches it, 2 cannot say where the log ends."""
    led_by_1_in_epoch_5(lab)
    lab.fill(COMMITTED)
    lab.until_quiet()
    lab.hold(3)
    lab.writer("writer").begin("r1000")
    lab.until_end(2, COMMITTED + 1)
    lab.kill(1)
    lab.until_led(2)
    lab.step("D3-T15", "N10", "until the high watermark has reached the start of epoch 6 at 1001")
    error, _ = lab.latest(2)
    lab.same("latest", error, ErrorCode.OFFSET_NOT_AVAILABLE)
    fetch = lab.fetch(2, COMMITTED)
    lab.same("a fetch at 1000", (fetch.error_code, len(fetch.records or b"")), (0, 0))
    lab.release(3)
    lab.until_high_watermark(COMMITTED + 1)
    lab.same("then latest", lab.latest(2), (ErrorCode.NONE, COMMITTED + 1))
    lab.same("and the record can be read", lab.read(2, offset=COMMITTED), ["r1000"])


@story("D3-T10", "N16")
def the_assignment_decides_who_is_next(lab: Lab) -> None:
    """With replicas [1, 3, 2] broker 3 is the next one, though the ISR is sorted otherwise."""
    lab.cluster()
    lab.create("orders", (1, 3, 2))
    lab.fill(10)
    lab.kill(1)
    lab.until_led(3)
    lab.step("D3-T10", "N16", "the first assigned replica that is in sync and alive leads")
    lab.same("leader, ISR", (lab.desc().leader, lab.desc().isr), (3, (2, 3)))


@story("N15", "D3-T2")
def the_dead_broker_was_the_controller_too(lab: Lab) -> None:
    """Three combined nodes: the active controller dies with the leader that it is."""
    lab.cluster(controllers=None)
    leader = lab.quorum().leader_id
    others = [node for node in (1, 2, 3) if node != leader]
    lab.create("orders", (leader, *others), min_insync_replicas="2")
    lab.fill(10)
    lab.kill(leader)
    lab.until("another controller", lambda: lab.quorum().leader_id in others)
    lab.until_led(others[0])
    lab.step("N15", "D3-T2", "the remaining two elect a controller, which elects a leader")
    lab.same("leader, ISR", (lab.desc().leader, lab.desc().isr), (others[0], tuple(sorted(others))))
    lab.same("the answer to a write", lab.writer("w").write("after"), ok(10))
    lab.same("lost", lab.audit().lost, ())
    lab.same("what the follower says", lab.writer("v").write("x", to=others[1]).error, NOT_LEADER)
