"""Document 1, what an election is: why it happens, who wins, and what the winner knows."""

from __future__ import annotations

from tidelog.core.formats import file_names
from tidelog.lab import alter_partition
from tidelog.lab.audit import CLEAN
from tidelog.lab.evidence import ProducerEntry, producer_snapshots
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import CONTROLLER, FENCED, NONE, NOT_LEADER, A, B, C, ok
from tidelog.lab.story import story


@story("D1-E1", "D1-T5", "D1-T1", "N8")
def each_election_begins_a_new_leader_epoch(lab: Lab) -> None:
    """A, B and C lead in leader epochs 0, 1 and 2, each with one write."""
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="1")
    writer = lab.writer("writer")
    acks = [writer.write("in epoch 0")]
    for dead, successor, leader_epoch in ((A, B, 1), (B, C, 2)):
        in_sync = lab.desc().isr
        lab.kill(dead)
        lab.until_led(successor)
        lab.step("D1-T5", f"{successor} was in sync before it was elected")
        lab.among("the new leader", successor, in_sync)
        lab.step("D1-T1", f"{dead} crashed: {successor} leads, the ISR is without {dead}")
        lab.same("the leader epoch", lab.desc().leader_epoch, leader_epoch)
        lab.true("the ISR has lost it", dead not in lab.desc().isr)
        acks.append(writer.write(f"in epoch {leader_epoch}"))

    lab.step("D1-E1", "N8", "C knows where each leader's records begin")
    lab.same("the answers", acks, [ok(0), ok(1), ok(2)])
    lab.same("epochs(C)", lab.epochs(C), {0: 0, 1: 1, 2: 2})
    lab.same("leader epochs in log(C)", [each.leader_epoch for each in lab.log(C)], [0, 1, 2])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D1-I1")
def a_sequence_counts_for_one_partition(lab: Lab) -> None:
    """The same sequence goes to two partitions, and twice to one of them."""
    lab.cluster()
    lab.create("orders", (A, B, C), (B, C, A))
    producer = lab.writer("producer", idempotent=True)
    lab.step("D1-I1", "producer id, partition and sequence together name a record")
    first = producer.begin("m0", index=0)
    other = producer.begin("m0 of the other", index=1)
    lab.same("partition 0", producer.wait(first), ok(0))
    lab.same("partition 1", producer.wait(other), ok(0))
    producer.again(first)
    lab.same("partition 0 once more", producer.wait(first), ok(0))
    lab.same("end(A) of partition 0", lab.end(A, 0), 1)
    lab.same("end(B) of partition 1", lab.end(B, 1), 1)


@story("D1-R1")
def a_broker_restarted_just_before_it_is_elected(lab: Lab) -> None:
    """B is killed, recovers its log, is in sync again, and at once has to lead."""
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="2")
    lab.fill(20)
    before = lab.log_bytes(B)
    lab.kill(B)
    lab.until_isr(A, C)
    lab.start(B)
    lab.until_isr(A, B, C)
    lab.kill(A)
    lab.until_led(B)
    lab.step("D1-R1", "B leads with the log that it found on its disk")
    lab.true("log(B) is as before", lab.log_bytes(B) == before)
    lab.until_high_watermark(20)
    lab.same("what consumers get", lab.read(B), [f"r{number}" for number in range(20)])


@story("D1-V1")
def producer_state_is_on_disk(lab: Lab) -> None:
    """B's snapshot file knows the producer; without it B learns the same from its log."""
    lab.cluster()
    lab.create("orders", (A, B, C))
    producer = lab.writer("producer", idempotent=True, first_sequence=100)
    producer.write(*(f"m{number}" for number in range(100, 110)))
    lab.until_quiet()
    lab.stop(B)
    lab.step("D1-V1", "the snapshot names the producer, its epoch and its last sequence")
    files = lab.engine.log_files(B, lab.topic.name, 0)
    lab.same(
        "in B's snapshot", producer_snapshots(files), {producer.producer_id: ProducerEntry(0, 109)}
    )
    lab.engine.delete_file(B, lab.topic.name, 0, suffix=file_names.SNAPSHOT)
    lab.start(B)
    lab.until_isr(A, B, C)
    lab.same(
        "prod(B) from its log alone",
        lab.producers(B),
        {producer.producer_id: ProducerEntry(0, 109)},
    )


@story("D1-T3", "N14", "N38")
def a_leader_cut_off_from_its_controller(lab: Lab) -> None:
    """A lives and hears its followers, but not the controller: it is fenced all the same."""
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="2")
    lab.fill(10)
    cut_us = lab.now_us
    lab.isolate(A, CONTROLLER)
    lab.listen_to(B)
    lab.until_led(B)
    waited_ms = (lab.now_us - cut_us) / 1_000
    lab.until("C knows", lambda: lab.desc(via=C).leader == B)
    lab.step("D1-T3", "A is fenced after its session though it is alive, and B leads")
    lab.same("the leader, as C knows it", lab.desc(via=C).leader, B)
    lab.true("A runs", lab.engine.is_running(A))
    lab.step("N14", "the session counts from the last heartbeat: 3 to 6 s after the cut")
    lab.lasted("milliseconds", waited_ms, 2_900, 6_300)

    lab.step("N38", "A believes that it leads, and can commit nothing")
    lab.same("the leader, as A knows it", lab.desc(via=A).leader, A)
    late = lab.writer("late").begin("late", to=A)
    lab.pass_ms(3_000)
    lab.true("A did not acknowledge", not late.is_ok)
    claim = alter_partition.alter_isr(
        lab, CONTROLLER, leader=A, leader_epoch=0, partition_epoch=0, isr={A: -1}
    )
    lab.same("A's wish for another ISR", claim, FENCED)

    lab.rejoin(A, CONTROLLER)
    lab.until_isr(A, B, C)
    lab.step("D1-T3", "healed, A follows B: what it took alone is cut")
    lab.same("what A says to a writer", lab.writer("lost").write("x", to=A).error, NOT_LEADER)
    lab.same("log(A)", lab.payloads(A), lab.payloads(B))
    lab.same("lost", lab.audit().lost, ())


@story("D1-T3")
def a_leader_cut_off_from_everyone(lab: Lab) -> None:
    """A is alone: B leads after the session, and A is a follower again once it is healed."""
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="2")
    lab.fill(10)
    lab.isolate(A)
    lab.listen_to(B)
    lab.until_led(B)
    lab.step("D1-T3", "A is fenced, B and C go on")
    lab.same("the answer to a writer at B", lab.writer("w").write("after"), ok(10))
    lab.rejoin(A)
    lab.until_isr(A, B, C)
    lab.until_quiet()
    lab.same("log(A)", lab.payloads(A), lab.payloads(B))
    lab.same("the audit", lab.audit(), CLEAN)


@story("D1-T2")
def a_leader_is_shut_down(lab: Lab) -> None:
    """SIGTERM: A's leadership moves before A exits, without any session running out."""
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="2")
    lab.fill(10)
    stopped_us = lab.now_us
    lab.stop(A)
    lab.until_led(B)
    lab.step("D1-T2", "the leadership moved at once, before A was gone")
    (moved,) = lab.happenings(CONTROLLER, "LeaderElected", since_us=stopped_us)
    (gone,) = lab.happenings(A, "NodeStopped")
    lab.lasted("milliseconds", (moved.at_us - stopped_us) / 1_000, 0, 100)
    lab.true("before A was gone", moved.at_us < gone.at_us)
    lab.same("the answer to a writer", lab.writer("w").write("after"), ok(10))
    lab.same("the ISR", lab.desc().isr, (B, C))
    lab.same("the audit", lab.audit(), CLEAN)


@story("D1-T4", "N21")
def a_leader_is_demoted(lab: Lab) -> None:
    """A leads again by a preferred election, and B, deposed but alive, names A to a writer."""
    lab.cluster()
    lab.create("orders", (A, B, C), min_insync_replicas="2")
    lab.fill(10)
    lab.stop(A)
    lab.until_led(B)
    lab.start(A)
    lab.until_isr(A, B, C)
    lab.step("D1-T4", "the controller moves the leadership back to A")
    lab.same("the election", lab.elect("preferred"), NONE)
    lab.until_led(A)
    lab.until("B knows", lambda: lab.desc(via=B).leader == A)
    writer = lab.writer("writer")
    lost = writer.begin("to the old one", to=B)
    lab.same("what B says", writer.wait(lost).error, NOT_LEADER)
    lab.step("N21", "the refusal names the new leader")
    lab.same("the leader that B names", lost.named_leader, (A, lab.desc().leader_epoch))
    writer.again(lost, to=A)
    lab.same("what A says", writer.wait(lost), ok(10))
    lab.same("the audit", lab.audit(), CLEAN)
