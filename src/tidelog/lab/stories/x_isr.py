"""In-sync sets in trouble: who counts while a change of the ISR is proposed, refused or stuck."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.lab import alter_partition
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import REQUESTS, Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, FENCED, NOT_ENOUGH, ok, same_logs
from tidelog.lab.story import story

INELIGIBLE = ErrorCode.INELIGIBLE_REPLICA


@story("X-9")
def a_stale_incarnation_is_not_let_in(lab: Lab) -> None:
    """2 restarts with an empty disk, while its leader still asks for the 2 that had caught up."""
    orders(lab)
    lab.kill(2)
    lab.until_isr(1, 3)
    old = alter_partition.broker_epoch(lab, CONTROLLER, 2)
    lab.engine.wipe(2)
    lab.hold(2)
    lab.start(2)
    lab.until_unfenced(2)
    claim = alter_partition.alter_isr(
        lab,
        CONTROLLER,
        leader=1,
        leader_epoch=0,
        partition_epoch=alter_partition.current_partition_epoch(lab, CONTROLLER),
        isr={1: alter_partition.broker_epoch(lab, CONTROLLER, 1), 3: -1, 2: old},
    )
    lab.step("X-9", "the wish names the broker epoch of 2's earlier life: INELIGIBLE_REPLICA")
    lab.same("the controller's answer", claim, INELIGIBLE)
    lab.same("the ISR", lab.desc().isr, (1, 3))
    lab.same("the high watermark", lab.high_watermark(), 10)
    lab.same("end(2)", lab.end(2), 0)
    lab.release(2)
    lab.until_isr(1, 2, 3)
    lab.step("X-9", "the new 2 is let in when it has everything")
    same_logs(lab, 1, 2, 3)


@story("X-10")
def isr_proposals_that_are_refused(lab: Lab) -> None:
    """A leader proposes a fenced replica, or with an old partition epoch or leader epoch."""
    orders(lab)
    lab.stop(1)
    lab.until_led(2)
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.kill(3)
    lab.until_isr(1, 2)
    now = alter_partition.current_partition_epoch(lab, CONTROLLER)
    three = alter_partition.broker_epoch(lab, CONTROLLER, 3)

    def propose(leader: int, leader_epoch: int, partition_epoch: int) -> ErrorCode:
        return alter_partition.alter_isr(
            lab,
            CONTROLLER,
            leader=leader,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            isr={1: -1, 2: -1, 3: three},
        )

    lab.step("X-10", "each is refused for its own reason")
    lab.same("a fenced replica", propose(2, 1, now), INELIGIBLE)
    lab.same("an old partition epoch", propose(2, 1, now - 1), ErrorCode.INVALID_UPDATE_VERSION)
    lab.same("an old leader epoch", propose(1, 0, now), FENCED)
    lab.same("not the leader", propose(1, 1, now), ErrorCode.INVALID_REQUEST)
    lab.step("X-10", "the leader keeps the committed ISR")
    lab.same("the ISR", lab.desc().isr, (1, 2))
    lab.same("a write", lab.writer("writer").write("after"), ok(10))


@story("X-11")
def a_growing_isr_counts_before_it_is_committed(lab: Lab) -> None:
    """3 is proposed, the controller hears nothing of it yet: no ack leaves without 3."""
    orders(lab)
    lab.kill(3)
    lab.until_isr(1, 2)
    lab.hold(3, what=REQUESTS)
    lab.start(3)
    lab.until("1 knows that 3 is back", lambda: 3 not in lab.desc(via=1).offline)
    writer = lab.writer("writer", idempotent=True)
    lab.withhold(CONTROLLER, 1, purpose="controller")  # 1 proposes, and never hears the answer,
    lab.withhold(CONTROLLER, 1, purpose="quorum")  # nor reads of it in the metadata
    released_us = lab.now_us
    lab.release(3)
    lab.at_the_moment(
        "1 proposes 3",
        lambda: bool(lab.happenings(1, "IsrProposed", since_us=released_us)),
    )
    lab.hold(3)
    message = writer.begin("message", to=1)
    lab.at_the_moment("2 has it", lambda: "message" in lab.payloads(2))
    lab.pass_ms(500)
    lab.step("X-11", "1 does not know whether 3 is in: it waits for 3 as if it were")
    lab.same("the answer", message.answer, None)

    lab.kill(1, 2)
    lab.release(3)
    lab.let_pass(CONTROLLER, 1, purpose="controller")
    lab.let_pass(CONTROLLER, 1, purpose="quorum")
    lab.until_led(3)
    lab.start(1, 2)
    lab.until_isr(1, 2, 3)
    lab.until_quiet()
    lab.step("X-11", "1 dies, and 2: 3 leads, and has every acknowledged record")
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-12")
def a_shrinking_isr_counts_until_it_is_committed(lab: Lab) -> None:
    """3 is to leave the ISR, but the controller stands still: no early acknowledgement."""
    orders(lab)
    lab.hold(3)
    writer = lab.writer("writer")
    message = writer.begin("message")
    lab.pass_ms(5_000)
    lab.pause(CONTROLLER)
    lab.pass_ms(15_000)
    proposed = lab.happenings(1, "IsrProposed")
    lab.step("X-12", "1 has proposed [1, 2], nobody has committed it: the old ISR still counts")
    lab.same("proposed", proposed[-1].fields["isr"], (1, 2))
    lab.same("the high watermark", lab.high_watermark(), 10)
    lab.same("the answer", message.answer, None)
    lab.resume(CONTROLLER)
    lab.step("X-12", "the controller goes on: the shrink is committed, and the answer leaves")
    lab.same("the answer", writer.wait(message), ok(10))
    lab.until_isr(1, 2)  # the leader knows first
    lab.same("the ISR", lab.desc().isr, (1, 2))
    lab.release(3)
    lab.until_isr(1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-12")
def the_leader_dies_before_its_isr_has_shrunk(lab: Lab) -> None:
    """The same, but 1 dies before the controller answers: whoever leads has all that was acked."""
    orders(lab, replicas=(1, 3, 2))
    lab.hold(3)
    writer = lab.writer("writer", idempotent=True)
    message = writer.begin("message")
    lab.pass_ms(5_000)
    lab.pause(CONTROLLER)
    lab.pass_ms(15_000)
    lab.step("X-12", "1 has proposed [1, 2], and dies")
    lab.same("proposed", lab.happenings(1, "IsrProposed")[-1].fields["isr"], (1, 2))
    lab.same("the answer", message.answer, None)
    lab.kill(1)
    lab.release(3)
    lab.resume(CONTROLLER)
    lab.until("another one leads", lambda: lab.leader() in (2, 3), within_ms=60_000)
    lab.until_isr(2, 3)
    writer.again(message)
    lab.step("X-12", "the retry is acknowledged once, by whoever leads")
    lab.same("the answer", writer.wait(message), ok(10))
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-13", "N4")
def below_the_minimum_nothing_becomes_visible(lab: Lab) -> None:
    """Two of three are gone: acks=1 is taken but unreadable, acks=all refused or timed out."""
    orders(lab)
    lab.hold(2, 3)
    parked = lab.writer("parked").begin("parked")
    lab.until_end(1, 11)
    lab.kill(2, 3)
    lab.until_isr(1)
    lab.step("X-13", "N4", "the ISR is [1], the minimum 2")
    lab.same("acks=1", lab.writer("quick", acks=1).write("quick"), ok(11))
    lab.same("acks=all", lab.writer("careful").write("careful").error, NOT_ENOUGH)
    lab.same("what a consumer gets", lab.read(1)[10:], [])
    lab.same("the high watermark", lab.high_watermark(), 10)
    answer = lab.writer("parked").wait(parked)
    lab.same("the parked one", answer.error, ErrorCode.REQUEST_TIMED_OUT)

    lab.release(2, 3)
    lab.start(2)
    lab.until_isr(1, 2)
    lab.until_high_watermark(12)
    lab.step("X-13", "a follower is back: everything becomes readable, in order")
    lab.same("what a consumer gets", lab.read(1)[10:], ["parked", "quick"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-38")
def a_leader_that_only_the_controller_can_reach(lab: Lab) -> None:
    """Followers cannot reach the leader, the controller can: it is not replaced."""
    orders(lab)
    cut_us = lab.now_us
    for follower in (2, 3):
        lab.isolate(1, follower)
    lab.writer("quick", acks=1).write("only there")  # who lacks nothing does not fall behind
    lab.until_isr(1)
    lab.pass_ms(2 * int(lab.layout.settings["broker.session.timeout.ms"]))
    lab.step("X-38", "two sessions later 1 leads on: nobody was fenced, nobody was elected")
    state = lab.desc()
    lab.same("leader, leader epoch", (state.leader, state.leader_epoch), (1, 0))
    lab.same("unfenced", lab.unfenced(), (1, 2, 3))
    lab.same("fenced", lab.happenings(CONTROLLER, "BrokerFenced", since_us=cut_us), [])
    lab.same("elections", lab.happenings(CONTROLLER, "LeaderElected", since_us=cut_us), [])
    lab.step("X-38", "the ISR is [1], and acks=all is refused at a minimum of 2, not stored")
    lab.same("the ISR", state.isr, (1,))
    lab.same("acks=all", lab.writer("careful").write("refused").error, NOT_ENOUGH)
    lab.same("end(1), end(2), end(3)", (lab.end(1), lab.end(2), lab.end(3)), (11, 10, 10))
    for follower in (2, 3):
        lab.rejoin(1, follower)
    lab.until_isr(1, 2, 3)
    lab.step("X-38", "it heals with the link")
    lab.same("acks=all", lab.writer("again").write("after"), ok(11))
    lab.same("the leader epoch", lab.desc().leader_epoch, 0)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-39")
def one_slow_follower(lab: Lab) -> None:
    """acks=all stalls until the slow one has left the ISR, 1 to 1.5 times the lag limit later."""
    orders(lab)
    lab.hold(3)
    writer = lab.writer("writer")
    message = writer.begin("message")
    begun_us = lab.now_us
    lab.pass_ms(9_000)
    lab.step("X-39", "nothing is acknowledged while 3 lags and is in sync by the rules")
    lab.same("the answer", message.answer, None)
    lab.same("then the answer", writer.wait(message), ok(10))
    answered_us = message.tries[-1].answered_us or 0
    lab.step("X-39", "3 leaves after 10 to 15 s, and the answer with it")
    lab.lasted("milliseconds", (answered_us - begun_us) / 1_000, 9_900, 15_100)
    lab.until_isr(1, 2)  # the leader knows first
    lab.same("the ISR", lab.desc().isr, (1, 2))
    lab.release(3)
    lab.until_isr(1, 2, 3)
    lab.step("X-39", "3 returns when it has caught up")
    same_logs(lab, 1, 2, 3)
