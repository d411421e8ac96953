"""Document 2, step by step: an old leader keeps a record that the new one never had.

M1 is on A, B and C; M2 on A and B; M3 on A alone when A dies. B leads, A returns and cuts M3 off.
Where the document gives M4 the offset 3, Kafka and Tidelog give it 2: B's log ends there (N7).
"""

from __future__ import annotations

from contextlib import suppress

from tidelog.core.model.errors import ErrorCode
from tidelog.lab.audit import CLEAN
from tidelog.lab.evidence import LogEntry
from tidelog.lab.evidence_queries import Unanswered
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import NOT_LEADER, A, B, C, ok, same_logs
from tidelog.lab.story import story
from tidelog.lab.writers import PartitionWriter, WrittenBatch


@story(
    "D2-A2", "D2-S1", "D2-S2", "D2-S3", "D2-S4", "D2-S5", "D2-S6",
    "D2-E1", "D2-E2", "D2-E3", "D2-E4", "D2-E5", "D2-C2", "D2-G2", "N6", "N7", "N39",
    "D2-M1", "D2-M2", "D2-M3", "D2-M4", "D2-M5", "D2-M6", "D2-M7", "D2-M8", "D2-M9", "D2-M10",
)  # fmt: skip
def d2_walk_with_acks_1(lab: Lab) -> None:
    """M3 is acknowledged by A alone and then lost, and nobody ever reads it."""
    first = _begin(lab, acks=1)
    lab.step("D2-S1", "D2-A2", "M1 is copied to B and C within a fetch, and committed")
    lab.same("the answer to M1", first.write("M1"), ok(0))
    lab.until_quiet()
    lab.same("end(A), end(B), end(C)", _ends(lab), (1, 1, 1))
    lab.same("the high watermark", lab.high_watermark(), 1)

    lab.step("D2-S2", "M2 reaches A and B; what A answers to C is held back")
    lab.hold(C)
    lab.same("the answer to M2", first.write("M2"), ok(1))
    lab.until_end(B, 2)
    lab.same("end(A), end(B), end(C)", _ends(lab), (2, 2, 1))
    lab.same("the high watermark", lab.high_watermark(), 1)
    lab.same("the ISR", lab.desc().isr, (A, B, C))

    lab.step("D2-S3", "D2-M2", "D2-M3", "M3 is on A alone")
    lab.hold(B)
    lab.same("the answer to M3", first.write("M3"), ok(2))
    lab.same("end(A), end(B), end(C)", _ends(lab), (3, 2, 1))
    lab.same("the high watermark", lab.high_watermark(), 1)
    lab.same("what a consumer gets from A", lab.read(A), ["M1"])

    _a_dies(lab)
    _b_leads(lab)
    _a_returns(lab)
    lab.step("D2-M10", "M3's writer was told ok, and the audit names its loss")
    lab.same("lost", lab.audit().lost, ("M3",))
    _a_leads_again(lab)


@story("D2-S7", "D2-G3")
def no_reader_is_given_what_is_cut(lab: Lab) -> None:
    """The same walk with readers: at each moment every replica that runs is read to its end.

    Nothing is compared before the end, so that a broker which gives too much is seen by the judge.
    """
    given = _ReadsOfAll(lab)
    first = _begin_with_m1(lab)
    given.look()
    lab.hold(C)
    first.write("M2")
    lab.until_end(B, 2)
    lab.hold(B)
    first.write("M3")
    given.look()  # A has M1 M2 M3, B has M1 M2, C has M1, and M1 is committed
    lab.kill(A)
    given.look()
    lab.release(B, C)
    lab.until_led(B)
    given.look()
    lab.writer("second").write("M4")
    given.look()
    lab.isolate(A, B)
    lab.start(A)
    lab.until_unfenced(A)
    given.look()  # A is back with M3, and has not heard of B's log
    lab.rejoin(A, B)
    lab.until_isr(A, B, C)
    lab.pass_ms(1_000)  # more than a fetch waits: whoever is in sync knows the high watermark
    given.look()

    verdict = lab.audit()
    lab.step("D2-G3", "whatever a reader was given was committed then, and is for ever")
    lab.same("dirty reads and the like", verdict.others, ())
    lab.same("read by M4's offset", given.at(2), {"M4"})
    lab.step("D2-S7", "no reader, before or after, on any replica, was given M3")
    lab.same("read then lost", verdict.read_then_lost, ())
    lab.same("read at all", given.payloads, {"M1", "M2", "M4"})
    for broker in (A, B, C):
        lab.same(f"what a consumer gets from {broker}", lab.read(broker), ["M1", "M2", "M4"])
    lab.same("lost", verdict.lost, ("M3",))


class _ReadsOfAll:
    """What consumers get from each replica, from the beginning to its end."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._given: set[tuple[int, str]] = set()

    def look(self) -> None:
        """A replica that knows no leader yet, or lost it, gives nothing."""
        for broker in (A, B, C):
            if self._lab.engine.is_running(broker):
                with suppress(Unanswered):
                    found = self._lab.read_entries(broker)
                    self._given |= {(each.offset, each.payload) for each in found}

    @property
    def payloads(self) -> set[str]:
        return {payload for _, payload in self._given}

    def at(self, offset: int) -> set[str]:
        return {payload for where, payload in self._given if where == offset}


def _begin_with_m1(lab: Lab) -> PartitionWriter:
    """M1 is everywhere, and every replica knows that it is committed."""
    lab.cluster()
    lab.create("letters", (A, B, C), min_insync_replicas="2")
    first = lab.writer("first", acks=1, idempotent=True)
    first.write("M1")
    for broker in (A, B, C):
        lab.until_read(broker, ["M1"])
    return first


def _begin(lab: Lab, *, acks: int) -> PartitionWriter:
    lab.cluster()
    lab.create("letters", (A, B, C), min_insync_replicas="2")
    lab.step("D2-M1", "the partition begins in leader epoch 0, and A's log is empty")
    lab.same("the leader and its epoch", _leadership(lab), (A, 0))
    lab.same("end(A)", lab.end(A), 0)
    return lab.writer("first", acks=acks, idempotent=True)


def _a_dies(lab: Lab) -> None:
    lab.step("D2-E3", "M3 lies on A's disk as ⟨leader epoch 0, offset 2⟩")
    record = lab.log(A)[2]
    lab.same("offset, epoch, payload", record[:3], (2, 0, "M3"))

    lab.step("D2-S4", "D2-M4", "A dies; until the controller knows, nobody takes a write")
    lab.kill(A)
    lab.same("what B says to a writer", lab.writer("early").write("M0", to=B).error, NOT_LEADER)
    lab.release(B, C)


def _b_leads(lab: Lab) -> None:
    before = lab.log_bytes(B)
    lab.until_led(B)
    lab.step("D2-S5", "D2-M5", "D2-E1", "B leads in leader epoch 1, and lacks M3")
    lab.same("the leader and its epoch", _leadership(lab), (B, 1))
    lab.same("log(A) on its disk", lab.payloads(A), ["M1", "M2", "M3"])
    lab.same("log(B)", lab.payloads(B), ["M1", "M2"])
    lab.step("N6", "becoming leader changed no byte of B's log")
    lab.true("log(B) is as before", lab.log_bytes(B) == before)
    lab.step("N7", "the new leader epoch begins at offset 2, before anything is written in it")
    lab.same("epochs(B)", lab.epochs(B), {0: 0, 1: 2})

    lab.step("D2-E4", "D2-E5", "D2-M6", "M4 is written by B as ⟨leader epoch 1, offset 2⟩")
    lab.same("the answer to M4", lab.writer("second").write("M4"), ok(2))
    lab.same("the record in log(B)", lab.log(B)[2], LogEntry(2, 1, "M4"))
    lab.same("the high watermark, since C has it, too", lab.high_watermark(), 3)


def _a_returns(lab: Lab) -> None:
    lab.isolate(A, B)
    lab.start(A)
    lab.until_unfenced(A)
    lab.step("D2-S6", "D2-M7", "N39", "A is back as a follower and keeps M3 until it reaches B")
    lab.same("the leader and its epoch", _leadership(lab), (B, 1))
    lab.same("log(A)", lab.payloads(A), ["M1", "M2", "M3"])

    healed_us = lab.now_us
    lab.rejoin(A, B)
    lab.until_isr(A, B, C)
    fetch = lab.follower_fetches(B, A, since_us=healed_us)[0]
    lab.step("D2-M8", "A asks B for what follows offset 3, and says that epoch 0 was its last")
    lab.same("offset and last epoch", (fetch.offset, fetch.last_fetched_leader_epoch), (3, 0))
    lab.step("D2-M9", "B answers that epoch 0 ended at offset 2")
    lab.same("the divergence", fetch.diverged, (0, 2))
    lab.step("D2-M10", "A cuts M3 off and takes M4: three equal logs, three replicas in sync")
    lab.same("log(A)", lab.payloads(A), ["M1", "M2", "M4"])
    lab.step("D2-G2", "all replicas have converged")
    same_logs(lab, A, B, C)
    lab.step("D2-C2", "every replica maps epoch 0 to offset 0 and epoch 1 to offset 2")
    for broker in (A, B, C):
        lab.same(f"epochs({broker})", lab.epochs(broker), {0: 0, 1: 2})


def _a_leads_again(lab: Lab) -> None:
    lab.until_elected(A)
    lab.step("D2-E2", "A leads again, in leader epoch 2, with M1, M2 and M4")
    lab.same("the leader and its epoch", _leadership(lab), (A, 2))
    lab.until_quiet()
    lab.same("what a consumer gets", lab.read(A), ["M1", "M2", "M4"])


@story("D2-M10", "D2-S3", "D2-S5", "N18")
def d2_walk_with_acks_all(lab: Lab) -> None:
    """With acks=all neither M2 nor M3 is acknowledged, and the retry of M3 lands at offset 3."""
    first, m2, m3 = _m3_on_a_alone(lab)
    lab.step("D2-S3", "M2 and M3 are not acknowledged: C lacks the one, B and C the other")
    lab.same("the answers", (m2.answer, m3.answer), (None, None))
    lab.kill(A)
    lab.release(B, C)
    lab.until_led(B)
    lab.step("D2-S5", "their writer hears nothing but the end of its connections")
    lab.same("the answers have no error code", _errors(m2, m3), (None, None))
    lab.same("the answer to M4 of another writer", lab.writer("second").write("M4"), ok(2))
    lab.step("N18", "M2 is known to B: its retry is answered with its first offset")
    first.again(m2)
    lab.same("the answer", first.wait(m2), ok(1))
    lab.step("D2-M10", "M3 is not: its retry is appended, behind M4")
    first.again(m3)
    lab.same("the answer", first.wait(m3), ok(3))
    lab.start(A)
    lab.until_isr(A, B, C)
    lab.until_quiet()
    for broker in (A, B, C):
        lab.same(f"log({broker})", lab.payloads(broker), ["M1", "M2", "M4", "M3"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D2-E5", "N7")
def the_same_producer_goes_on(lab: Lab) -> None:
    """If M4 is the same idempotent producer's, its retry of M3 goes first."""
    first, m2, m3 = _m3_on_a_alone(lab)
    lab.kill(A)
    lab.release(B, C)
    lab.until_led(B)
    for retried in (m2, m3):
        first.again(retried)
        first.wait(retried)
    first.write("M4")
    lab.step("D2-E5", "N7", "M3 is ⟨leader epoch 1, offset 2⟩ and M4 ⟨leader epoch 1, offset 3⟩")
    records = [(each.payload, each.leader_epoch, each.offset) for each in lab.log(B)]
    lab.same("log(B)", records, [("M1", 0, 0), ("M2", 0, 1), ("M3", 1, 2), ("M4", 1, 3)])


@story("D2-S5", "N12")
def c_is_elected_when_it_stands_before_b(lab: Lab) -> None:
    """With replicas [A, C, B] the controller takes C, and M2 vanishes as well as M3."""
    lab.cluster()
    lab.create("letters", (A, C, B), min_insync_replicas="2")
    first = lab.writer("first", acks=1)
    first.write("M1")
    lab.until_quiet()
    lab.hold(C)
    first.write("M2")
    lab.until_end(B, 2)
    lab.hold(B)
    first.write("M3")
    lab.kill(A)
    lab.release(B, C)
    lab.until_led(C)
    lab.step("D2-S5", "C leads, though B has more")
    lab.same("the leader and its epoch", _leadership(lab), (C, 1))
    lab.same("log(C)", lab.payloads(C), ["M1"])
    lab.start(A)
    lab.until_isr(A, B, C)
    lab.until_quiet()
    lab.step("N12", "M2 was on an in-sync replica, but not on the one that was elected: it is gone")
    same_logs(lab, C, B, A)
    lab.same("lost", lab.audit().lost, ("M2", "M3"))


def _m3_on_a_alone(lab: Lab) -> tuple[PartitionWriter, WrittenBatch, WrittenBatch]:
    lab.cluster()
    lab.create("letters", (A, B, C), min_insync_replicas="2")
    first = lab.writer("first", idempotent=True)
    first.write("M1")
    lab.until_quiet()
    lab.hold(C)
    m2 = first.begin("M2")
    lab.until_end(B, 2)
    lab.hold(B)
    m3 = first.begin("M3")
    lab.until_end(A, 3)
    return first, m2, m3


def _errors(*batches: WrittenBatch) -> tuple[ErrorCode | None, ...]:
    """What the brokers said; None where a connection ended without an answer."""
    answers = [batch.answer for batch in batches]
    assert all(answers), "a batch still waits"
    return tuple(answer.error for answer in answers if answer is not None)


def _ends(lab: Lab) -> tuple[int, int, int]:
    return lab.end(A), lab.end(B), lab.end(C)


def _leadership(lab: Lab) -> tuple[int | None, int]:
    state = lab.desc()
    return state.leader, state.leader_epoch
