"""Connections in trouble: refused though the broker lives, reset on the way, slow without end.

A connection that breaks is only a hint that a broker is dead. The proof is that nobody listens
where it said that it would, and it is asked for twice (profile `tidelog`).
"""

from __future__ import annotations

from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, ok, same_logs
from tidelog.lab.story import story


@story("X-41")
def something_on_the_way_resets_everything(lab: Lab) -> None:
    """All connections of leader 1 break at once: its door is found open, and nobody is fenced."""
    _orders(lab)
    producer = lab.producer("producer", acks="all")
    sent = [producer.begin(f"m{number}") for number in range(10)]
    lab.pass_ms(2)
    lab.engine.reset_connections(1)
    sent += [producer.begin(f"m{number}") for number in range(10, 20)]
    producer.wait()
    lab.pass_ms(2_000)
    lab.step("X-41", "1 is not fenced, leads on, and all are in sync")
    _nothing_moved(lab)
    lab.step("X-41", "the producer tries again, and each record is there once")
    lab.true("all are acknowledged", all(each.is_ok for each in sent))
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-41")
def a_listener_is_opened_anew(lab: Lab) -> None:
    """For ten milliseconds nobody listens at leader 1: refused once, it is asked once more."""
    _orders(lab)
    lab.engine.refuse_connections(1)
    lab.engine.reset_connections(1)
    lab.pass_ms(10)
    lab.engine.accept_connections(1)
    lab.pass_ms(2_000)
    lab.step("X-41", "one refusal is no proof: 1 is not fenced, and leads on")
    _nothing_moved(lab)
    lab.same("acks=all", lab.writer("writer").write("after"), ok(10))


@story("X-41")
def a_living_broker_is_taken_for_dead(lab: Lab) -> None:
    """Nobody gets through to leader 1 for a while: it is fenced though it lives, and comes back."""
    _orders(lab)
    lab.hold(2, 3)
    careful = lab.writer("careful", idempotent=True)
    parked = careful.begin("parked")
    lab.until_end(1, 11)
    broken_us = lab.now_us
    lab.engine.refuse_connections(1)
    lab.engine.reset_connections(1)
    lab.release(2, 3)
    lab.listen_to(2, 3)
    lab.until_led(2)
    lab.step("X-41", "two refusals are taken for a proof: 2 leads, well before any session ends")
    (fenced,) = lab.happenings(CONTROLLER, "BrokerFenced")
    lab.same("the reason", fenced.fields["reason"], "its process is dead")
    lab.lasted("milliseconds", (fenced.at_us - broken_us) / 1_000, 20, 200)
    lab.true("1 runs", lab.engine.is_running(1))
    lab.true("what 1 had alone was not acknowledged", not parked.is_ok)
    careful.again(parked)
    lab.same("2 takes it", careful.wait(parked), ok(10))

    lab.engine.accept_connections(1)
    lab.until_isr(1, 2, 3)
    lab.until_quiet()
    lab.step("X-41", "it comes back by itself, as the process that it was")
    (unfenced,) = lab.happenings(CONTROLLER, "BrokerUnfenced", since_us=broken_us)
    lab.same("unfenced", unfenced.fields["broker_id"], 1)
    lab.same("registrations", lab.happenings(CONTROLLER, "BrokerAdmitted", since_us=broken_us), [])
    lab.step("X-41", "nothing acknowledged is lost")
    same_logs(lab, 1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-39")
def answers_come_16_seconds_late(lab: Lab) -> None:
    """What 1 tells 3 arrives, but slowly: a follower that lags too far is not waited for."""
    orders(lab)
    lab.engine.delay(1, 3, delay_ms=16_000)
    writer = lab.writer("writer")
    begun_us = lab.now_us
    first = writer.begin("first")
    lab.until_end(2, 11)
    lab.pass_ms(9_000)
    lab.step("X-39", "acks=all stalls while 3 is in the ISR")
    lab.same("the answer", first.answer, None)
    lab.same("then the answer", writer.wait(first), ok(10))
    lab.step("X-39", "3 leaves between 1 and 1.5 times the lag limit later, and acks resume")
    lasted_us = (first.tries[-1].answered_us or 0) - begun_us
    lab.lasted("milliseconds", lasted_us / 1_000, 10_000, 15_000)
    lab.until_isr(1, 2)  # the leader knows first
    lab.same("ISR", lab.desc().isr, (1, 2))
    lab.same("end(3)", lab.end(3), 10)
    lab.same("the next answer", writer.write("second"), ok(11))
    lab.same("fenced", lab.happenings(CONTROLLER, "BrokerFenced"), [])

    lab.engine.delay(1, 3, delay_ms=0)
    lab.until_isr(1, 2, 3)
    lab.step("X-39", "it is back in the ISR when it has caught up")
    lab.same("end(3)", lab.end(3), 12)
    lab.until_quiet()
    same_logs(lab, 1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


def _orders(lab: Lab) -> None:
    lab.cluster(profile="tidelog")
    lab.create("orders", (1, 2, 3), min_insync_replicas="2")
    lab.fill(10)
    lab.until_quiet()


def _nothing_moved(lab: Lab) -> None:
    state = lab.desc()
    lab.same(
        "leader, leader epoch, ISR",
        (state.leader, state.leader_epoch, state.isr),
        (1, 0, (1, 2, 3)),
    )
    lab.same("fenced", lab.happenings(CONTROLLER, "BrokerFenced"), [])
