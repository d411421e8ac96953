"""Truncation as it once went wrong: KIP-101 cut by the high watermark, KIP-279 cut too little."""

from __future__ import annotations

from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import A, B, ok, same_logs
from tidelog.lab.story import story


@story("X-1")
def a_restarted_follower_keeps_what_is_above_its_high_watermark(lab: Lab) -> None:
    """B holds m2, but knows only the high watermark 1; it restarts, A dies at once, B leads.

    Whoever cuts to the high watermark at a restart loses m2 here, though it was acknowledged.
    """
    lab.cluster(brokers=(A, B), controllers=(3,))
    lab.create("letters", (A, B), min_insync_replicas="2")
    writer = lab.writer("writer")
    writer.write("m1")
    lab.until_quiet()
    m2 = writer.begin("m2")
    lab.at_the_moment("B has m2", lambda: len(lab.log(B)) == 2)
    lab.hold(B)  # so B never hears that the high watermark moved
    lab.step("X-1", "m2 is acknowledged: both have it")
    lab.same("the answer", writer.wait(m2), ok(1))
    lab.stop(B)
    lab.isolate(A, B)
    lab.start(B)
    lab.until_unfenced(B)
    lab.kill(A)
    lab.release(B)
    lab.until_led(B)
    lab.step("X-1", "B leads without having asked anybody, and has kept m2")
    lab.same("log(B)", lab.payloads(B), ["m1", "m2"])
    lab.same("B's truncations", lab.happenings(B, "FollowerTruncated"), [])
    lab.rejoin(A, B)
    lab.start(A)
    lab.until_isr(A, B)
    lab.until_quiet()
    lab.same("what a consumer gets", lab.read(B), ["m1", "m2"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-2")
def two_records_never_share_an_offset(lab: Lab) -> None:
    """Power fails on both; m2 survives on A only; B leads and writes m3 where m2 was; A returns."""
    lab.cluster(brokers=(A, B), controllers=(3,))
    lab.create("letters", (A, B), min_insync_replicas="1", unclean_leader_election_enable="true")
    writer = lab.writer("writer")
    writer.write("m1")
    lab.until_quiet()
    for broker in (A, B):  # a clean stop puts m1 on the disk itself
        lab.stop(broker)
        lab.start(broker)
        lab.until_isr(A, B)
    lab.step("X-2", "m2 is acknowledged by both, and on both when the power fails")
    lab.same("the answer to m2", writer.write("m2"), ok(1))
    lab.until_quiet()
    lab.same("log(A), log(B)", (lab.payloads(A), lab.payloads(B)), (["m1", "m2"],) * 2)
    lab.lose_power(A, keeps="everything")
    lab.lose_power(B, keeps="nothing")
    lab.start(B)
    lab.until_led(B)
    lab.until_high_watermark(1)
    lab.step("X-2", "B leads again, since it did so last, without m2, and gives its offset to m3")
    kinds = [str(each.fields["kind"]) for each in lab.happenings(3, "LeaderElected")]
    lab.same("the election", kinds[-1], "last-known")
    lab.same("log(B)", lab.payloads(B), ["m1"])
    lab.same("the answer to m3", writer.write("m3"), ok(1))
    lab.same("log(A)", lab.payloads(A), ["m1", "m2"])
    lab.start(A)
    lab.until_isr(A, B)
    lab.step("X-2", "A cuts m2 off and takes m3: the logs are the same")
    lab.same("log(A)", lab.payloads(A), ["m1", "m3"])
    same_logs(lab, A, B)
    lab.same("lost", lab.audit().lost, ("m2",))


@story("X-3", "D2-C3")
def leaders_in_quick_succession(lab: Lab) -> None:
    """A leads, then B, then A again, each with records that the other never saw (KIP-279)."""
    orders(
        lab,
        count=1,
        replicas=(A, B),
        isr_min="1",
        unclean_leader_election_enable="true",
    )
    quick = lab.writer("quick", acks=1)
    lab.hold(B)
    quick.write("a1")
    lab.kill(A)
    lab.release(B)
    lab.until_led(B)
    quick.write("b1")
    quick.write("b2")
    lab.kill(B)
    lab.start(A)
    lab.until_led(A)
    quick.write("a2")
    lab.step("X-3", "A has r0 a1 a2, B has r0 b1 b2: B's last leader epoch is unknown to A")
    lab.same("log(A)", lab.payloads(A), ["r0", "a1", "a2"])
    lab.same("log(B)", lab.payloads(B), ["r0", "b1", "b2"])
    lab.true("A never led in it", max(lab.epochs(B)) not in lab.epochs(A))

    returned_us = lab.now_us
    lab.start(B)
    lab.until_isr(A, B)
    fetch = lab.follower_fetches(A, B, since_us=returned_us)[0]
    lab.step("X-3", "A answers with its largest epoch before that one, and where it ended")
    lab.same("what B asks", (fetch.offset, fetch.last_fetched_leader_epoch), (3, 1))
    lab.same("what A answers", fetch.diverged, (0, 2))
    (cut,) = lab.happenings(B, "FollowerTruncated", since_us=returned_us)
    lab.step("D2-C3", "B cuts at its own end of that epoch, which is smaller")
    lab.same("the cut", (cut.fields["from_end_offset"], cut.fields["to_end_offset"]), (3, 1))
    lab.step("X-3", "the logs are the same")
    same_logs(lab, A, B)
    lab.same("log(B)", lab.payloads(B), ["r0", "a1", "a2"])
