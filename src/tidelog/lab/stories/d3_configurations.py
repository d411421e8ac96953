"""Document 3, the configurations: what acks and min.insync.replicas promise, and what they don't.

acks=all waits for every replica that is in sync; the minimum only refuses a write when too few are
(N1). So a minimum of 1 loses data only once the ISR has shrunk to the leader alone (N2).
"""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, ok, same_logs
from tidelog.lab.story import story


@story("D3-C1", "N25")
def acks_0_loses_without_a_word(lab: Lab) -> None:
    """Message 1001 is under way when the leader dies; its producer was content long before."""
    orders(lab, count=1_000)
    producer = lab.producer("careless", acks="0")
    lab.step("D3-C1", "N25", "the producer is content as soon as a record has left, with no offset")
    stored = producer.send("message 1000")
    lab.same("the outcome is ok, the offset", (stored.is_ok, stored.offset), (True, None))
    lab.until_end(2, 1_001)
    lab.until_quiet()
    lab.cut("careless", 1)
    lost = producer.send("message 1001")
    lab.same("the next one", (lost.is_ok, lost.offset), (True, None))
    lab.same("end(1)", lab.end(1), 1_001)
    died_us = lab.now_us
    lab.kill(1)
    lab.heal("careless", 1)
    lab.until_led(2)
    assert producer.send("message 1002").is_ok
    lab.until_end(2, 1_002)
    lab.step("D3-C1", "it is lost, nobody was told, and nobody sent it again")
    lab.same("log(2)", lab.payloads(2)[1_000:], ["message 1000", "message 1002"])
    tries = lab.requests(2, ProduceRequest.api_key, since_us=died_us, peer="careless")
    lab.same("requests of the producer at 2", len(tries), 1)
    lab.same("outcomes that are not ok", [each for each in producer.sent if not each.is_ok], [])


@story("D3-C2", "D3-S1", "D3-U1", "D3-BP2-G1")
def acks_1_loses_silently(lab: Lab) -> None:
    """Message 1000 is acknowledged by the leader, which dies before a follower has it."""
    orders(lab, count=1_000)
    lab.hold(2, 3)
    writer = lab.writer("content", acks=1)
    lab.step("D3-C2", "D3-S1", "the producer is told ok(1000) and goes on")
    lab.same("the answer", writer.write("message 1000"), ok(1_000))
    lab.kill(1)
    lab.release(2, 3)
    lab.until_led(2)
    lab.step("D3-C2", "leader 2 has 0–999, and gives 1000 to somebody else's record")
    lab.same("the answer to that one", lab.writer("other").write("another"), ok(1_000))
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.step(
        "D3-C2", "D3-S1", "D3-U1", "D3-BP2-G1", "nobody was told: the audit finds a silent loss"
    )
    lab.same("lost", lab.audit().lost, ("message 1000",))
    lab.same("what a consumer gets", lab.read(2, offset=1_000), ["another"])


@story("D3-C3a", "N1", "N2")
def acks_all_with_a_minimum_of_1_still_waits_for_all(lab: Lab) -> None:
    """All three are in sync and the followers lag: no acknowledgement, so nothing can be lost."""
    orders(lab, isr_min="1")
    lab.hold(2, 3)
    writer = lab.writer("writer", idempotent=True)
    message = writer.begin("message")
    lab.until_end(1, 11)
    lab.pass_ms(200)
    lab.step("D3-C3a", "N1", "a minimum of 1 is not 'just the leader': there is no answer")
    lab.same("end(1)", lab.end(1), 11)
    lab.same("the answer", message.answer, None)
    lab.kill(1)
    lab.release(2, 3)
    lab.until_led(2)
    writer.again(message)
    lab.step("D3-C3a", "N2", "the retry succeeds at broker 2, and none is lost")
    lab.same("the answer", writer.wait(message), ok(10))
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-C3b", "N2", "N31")
def a_leader_alone_in_the_isr_dies_and_returns(lab: Lab) -> None:
    """The ISR is the leader alone: its word is an acknowledgement, and returns with its disk."""
    _alone_in_the_isr(lab, unclean="false")
    lab.step("D3-C3b", "the ISR is [1], and acks=all is answered by broker 1 alone")
    lab.same("the answer", lab.writer("writer").write("message"), ok(10))
    lab.kill(1)
    lab.start(2, 3)
    lab.until_led(None)
    lab.until_unfenced(2, 3)
    lab.step("D3-C3b", "N2", "broker 1 dies: offline, though 2 and 3 are there")
    lab.same("the leader", lab.leader(), None)
    lab.start(1)
    lab.until_led(1)
    lab.until_isr(1, 2, 3)
    lab.step("D3-C3b", "N31", "broker 1 is back, the last known leader leads: all is intact")
    lab.same("what a consumer gets", lab.read(1)[10:], ["message"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-C3c", "N2", "D3-PG3")
def a_leader_alone_in_the_isr_is_bypassed(lab: Lab) -> None:
    """The same with unclean elections allowed: an acknowledged record is lost."""
    _alone_in_the_isr(lab, unclean="true")
    lab.step("D3-C3c", "the ISR is [1], and acks=all is answered by broker 1 alone")
    lab.same("the answer", lab.writer("writer").write("message"), ok(10))
    lab.kill(1)
    lab.start(2)
    lab.until_led(2)
    lab.until_high_watermark(10)
    lab.start(1)
    lab.until("1 follows", lambda: 1 in lab.desc().isr)
    lab.step("D3-C3c", "N2", "D3-PG3", "broker 2 is elected though it lacks the record: it is lost")
    lab.same("lost", lab.audit().lost, ("message",))
    same_logs(lab, 1, 2)


def _alone_in_the_isr(lab: Lab, *, unclean: str) -> None:
    orders(lab, isr_min="1", unclean_leader_election_enable=unclean)
    lab.kill(2, 3)
    lab.until_isr(1)


@story("D3-C4", "N1", "N3", "D3-L4")
def acks_all_with_a_minimum_of_2(lab: Lab) -> None:
    """The acknowledgement leaves only after broker 3's fetch, not after two copies."""
    orders(lab, count=1_000)
    lab.hold(3)
    writer = lab.writer("careful")
    message = writer.begin("message 1000")
    lab.until_end(2, 1_001)
    lab.pass_ms(200)
    lab.step("D3-C4", "N1", "two of three have it, the minimum is 2, and yet there is no answer")
    lab.same("the answer", message.answer, None)
    lab.release(3)
    lab.same("once 3 has it", writer.wait(message), ok(1_000))
    answered_us = message.tries[-1].answered_us
    assert answered_us is not None
    acks_us = {
        follower: min(
            fetch.at_us for fetch in lab.follower_fetches(1, follower) if fetch.offset == 1_001
        )
        for follower in (2, 3)
    }
    lab.step("N3", "a follower's next fetch, at 1001, is its ack: the answer follows the last one")
    lab.true("2 first, 3 then, the answer last", acks_us[2] < acks_us[3] < answered_us)

    lab.kill(1)
    lab.until_led(2)
    lab.until_high_watermark(1_001)
    lab.step("D3-C4", "D3-L4", "after the crash leader 2 has 1000, and consumers read it")
    lab.same("what they get", lab.read(2, offset=1_000), ["message 1000"])
    lab.start(1)
    lab.until_isr(1, 2, 3)
    same_logs(lab, 1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-C5a", "D3-PS3a", "N18")
def a_crash_before_the_ack_idempotent(lab: Lab) -> None:
    """Broker 2 has the copy, the ack was never sent; the retry finds it: one copy."""
    orders(lab, count=1_000)
    writer = lab.writer("idempotent", idempotent=True)
    lab.hold(3)
    message = writer.begin("message 1000")
    lab.until_end(2, 1_001)
    lab.kill(1)
    lab.until_led(2)
    writer.again(message)
    lab.pass_ms(500)
    lab.step("D3-C5a", "N18", "the retry is a duplicate, and answered only once 3 has it, too")
    lab.same("the answer before", message.answer, None)
    lab.release(3)
    lab.same("the answer after", writer.wait(message), ok(1_000))
    lab.step("D3-PS3a", "one copy, in the old leader's epoch")
    lab.same("log(2)", [each[:3] for each in lab.log(2)[1_000:]], [(1_000, 0, "message 1000")])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-C5b", "D3-PG4")
def a_crash_before_the_ack_not_idempotent(lab: Lab) -> None:
    """The same without idempotence: the retry is stored again."""
    orders(lab, count=1_000)
    writer = lab.writer("plain")
    lab.hold(3)
    message = writer.begin("message 1000")
    lab.until_end(2, 1_001)
    lab.kill(1)
    lab.release(3)
    lab.until_led(2)
    writer.again(message)
    lab.step("D3-C5b", "D3-PG4", "the retry is stored a second time: at least once")
    lab.same("the answer", writer.wait(message), ok(1_001))
    lab.same("duplicated", lab.audit().duplicated, ("message 1000",))


@story("D3-C5c", "D3-PS3b")
def a_crash_before_the_ack_without_a_copy_on_the_next_leader(lab: Lab) -> None:
    """Broker 3 is next in line and lacks the copy: the retry is appended in the new epoch."""
    orders(lab, count=1_000, replicas=(1, 3, 2))
    writer = lab.writer("idempotent", idempotent=True)
    lab.hold(3)
    message = writer.begin("message 1000")
    lab.until_end(2, 1_001)
    lab.kill(1)
    lab.release(3)
    lab.until_led(3)
    writer.again(message)
    lab.step("D3-C5c", "D3-PS3b", "the same offset 1000, but written by the new leader: one copy")
    lab.same("the answer", writer.wait(message), ok(1_000))
    lab.same("log(3)", [each[:3] for each in lab.log(3)[1_000:]], [(1_000, 1, "message 1000")])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-C6", "N5", "N31")
def one_replica_only(lab: Lab) -> None:
    """RF 1: with its broker the partition is gone, and comes back with it."""
    lab.cluster(brokers=(1, 2))
    lab.create("orders", (1,), min_insync_replicas="2")
    lab.step("N5", "a minimum above the replica count is capped")
    lab.fill(1_005)
    lab.same("end(1)", lab.end(1), 1_005)
    lab.kill(1)
    lab.until_led(None)
    lab.step("D3-C6", "broker 1 dies: offline")
    lab.same("the error", lab.metadata_error(), ErrorCode.LEADER_NOT_AVAILABLE)
    lab.start(1)
    lab.until_led(1)
    lab.step("D3-C6", "restarted, all 1005 are back, two leader epochs later")
    lab.same("end(1), leader epoch", (lab.end(1), lab.desc().leader_epoch), (1_005, 2))
    lab.same("records", len(lab.read(1)), 1_005)
    lab.step("N31", "after SIGKILL its return is an election of the last known leader")
    kinds = [str(each.fields["kind"]) for each in lab.happenings(CONTROLLER, "LeaderElected")]
    lab.same("the election", kinds[-1], "last-known")
