"""Eligible leaders (KIP-966): who may lead when nobody in sync is left, and who may not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, NONE, ok
from tidelog.lab.story import story


@story("X-6")
def the_last_replica_standing_loses_its_tail(lab: Lab) -> None:
    """The ISR shrank to [1] with 2 eligible; 1 loses power and what it had not synced."""
    orders(lab)
    lab.stop(3)
    lab.stop(2)
    lab.step("X-6", "the ISR is [1], below the minimum, and 2 is eligible")
    state = lab.desc()
    lab.same("ISR, eligible", (state.isr, state.eligible), ((1,), (2,)))
    lab.same("acks=1 is taken", lab.writer("careless", acks=1).write("tail"), ok(10))
    lab.lose_power(1)
    lab.start(2)
    lab.until_led(2)
    lab.start(1, 3)
    lab.until_isr(1, 2, 3)
    lab.until_quiet()
    lab.step("X-6", "2 is elected, and no record acknowledged with acks=all is missing")
    kinds = [str(each.fields["kind"]) for each in lab.happenings(CONTROLLER, "LeaderElected")]
    lab.same("the election", kinds[-1], "eligible")
    lab.same("lost", lab.audit().lost, ("tail",))


@story("X-7")
def a_killed_member_must_catch_up_before_it_counts(lab: Lab) -> None:
    """2 is eligible when it loses its power; back again it is neither in sync nor eligible."""
    orders(lab)
    lab.stop(3)
    lab.lose_power(2)
    lab.until_isr(1)
    lab.step("X-7", "2 left the ISR below the minimum, so it is eligible while it is gone")
    lab.same("eligible", lab.desc().eligible, (2,))
    lab.hold(2)
    lab.start(2)
    lab.until_unfenced(2)
    lab.step("X-7", "it registered without proof of a clean stop: in neither list once it is back")
    state = lab.desc()
    lab.same("ISR, eligible", (state.isr, state.eligible), ((1,), ()))
    admitted = lab.happenings(CONTROLLER, "BrokerAdmitted")[-1]
    unfenced = lab.happenings(CONTROLLER, "BrokerUnfenced")[-1]
    lab.same("its registration was clean", admitted.fields["is_clean"], False)
    lab.true("it left the lists first", admitted.at_us <= unfenced.at_us)
    lab.release(2)
    lab.until_isr(1, 2)
    lab.step("X-7", "it is in sync once it has caught up")
    lab.same("log(2)", lab.payloads(2), lab.payloads(1))


@story("X-8")
def a_fenced_broker_is_never_elected(lab: Lab) -> None:
    """Nobody is in sync or eligible, the last known leader is back but fenced (KAFKA-19522)."""
    controller = 3
    orders(lab, replicas=(1, 2), isr_min="1")
    lab.kill(1)
    lab.until_isr(2)
    lab.kill(2)
    lab.pass_ms(7_000)
    started_us = lab.now_us
    lab.withhold(controller, 2, purpose="quorum")  # so it cannot catch up, and stays fenced
    lab.start(2)
    lab.at_the_moment(
        "2 is registered",
        lambda: bool(lab.happenings(controller, "BrokerAdmitted", since_us=started_us)),
    )
    lab.start(1)
    lab.listen_to(1)
    lab.until_unfenced(1)
    lab.pass_ms(1_000)
    lab.step("X-8", "1 is unfenced, 2 is not: nobody leads, whoever comes back")
    state = lab.desc()
    lab.same("leader, ISR, eligible", (state.leader, state.isr, state.eligible), (None, (), ()))
    lab.same("last known", state.last_known, (2,))
    lab.same("unfenced", lab.unfenced(), (1,))
    lab.let_pass(controller, 2, purpose="quorum")
    lab.until_led(2)
    lab.until_isr(1, 2)
    lab.step("X-8", "2 leads once it is unfenced itself")
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-36")
def a_broker_restarts_inside_its_session(lab: Lab) -> None:
    """Its old registration lives: DUPLICATE_BROKER_REGISTRATION until the session is over."""
    orders(lab)
    killed_us = lab.now_us
    lab.kill(2)
    lab.start(2)
    lab.until_isr(1, 3)
    lab.until_isr(1, 2, 3)
    answers = [
        ErrorCode(seen.answer.error_code)
        for seen in lab.requests(
            CONTROLLER, BrokerRegistrationRequest.api_key, since_us=killed_us, peer=2
        )
        if isinstance(seen.answer, BrokerRegistrationResponse)
    ]
    lab.step("X-36", "it is refused while its session lives, then let in")
    lab.same("the first answer", answers[0], ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    lab.same("the last answer", answers[-1], NONE)
    lab.same("all others", set(answers[:-1]), {ErrorCode.DUPLICATE_BROKER_REGISTRATION})
    lab.lasted("milliseconds until it was in sync", (lab.now_us - killed_us) / 1_000, 2_900, 7_000)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-36")
def a_dead_process_is_known_at_once(lab: Lab) -> None:
    """The same with Tidelog's own failure detection: the old process is known to be dead."""
    lab.cluster(profile="tidelog")
    lab.create("orders", (1, 2, 3))
    lab.fill(10)
    killed_us = lab.now_us
    lab.kill(2)
    lab.until_isr(1, 3)
    lab.start(2)
    lab.until_isr(1, 2, 3)
    lab.step("X-36", "two refused connections are a proof: it joins well before its session ends")
    lab.lasted("milliseconds until it was in sync", (lab.now_us - killed_us) / 1_000, 0, 1_000)


@story("X-45")
def the_whole_cluster_is_killed_and_restarted_in_each_order(lab: Lab) -> None:
    """Nobody has proof of a clean stop: the last known leader leads, and all records are there."""
    lab.cluster(controllers=None, profile="tidelog")
    lab.create("orders", (1, 2, 3), min_insync_replicas="2")
    writer = lab.writer("writer")
    for order in permutations((1, 2, 3)):
        assert writer.write(f"before {order}").is_ok
        _kill_all_and_start(lab, order)
        first = writer.write(f"after {order}")
        lab.same("the first acknowledgement", first.error, NONE)
    lab.same("the audit", lab.audit(), CLEAN)
    lab.same("records", len(lab.read(lab.leader() or 0)), 12)


def _kill_all_and_start(lab: Lab, order: tuple[int, ...]) -> None:
    before, killed_us = lab.desc(), lab.now_us
    lab.kill(1, 2, 3)
    lab.start(*order)

    def all_are_back() -> bool:
        state = lab.desc()
        return state.leader_epoch > before.leader_epoch and state.isr == (1, 2, 3)

    lab.until("all are back", all_are_back, within_ms=60_000)
    admitted = _of_all(lab, "BrokerAdmitted", killed_us)
    elected = _of_all(lab, "LeaderElected", killed_us)
    lab.step("X-45", f"killed at once, started in the order {order}: all registrations are unclean")
    lab.same("clean ones", [each for each in admitted if each["is_clean"]], [])
    lab.same("the last election", str(elected[-1]["kind"]), "last-known")
    lab.lasted("milliseconds to full sync", (lab.now_us - killed_us) / 1_000, 0, 30_000)


def _of_all(lab: Lab, kind: str, since_us: int) -> list[Mapping[str, Any]]:
    """The fields of what any node, being the controller then, wrote to its trace."""
    found = [each for node in (1, 2, 3) for each in lab.happenings(node, kind, since_us=since_us)]
    return [each.fields for each in sorted(found, key=lambda each: each.at_us)]
