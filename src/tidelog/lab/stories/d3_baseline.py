"""Document 3, the baseline and its offsets: what is committed, what is at risk, who sees what."""

from __future__ import annotations

from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import AT_RISK, COMMITTED, baseline
from tidelog.lab.stories.cast import ok
from tidelog.lab.story import story


@story(
    "D3-B1", "D3-B2", "D3-B3", "D3-B4", "D3-B5", "D3-O1", "D3-O3", "D3-O4", "D3-U3", "D3-Q1",
    "D3-Q3", "N9",
)  # fmt: skip
def d3_baseline(lab: Lab) -> None:
    """1000 records are on three brokers, five on one of them, which then dies."""
    unlucky = baseline(lab)
    lab.step("D3-B1", "topic orders, partition 0, three replicas, all of them in sync")
    state = lab.desc()
    lab.same("replicas, ISR", (state.replicas, state.isr), ((1, 2, 3), (1, 2, 3)))
    lab.step("D3-B2", "broker 1 leads with offsets 0–1004, the high watermark is 1000")
    lab.same("the leader and its epoch", (state.leader, state.leader_epoch), (1, 5))
    lab.same("end(1)", lab.end(1), 1005)
    lab.same("the high watermark", lab.high_watermark(), COMMITTED)
    lab.step("D3-B3", "brokers 2 and 3 end at 1000, and their next fetches are under way")
    lab.same("end(2), end(3)", (lab.end(2), lab.end(3)), (1000, 1000))
    lab.step("D3-O1", "the end is the offset of the next record: 1005 follows 1004")
    lab.same("the answer to the next one", unlucky.write("r1005"), ok(1005))
    lab.step("D3-O3", "N9", "the high watermark is the smallest end in the ISR, and exclusive")
    ends = (lab.end(1), lab.end(2), lab.end(3))
    lab.same("min(1006, 1000, 1000)", min(ends), lab.high_watermark())

    lab.step("D3-B4", "D3-O4", "a consumer gets 0–999 and stops at 1000")
    reader = lab.consumer("reader")
    reader.read_to(COMMITTED)
    lab.same("records of one more second", reader.read_for(1_000), [])
    lab.same("its position", reader.position, COMMITTED)
    lab.same("the record before", reader.payloads[-1], "r999")

    waiting = lab.writer("patient").begin("r1006")
    lab.pass_ms(100)
    lab.step("D3-U3", "acks=1 had its ok; a write with acks=all still waits")
    lab.true("acks=1", all(batch.is_ok for batch in lab.batches if batch.acks == 1))
    lab.same("acks=all", waiting.answer, None)

    lab.kill(1)
    lab.release(2, 3)
    lab.until_led(2)
    lab.step("D3-B5", "broker 1 died after it took the records and before a follower had them")
    lab.same("end(2), end(3)", (lab.end(2), lab.end(3)), (1000, 1000))
    lab.until_high_watermark(COMMITTED)
    lab.step("D3-Q1", "everything below the high watermark is there")
    lab.same("records of 2", lab.read(2)[-1], "r999")
    lab.same("their number", len(lab.read(2)), COMMITTED)
    lab.step("D3-Q3", "what only the leader had, and had acknowledged, is lost")
    lab.same("lost", lab.audit().lost, (*AT_RISK, "r1005"))
    lab.step("D3-O4", "nothing that was read is absent later")
    lab.same("read then lost", lab.audit().read_then_lost, ())
