"""Document 3, the life of a message: four stages, and a crash in each of them (N11).

The document calls stage 3 both safe and lost. It is safe: every replica that can be elected has the
record. Stage 2 depends on who is elected.
"""

from __future__ import annotations

from tidelog.lab.audit import CLEAN
from tidelog.lab.evidence_queries import FETCH
from tidelog.lab.lab import REQUESTS, Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import ok
from tidelog.lab.story import story

FETCH_WAITS_MS = 5_000
"""At a leader that has nothing new; ten times as long as it is by default."""


@story("D3-L1", "N11", "D3-Q3")
def stage_1_on_the_leader_alone(lab: Lab) -> None:
    """A record that only the leader has dies with it, and nobody was told that it was safe."""
    orders(lab)
    lab.hold(2, 3)
    message = lab.writer("writer").begin("message")
    lab.until_end(1, 11)
    lab.step("D3-L1", "uncommitted, invisible, unsafe")
    lab.same("the high watermark", lab.high_watermark(), 10)
    lab.same("the answer", message.answer, None)
    _crash(lab)
    lab.step("D3-L1", "N11", "D3-Q3", "it is gone, and was never acknowledged")
    lab.same("log(2)", lab.payloads(2)[10:], [])
    lab.true("it was not acknowledged", not message.is_ok)
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-L2", "D3-Q2", "N11", "N12")
def stage_2_on_the_follower_that_is_elected(lab: Lab) -> None:
    """A record on 1 and 2 survives, because 2 is the next leader."""
    orders(lab)
    lab.hold(3)
    message = lab.writer("writer").begin("message")
    lab.until_end(2, 11)
    lab.step("D3-L2", "on some followers: uncommitted, invisible")
    lab.same("end(1), end(2), end(3)", (lab.end(1), lab.end(2), lab.end(3)), (11, 11, 10))
    lab.same("the high watermark", lab.high_watermark(), 10)
    lab.same("the answer", message.answer, None)
    _crash(lab)
    lab.until_high_watermark(11)
    lab.step("D3-L2", "D3-Q2", "N11", "N12", "2 has it and leads: it is kept and committed")
    lab.same("what a consumer gets", lab.read(2)[10:], ["message"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-L2", "D3-Q2", "N11", "N12")
def stage_2_on_the_follower_that_is_not(lab: Lab) -> None:
    """A record on 1 and 3 is gone, because 2 is the next leader."""
    orders(lab)
    lab.hold(2)
    message = lab.writer("writer").begin("message")
    lab.until_end(3, 11)
    _crash(lab)
    lab.until_end(3, 10)
    lab.step("D3-L2", "D3-Q2", "N11", "N12", "3 has it, but 2 leads: 3 drops it")
    lab.same("log(2), log(3)", (lab.payloads(2)[10:], lab.payloads(3)[10:]), ([], []))
    lab.true("it was not acknowledged", not message.is_ok)
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-L3", "N11")
def stage_3_on_all_before_the_leader_knows(lab: Lab) -> None:
    """All in-sync replicas have the record, the leader dies before it hears so: it is kept."""
    orders(lab, settings={"replica.fetch.wait.max.ms": str(FETCH_WAITS_MS)})
    lab.until("the followers' last fetches wait at 1", lambda: _last_fetches_wait(lab))
    message = lab.writer("writer").begin("message")
    lab.until_end(2, 11)
    lab.until_end(3, 11)
    lab.step("D3-L3", "on all: uncommitted, invisible, and safe")
    lab.same("the high watermark", lab.high_watermark(), 10)
    lab.same("the answer", message.answer, None)
    _crash(lab)
    lab.until_high_watermark(11)
    lab.step("D3-L3", "N11", "it is committed under the next leader, with the epoch it had")
    lab.same("what a consumer gets", lab.read(2)[10:], ["message"])
    lab.same("its leader epoch, the leader's", (lab.log(2)[10].leader_epoch, 1), (0, 1))
    lab.same("the leader epoch", lab.desc().leader_epoch, 1)


@story("D3-L4", "D3-Q1")
def stage_4_the_high_watermark_has_moved(lab: Lab) -> None:
    """An acknowledged record is committed, visible, and survives the leader."""
    orders(lab)
    lab.step("D3-L4", "committed, visible, safe")
    lab.same("the answer", lab.writer("writer").write("message"), ok(10))
    lab.same("what a consumer gets", lab.read(1)[10:], ["message"])
    _crash(lab)
    lab.until_high_watermark(11)
    lab.step("D3-L4", "D3-Q1", "after the crash it is there")
    lab.same("what a consumer gets", lab.read(2)[10:], ["message"])
    lab.same("the audit", lab.audit(), CLEAN)


def _last_fetches_wait(lab: Lab) -> bool:
    """Further fetches are withheld. A follower that was between two of them would get nothing: of
    each, one must have reached the leader, and not so long ago that it is answered empty soon."""
    lab.hold(2, 3, what=REQUESTS)
    fetches = [lab.requests(1, FETCH, peer=follower)[-1] for follower in (2, 3)]
    sent_us = lab.now_us - FETCH_WAITS_MS * 1_000 // 5
    if all(each.answer is None and each.at_us > sent_us for each in fetches):
        return True
    lab.release(2, 3)
    return False


def _crash(lab: Lab) -> None:
    lab.kill(1)
    lab.release(2, 3)
    lab.until_led(2)
