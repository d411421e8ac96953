"""Leaders that are moved or wake up late: what acks=1 risks even without a crash."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, NONE, NOT_LEADER, ok, same_logs
from tidelog.lab.story import story


@story("X-16")
def a_leader_that_was_asleep(lab: Lab) -> None:
    """1 is stopped by SIGSTOP for longer than its session, with requests in its socket buffer."""
    orders(lab)
    lab.pause(1)
    quick = lab.writer("quick", acks=1)
    careful = lab.writer("careful", idempotent=True)
    early = quick.begin("acks=1", to=1)
    kept = careful.begin("acks=all", to=1)
    lab.listen_to(2)
    lab.until_led(2)
    lab.step("X-16", "2 leads and goes on")
    lab.same("a write at 2", lab.writer("other").write("other"), ok(10))
    lab.resume(1)
    lab.until_isr(1, 2, 3)
    lab.step("X-16", "awake again, 1 says ok to nobody: not to acks=all, and not to acks=1 either")
    lab.engine.wait(lambda: kept.answer is not None, within_ms=40_000)
    lab.true("acks=all", not kept.is_ok)
    lab.same("acks=1", quick.wait(early).error, NOT_LEADER)
    careful.again(kept)
    lab.same("its retry at 2", careful.wait(kept).error, NONE)
    lab.until_quiet()
    same_logs(lab, 1, 2, 3)
    lab.step("X-16", "1 follows, with nothing of its own; Kafka loses what it said ok to (X-47)")
    lab.same("lost", lab.audit().lost, ())


@story("X-17")
def a_planned_move_loses_what_acks_1_wrote(lab: Lab) -> None:
    """A preferred election takes a replica that is in sync and a little behind (KAFKA-20554)."""
    orders(lab)
    lab.stop(1)
    lab.until_led(2)
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.hold(1)
    quick = lab.writer("quick", acks=1)
    careful = lab.writer("careful", idempotent=True)
    lab.step("X-17", "2 acknowledges acks=1; 1 is in sync and lacks the record; acks=all waits")
    lab.same("acks=1", quick.write("acks=1"), ok(10))
    kept = careful.begin("acks=all")
    lab.until_end(2, 12)
    lab.same("the election", lab.elect("preferred"), NONE)
    lab.until("1 knows that it leads", lambda: lab.desc(via=1).leader == 1)
    lab.release(1)
    lab.until_led(1)
    lab.engine.wait(lambda: kept.answer is not None, within_ms=40_000)
    lab.same("acks=all", kept.answer and kept.answer.error, NOT_LEADER)
    careful.again(kept)
    lab.same("its retry", careful.wait(kept), ok(10))
    lab.until_quiet()
    lab.step("X-17", "the acknowledged record of acks=1 is gone by a planned move, acks=all is not")
    lab.same("lost", lab.audit().lost, ("acks=1",))
    kinds = [str(each.fields["kind"]) for each in lab.happenings(CONTROLLER, "LeaderElected")]
    lab.same("the move", kinds[-1], "preferred")


@story("X-17")
def a_controlled_shutdown_loses_what_acks_1_wrote(lab: Lab) -> None:
    """The same by SIGTERM: the leadership moves to an in-sync replica that is a little behind."""
    orders(lab)
    lab.hold(2, 3)
    lab.step("X-17", "1 acknowledges acks=1 and is then shut down")
    lab.same("acks=1", lab.writer("quick", acks=1).write("acks=1"), ok(10))
    lab.stop(1)
    lab.release(2, 3)
    lab.until_led(2)
    lab.start(1)
    lab.until_isr(1, 2, 3)
    lab.same("lost", lab.audit().lost, ("acks=1",))


@story("X-20")
def a_leader_that_knows_an_older_sequence(lab: Lab) -> None:
    """An idempotent producer is at 1001 when an unclean election brings a leader that knows 850."""
    orders(lab, count=1, unclean_leader_election_enable="true")
    producer = lab.writer("producer", idempotent=True)
    assert producer.write(*(f"m{number}" for number in range(851))).is_ok
    lab.until_quiet()
    lab.hold(3)
    tail = producer.begin(*(f"m{number}" for number in range(851, 1_002)))
    lab.until_isr(1, 2)
    assert producer.wait(tail).is_ok
    lab.kill(1, 2)
    lab.release(3)
    lab.until_led(3)
    lab.start(1)
    lab.until_isr(1, 3)
    lab.step("X-20", "the next sequence does not follow what 3 knows: refused, nothing stored")
    answer = producer.write("m1002")
    lab.same("the answer", answer.error, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    lab.same("end(3)", lab.end(3), 852)
    lab.step("X-20", "never a silent duplicate or gap")
    verdict = lab.audit()
    lab.same("duplicated, reordered", (verdict.duplicated, verdict.reordered), ((), ()))
    lab.same("lost", len(verdict.lost), 1_002 - 851)


@story("X-20")
def a_producer_that_goes_on_with_a_new_epoch(lab: Lab) -> None:
    """Kafka's own producer meets such a leader: it bumps its epoch, and nothing is doubled."""
    orders(lab, count=1, unclean_leader_election_enable="true")
    producer = lab.producer("producer", enable_idempotence="true", linger_ms="0")
    for number in range(10):
        producer.begin(f"m{number}")
    producer.wait()
    lab.until_quiet()
    lab.hold(3)
    late = [producer.begin(f"m{number}") for number in range(10, 15)]
    lab.until_isr(1, 2)
    producer.wait()
    lab.kill(1, 2)
    lab.release(3)
    lab.until_led(3)
    lab.start(1)
    lab.until_isr(1, 3)
    after = [producer.send(f"m{number}") for number in range(15, 20)]
    lab.step("X-20", "the producer goes on without an error, with records of a new epoch")
    lab.true("all sends were answered with ok", all(each.is_ok for each in late + after))
    tail = [each for each in lab.log(3) if each.payload in {sent.payload for sent in after}]
    lab.same("their producer epochs", {each.producer_epoch for each in tail}, {1})
    lab.same("their sequences", [each.sequence for each in tail], [0, 1, 2, 3, 4])
    lab.step("X-20", "what the unclean election took is lost, nothing is doubled or out of order")
    verdict = lab.audit()
    lab.same("lost", verdict.lost, tuple(sent.payload for sent in late))
    lab.same("duplicated, reordered", (verdict.duplicated, verdict.reordered), ((), ()))


@story("X-46")
def a_rolling_restart(lab: Lab) -> None:
    """Each broker in turn is stopped and started under acks=all load: nobody notices."""
    lab.cluster(profile="tidelog")
    lab.create("orders", (1, 2, 3), min_insync_replicas="2")
    producer = lab.producer("producer", acks="all", linger_ms="0")
    count = 0
    for broker in (1, 2, 3):
        for _ in range(5):
            producer.begin(f"m{count}")
            count += 1
        lab.engine.stop(broker)
        for _ in range(5):
            producer.begin(f"m{count}")
            count += 1
        lab.start(broker)
        lab.until_isr(1, 2, 3)
    producer.wait()
    lab.step("X-46", "no record is lost or doubled, and no send failed")
    lab.same("sends that failed", [each.payload for each in producer.sent if not each.is_ok], [])
    lab.same("the audit", lab.audit(), CLEAN)
    lab.same("records", len(lab.read(lab.leader() or 0)), count)
    lab.until_elected(1)
    lab.step("X-46", "the leadership returns to its preferred broker")
    lab.same("the leader", lab.leader(), 1)
