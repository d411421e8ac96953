"""The story of `tidelog demo leader`: what acks=1 loses and acks=all keeps when a leader dies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tidelog.lab.audit import CLEAN
from tidelog.lab.clients import LabProducer, Sent
from tidelog.lab.lab import Lab
from tidelog.lab.story import story

REPLICATED = 20
ONE_COPY = 5
WAITING = 3
AFTERWARDS = 5
HASTY = tuple(f"hasty order {number + 1}" for number in range(ONE_COPY))
UNCOMMITTED = ONE_COPY + WAITING


@story("D3-S1")
def a_leader_dies_with_records_of_its_own(lab: Lab) -> None:
    """A leader dies with records that only it holds, and each one is accounted for.

    Orders written with acks=all are on three disks. Then both followers get nothing more: five
    orders with acks=1 are acknowledged by the leader alone, three with acks=all wait. kill -9
    strikes. What one broker acknowledged is lost, what waited is sent again to the next leader, and
    the dead one, when it returns, cuts off what the others never had.
    """
    lab.cluster(controllers=None, profile="tidelog")
    lab.create("orders", (1, 2, 3), min_insync_replicas="2")
    lab.step("D3-S1", "topic orders: three replicas, broker 1 leads")
    lab.same("leader, leader epoch", (lab.leader(), lab.desc().leader_epoch), (1, 0))
    careful = lab.producer("careful", acks="all", linger_ms="0")
    hasty = lab.producer("hasty", acks="1", linger_ms="0", enable_idempotence="false")
    waiting = _until_only_1_has_them(lab, careful, hasty)
    _fail_over(lab)
    careful.wait(*waiting)
    lab.step("D3-S1", f"the {WAITING} orders that waited are sent again, and acknowledged")
    lab.true("they are acknowledged", all(each.is_ok for each in waiting))
    after = _send(careful, "later order", AFTERWARDS)
    careful.wait()
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.until_quiet()
    verdict = lab.audit()
    lab.step("D3-S1", "acks=1: every order that one broker alone acknowledged is lost")
    lab.same("lost", verdict.lost, HASTY)
    lab.step("D3-S1", "acks=all: every acknowledged order is there, once")
    lab.same("what else the audit finds", replace(verdict, lost=()), CLEAN)
    lab.true("all are acknowledged", all(each.is_ok for each in careful.sent))
    in_the_log = Counter(lab.read(2))
    wrong = [each.payload for each in careful.sent if in_the_log[each.payload] != 1]
    lab.same("missing or double", wrong, [])
    lab.same("orders in the log", in_the_log.total(), len(careful.sent))
    lab.step("D3-S1", f"broker 1 is back: it cut {UNCOMMITTED} records that 2 never had")
    tail = [each for each in lab.log(1) if each.offset >= REPLICATED]
    payloads = [each.payload for each in (*waiting, *after)]
    lab.same("the end of its log", [each.payload for each in tail], payloads)
    lab.same("leader epochs there", {each.leader_epoch for each in tail}, {1})


def _until_only_1_has_them(lab: Lab, careful: LabProducer, hasty: LabProducer) -> list[Sent]:
    """Until the leader has what no follower has; the orders that wait for an answer."""
    _send(careful, "order", REPLICATED)
    careful.wait()
    lab.until_quiet()
    lab.step("D3-S1", f"{REPLICATED} orders are acknowledged with acks=all: on all three disks")
    lab.same("log end offsets", [lab.end(node) for node in (1, 2, 3)], [REPLICATED] * 3)
    lab.hold(2, 3)
    _send(hasty, "hasty order", ONE_COPY)
    hasty.wait()
    lab.step("D3-S1", f"{ONE_COPY} orders are acknowledged with acks=1: on the disk of broker 1")
    lab.true("all are acknowledged", all(each.is_ok for each in hasty.sent))
    waiting = _send(careful, "waiting order", WAITING)
    lab.until_end(1, REPLICATED + UNCOMMITTED)
    lab.step("D3-S1", f"{WAITING} orders with acks=all are there too, and NOT acknowledged")
    lab.same("their answers", [each.outcome for each in waiting], [None] * WAITING)
    lab.same("log end offsets", [lab.end(node) for node in (2, 3)], [REPLICATED] * 2)
    lab.same("the high watermark", lab.high_watermark(), REPLICATED)
    return waiting


def _fail_over(lab: Lab) -> None:
    lab.kill(1)
    killed_us = lab.now_us
    lab.listen_to(2, 3)
    lab.release(2, 3)
    lab.until_led(2)
    gap_ms = (lab.now_us - killed_us) / 1_000
    lab.step("D3-S1", f"kill -9 of broker 1; broker 2 leads {gap_ms:.0f} ms later")
    lab.same("the new leader epoch", lab.desc().leader_epoch, 1)
    tail = [each for each in lab.log(1) if each.offset >= REPLICATED]
    alone = [*HASTY, *(f"waiting order {number + 1}" for number in range(WAITING))]
    lab.same("on the dead leader's disk alone", [each.payload for each in tail], alone)
    lab.same("in leader epoch", {each.leader_epoch for each in tail}, {0})


def _send(producer: LabProducer, name: str, count: int) -> list[Sent]:
    return [producer.begin(f"{name} {number + 1}") for number in range(count)]
