"""Document 1, step by step: an idempotent producer's batch 100–109 over the death of its leader.

The batch is one batch, so it is stored as a whole or not at all (N19). In one walk B had copied it
when A died, in the other B had not. The producer cannot tell; it sends the same bytes again, and in
both the ten records stand in the log once.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.record_batch import read_header
from tidelog.lab.audit import CLEAN
from tidelog.lab.evidence import ProducerEntry
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import A, B, C, ok, same_logs
from tidelog.lab.story import story
from tidelog.lab.writers import PartitionWriter, WrittenBatch

FIRST_TEN = tuple(f"m{number}" for number in range(100, 110))
NEXT_TEN = tuple(f"m{number}" for number in range(110, 120))


@story(
    "D1-W1", "D1-W2a", "D1-W3", "D1-W5a", "D1-W6", "D1-W7",
    "D1-F2", "D1-I2", "D1-R2", "D1-R3", "D1-V2", "D1-V3", "N18", "N20",
)  # fmt: skip
def d1_walk_b_has_the_batch(lab: Lab) -> None:
    """A dies after B copied the batch and before it was acknowledged; the retry is a duplicate."""
    producer, batch = _a_leads_and_takes_the_batch(lab, held=(C,))
    lab.until_end(B, 10)
    known = _known(lab, producer)
    before = lab.log_bytes(B)

    lab.kill(A)
    lab.step("D1-W2a", "A dies in mid-write: B has the batch, its producer has no answer")
    lab.engine.wait(lambda: batch.answer is not None, within_ms=1_000)
    lab.same("the producer's answer has no error", batch.answer and batch.answer.error, None)
    lab.until_led(B)

    lab.step("D1-W3", "D1-R2", "B leads; nothing was cut, not a byte of its log changed")
    lab.true("log(B) is as before", lab.log_bytes(B) == before)
    lab.step("D1-F2", "D1-I2", "B knows at once where this producer stopped")
    lab.same("prod(B)", _known(lab, producer), ProducerEntry(0, 109))
    lab.step("N20", "and it knew so as a follower already")
    lab.same("prod(B) before the election", known, ProducerEntry(0, 109))

    _retry_of_a_known_batch(lab, producer, batch)
    _the_next_ten(lab, producer)


def _retry_of_a_known_batch(lab: Lab, producer: PartitionWriter, batch: WrittenBatch) -> None:
    producer.again(batch)
    lab.pass_ms(1_000)
    lab.step("N18", "the answer waits until the high watermark covers the batch: C lacks it still")
    lab.same("the answer", batch.answer, None)
    lab.release(C)
    lab.step("D1-W5a", "D1-V2", "the retry is recognised: the first offset, nothing appended")
    lab.same("the answer", producer.wait(batch), ok(0))
    lab.same("end(B)", lab.end(B), 10)


@story(
    "D1-W1",
    "D1-W2b",
    "D1-W3",
    "D1-W5b",
    "D1-W6",
    "D1-W7",
    "D1-F1",
    "D1-R3",
    "D1-V3",
    "N19",
)
def d1_walk_b_has_it_not(lab: Lab) -> None:
    """A dies before anybody copied the batch; the retry is appended, once, in the new epoch."""
    producer, batch = _a_leads_and_takes_the_batch(lab, held=(B, C))
    lab.kill(A)
    lab.release(B, C)
    lab.step("D1-W2b", "N19", "A dies in mid-write: of the one batch B has nothing, not a part")
    lab.same("end(B)", lab.end(B), 0)
    lab.until_led(B)
    lab.step("D1-W3", "B leads and knows nothing of the producer")
    lab.same("prod(B)", lab.producers(B), {})
    lab.step("D1-F1", "the history has a call without an answer")
    lab.same("the answer has no error", batch.answer and batch.answer.error, None)

    producer.again(batch)
    lab.step("D1-W5b", "the retry is appended once, in leader epoch 1")
    lab.same("the answer", producer.wait(batch), ok(0))
    lab.same("leader epochs", {each.leader_epoch for each in lab.log(B)}, {1})
    _the_next_ten(lab, producer)


@story("D1-W4")
def a_producer_retries_by_itself(lab: Lab) -> None:
    """Kafka's producer, which numbers its batches itself, over the death of their leader.

    What it sent first is what A's disk holds, what it sends again is what B is asked to store.
    """
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="2")
    producer = lab.producer("producer", enable_idempotence="true", linger_ms="50")
    producer.send("m99")
    lab.hold(B, C)
    sent = [producer.begin(name) for name in FIRST_TEN]
    lab.until_end(A, 11)
    lab.kill(A)
    killed_us = lab.now_us
    lab.release(B, C)
    lab.until_led(B)
    producer.wait(*sent)

    lab.step("D1-W4", "A has records 1 to 10 of one producer id and epoch, unacknowledged")
    first = lab.log(A)[1:]
    lab.same("payloads", [each.payload for each in first], list(FIRST_TEN))
    lab.same("sequences", [each.sequence for each in first], list(range(1, 11)))
    identities = {(each.producer_id, each.producer_epoch) for each in first}
    lab.same("identities", len(identities), 1)
    lab.step("D1-W4", "what B was asked to store carries the same identity and sequences")
    seen = _numbers_sent_to(lab, B, since_us=killed_us)
    lab.same("identities", {each[:2] for each in seen}, identities)
    lab.same("sequences", sorted({each[2] for each in seen}), list(range(1, 11)))
    lab.same("offsets", [each.offset for each in sent], list(range(1, 11)))
    lab.same("the audit", lab.audit(), CLEAN)


def _numbers_sent_to(lab: Lab, node: int, *, since_us: int) -> list[tuple[int, int, int]]:
    """Producer id, producer epoch and sequence of each record in the produce requests to a node."""
    found = []
    for seen in lab.requests(node, ProduceRequest.api_key, since_us=since_us):
        assert isinstance(seen.request, ProduceRequest)
        header = read_header(seen.request.topic_data[0].partition_data[0].records or b"")
        sequences = range(header.base_sequence, header.base_sequence + header.records_count)
        found += [(header.producer_id, header.producer_epoch, each) for each in sequences]
    return found


@story("D1-F1", "N19")
def ten_batches_of_which_a_prefix_survives(lab: Lab) -> None:
    """Sequences 100–109 as ten batches: some acknowledged, some in flight, B has a prefix."""
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="2")
    producer = lab.writer("producer", idempotent=True, first_sequence=100)
    acknowledged = [producer.write(name) for name in FIRST_TEN[:5]]
    lab.hold(C)
    on_two = _one_after_another(lab, producer, FIRST_TEN[5:8], first_end=6)
    lab.until_end(B, 8)
    lab.hold(B)
    on_one = _one_after_another(lab, producer, FIRST_TEN[8:], first_end=9)
    lab.kill(A)
    lab.release(B, C)
    lab.until_led(B)

    lab.step("D1-F1", "part of 100–109 was acknowledged, part was in flight at the crash")
    lab.same("acknowledged", [each.offset for each in acknowledged], [0, 1, 2, 3, 4])
    lab.true("the others have no answer", all(not each.is_ok for each in on_two + on_one))
    lab.step("N19", "B has a prefix of them, and at most five are to be sent again")
    lab.same("log(B)", lab.payloads(B), list(FIRST_TEN[:8]))
    offsets = []
    for batch in on_two + on_one:
        producer.again(batch)
        offsets.append(producer.wait(batch).offset)
    lab.same("offsets of the retries", offsets, [5, 6, 7, 8, 9])
    lab.same("log(B)", lab.payloads(B), list(FIRST_TEN))
    lab.same("the audit", lab.audit(), CLEAN)


def _one_after_another(
    lab: Lab, producer: PartitionWriter, names: Sequence[str], *, first_end: int
) -> list[WrittenBatch]:
    """The leader has each before the next is sent; nobody waits for an answer."""
    batches = []
    for end_offset, name in enumerate(names, first_end):
        batches.append(producer.begin(name))
        lab.until_end(A, end_offset)
    return batches


def _a_leads_and_takes_the_batch(
    lab: Lab, held: tuple[int, ...]
) -> tuple[PartitionWriter, WrittenBatch]:
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="2")
    producer = lab.writer("producer", idempotent=True, first_sequence=100)
    lab.until_quiet()
    lab.hold(*held)
    batch = producer.begin(*FIRST_TEN)
    lab.until_end(A, 10)
    lab.step("D1-W1", "A leads, and the batch 100–109 is sent to it")
    lab.same("the leader", lab.leader(), A)
    lab.same("prod(A)", lab.producers(A), {producer.producer_id: ProducerEntry(0, 109)})
    lab.same("sequences in log(A)", [each.sequence for each in lab.log(A)], list(range(100, 110)))
    return producer, batch


def _known(lab: Lab, producer: PartitionWriter) -> ProducerEntry:
    return lab.producers(B)[producer.producer_id]


def _the_next_ten(lab: Lab, producer: PartitionWriter) -> None:
    lab.step("D1-W6", "D1-V3", "110–119 is appended at the next ten offsets")
    lab.same("the answer", producer.write(*NEXT_TEN), ok(10))
    lab.same("end(B)", lab.end(B), 20)
    lab.same("prod(B)", _known(lab, producer), ProducerEntry(0, 119))
    lab.start(A)
    lab.until_isr(A, B, C)
    lab.until_quiet()
    lab.step("D1-W7", "none is lost, none is there twice, the order is kept")
    lab.same("log(B)", lab.payloads(B), list(FIRST_TEN + NEXT_TEN))
    lab.same("the audit", lab.audit(), CLEAN)
    lab.step("D1-R3", "after quiet the logs of all replicas are the same, byte for byte")
    same_logs(lab, A, B, C)
