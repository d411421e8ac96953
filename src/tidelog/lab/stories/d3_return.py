"""Document 3, the old leader's return: what only it had is cut off, what is new is fetched."""

from __future__ import annotations

from tidelog.lab.lab import REPLICA, REQUESTS, Lab
from tidelog.lab.stories.baseline import AT_RISK, COMMITTED, baseline, orders
from tidelog.lab.stories.cast import ok, same_logs
from tidelog.lab.story import story
from tidelog.lab.writers import WrittenBatch


@story(
    "D3-R0", "D3-R1", "D3-R2", "D3-R3", "D3-R4", "D3-R5", "D3-R6", "D3-U7", "D2-G2", "N6"
)  # fmt: skip
def d3_return(lab: Lab) -> None:
    """Broker 1 comes back with 1000–1004 of leader epoch 5 to a log that went on in epoch 6."""
    baseline(lab)
    lab.kill(1)
    lab.release(2, 3)
    lab.until_led(2)
    writer = lab.writer("lucky")
    acks = [writer.write("new 1000"), writer.write("new 1001")]
    lab.step("D3-R0", "2 and 3 have new records at 1000 and 1001, broker 1's disk has old ones")
    lab.same("the answers", acks, [ok(1000), ok(1001)])
    for broker in (2, 3):
        tail = [(each.payload, each.leader_epoch) for each in lab.log(broker)[COMMITTED:]]
        lab.same(f"log({broker})", tail, [("new 1000", 6), ("new 1001", 6)])
    tail = [(each.payload, each.leader_epoch) for each in lab.log(1)[COMMITTED:]]
    lab.same("log(1)", tail, [(payload, 5) for payload in AT_RISK])

    returned_us = lab.now_us
    lab.start(1)
    lab.until_isr(1, 2, 3)
    _the_exchange(lab, returned_us)
    lab.step("D3-R4", "it fetched 1000 and 1001")
    same_logs(lab, 1, 2)
    lab.step("D3-R6", "D2-G2", "the old ones are gone, the new ones are what everybody has")
    same_logs(lab, 1, 2, 3)
    lab.same("log(1)", lab.payloads(1)[COMMITTED:], ["new 1000", "new 1001"])

    lab.until_elected(1)
    lab.step("D3-R5", "a preferred election gives it its leadership back, in leader epoch 7")
    lab.same("the leader epoch", lab.desc().leader_epoch, 7)
    lab.same("lost", lab.audit().lost, AT_RISK)


def _the_exchange(lab: Lab, returned_us: int) -> None:
    fetch = lab.follower_fetches(2, 1, since_us=returned_us)[0]
    lab.step("D3-R1", "broker 1 asks for what follows 1005, after epoch 5, in epoch 6")
    fetched_from = (fetch.offset, fetch.last_fetched_leader_epoch, fetch.current_leader_epoch)
    lab.same("its first fetch", fetched_from, (1005, 5, 6))
    lab.step("D3-R2", "broker 2 answers: epoch 5 ended at 1000, and gives no records")
    lab.same("the divergence", fetch.diverged, (5, 1000))
    assert fetch.answer is not None
    lab.same("bytes of records", len(fetch.answer.records or b""), 0)
    lab.same("the high watermark in it", fetch.answer.high_watermark, 1002)

    (cut,) = lab.happenings(1, "FollowerTruncated", since_us=returned_us)
    lab.step("D3-R3", "broker 1 itself drops 1000–1004")
    lab.same("the cut", (cut.fields["from_end_offset"], cut.fields["to_end_offset"]), (1005, 1000))
    dropped = [(start, end) for start, end, _ in cut.fields["dropped"]]
    lab.same("dropped", dropped, [(offset, offset + 1) for offset in range(1000, 1005)])
    lab.step("D3-U7", "N6", "it cut where epoch 5 ended on broker 2")
    lab.same("the place", cut.fields["to_end_offset"], fetch.answer.diverging_epoch.end_offset)

    (joined,) = lab.happenings(2, "IsrProposed", since_us=returned_us)
    lab.step("D3-R5", "it joined the ISR when its log had reached the high watermark, not before")
    lab.same("the proposed ISR", sorted(joined.fields["isr"]), [1, 2, 3])
    lab.true("after the cut", joined.at_us > cut.at_us)
    lab.same("its log end then", joined.fields["log_end_offset"], 1002)


@story("D3-R2")
def a_fetch_of_another_history_counts_for_nothing(lab: Lab) -> None:
    """2 is deposed while it is in sync, and asks 1 for what follows 15: its own 10–14 are others.

    The high watermark of 1 waits for 2. Whoever counts the fetch before the epochs are compared
    commits 10–14 though 2 lacks them, and acknowledges a record that 2 might lead without.
    """
    orders(lab, replicas=(2, 1, 3))
    lab.create("others", (1, 2))  # so that 2 fetches from 1 already, on the link that it will use
    lab.reassign(1, 2, 3)
    lab.until("1 knows what is committed", lambda: len(lab.read(1)) == 10)
    lab.hold(1, 3)
    old = [f"old {number}" for number in range(10, 15)]
    lab.writer("quick", acks=1).write(*old)
    lab.hold(2, what=REQUESTS)
    lab.elect("preferred")
    lab.until("all know that 1 leads", lambda: all(lab.desc(via=b).leader == 1 for b in (1, 2, 3)))
    for source, target in ((1, 3), (3, 1)):  # what 2 says to 1 stays held
        lab.let_pass(source, target, purpose=REPLICA)
    writer = lab.writer("careful")
    batch = writer.begin(*(f"new {number}" for number in range(10, 15)))
    lab.until_end(3, 15)
    lab.step("D3-R2", "1 and 3 have the new 10–14, 2 has the old ones and is in sync")
    lab.same("end(1), end(2), end(3)", (lab.end(1), lab.end(2), lab.end(3)), (15, 15, 15))
    lab.same("log(2)", lab.payloads(2)[10:], old)
    lab.same("the ISR", lab.desc().isr, (1, 2, 3))
    lab.same("the high watermark", lab.high_watermark(), 10)
    _its_fetch_is_only_compared(lab, batch)
    lab.release(2)
    lab.until_quiet()
    lab.step("D3-R2", "when 2 has cut and copied, its fetch counts, and the write is acknowledged")
    lab.same("the answer", writer.wait(batch), ok(10))
    same_logs(lab, 1, 2, 3)
    lab.same("lost", lab.audit().lost, tuple(old))


def _its_fetch_is_only_compared(lab: Lab, batch: WrittenBatch) -> None:
    """The fetch of 2 reaches its leader, and the answer to it is withheld."""
    withheld_us = lab.now_us
    lab.withhold(1, 2, purpose=REPLICA)
    lab.let_pass(2, 1, purpose=REPLICA)
    lab.until(
        "1 has answered the fetch of 2",
        lambda: any(each.diverged for each in lab.follower_fetches(1, 2, since_us=withheld_us)),
    )
    fetch = next(each for each in lab.follower_fetches(1, 2, since_us=withheld_us) if each.diverged)
    lab.pass_ms(1_000)
    lab.step(
        "D3-R2", "1 answers that 2 must cut at 10, gives no records, and commits nothing by it"
    )
    lab.same("offset, divergence", (fetch.offset, fetch.diverged), (15, (0, 10)))
    assert fetch.answer is not None
    lab.same("bytes of records", len(fetch.answer.records or b""), 0)
    lab.same("the high watermark", lab.high_watermark(), 10)
    lab.same("the answer to acks=all", batch.answer, None)


@story("D3-U7", "N6")
def the_cut_does_not_follow_the_high_watermark(lab: Lab) -> None:
    """Broker 1 knows only the high watermark 990, and yet keeps 990–999: broker 2 has them."""
    orders(lab, count=990)
    lab.hold(2, 3, what=REQUESTS)
    unlucky = lab.writer("unlucky", acks=1)
    unlucky.write(*(f"r{number}" for number in range(990, 1000)))
    lab.until_end(2, 1000)
    lab.until_end(3, 1000)
    lab.hold(2, 3)
    unlucky.write(*AT_RISK)
    lab.step("D3-U7", "the followers have 990–999, but the leader has not heard of it")
    lab.same("end(1), end(2)", (lab.end(1), lab.end(2)), (1005, 1000))
    lab.same("the high watermark", lab.high_watermark(), 990)
    lab.kill(1)
    lab.release(2, 3)
    lab.until_led(2)
    returned_us = lab.now_us
    lab.start(1)
    lab.until_isr(1, 2, 3)
    (cut,) = lab.happenings(1, "FollowerTruncated", since_us=returned_us)
    lab.step("N6", "it cuts at 1000, not at 990")
    lab.same("the cut", (cut.fields["from_end_offset"], cut.fields["to_end_offset"]), (1005, 1000))
    same_logs(lab, 1, 2, 3)
    lab.same("lost", lab.audit().lost, AT_RISK)
