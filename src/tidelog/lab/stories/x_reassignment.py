"""Partitions that move to other brokers: who counts when, the way back, and what acks=1 risks."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import NONE, NOT_LEADER, ok, same_logs
from tidelog.lab.story import story

CONTROLLER = 9


def on_1_2_3(lab: Lab, brokers: int = 6) -> None:
    """`orders` on 1, 2 and 3 with ten records, and brokers that have nothing yet."""
    lab.cluster(tuple(range(1, brokers + 1)), controllers=(CONTROLLER,))
    lab.create("orders", (1, 2, 3), min_insync_replicas="2")
    lab.fill(10)


@story("X-40")
def a_partition_moves_to_other_brokers(lab: Lab) -> None:
    """From 1, 2 and 3 to 4, 5 and 6, under acks=all; 2 is killed on the way."""
    on_1_2_3(lab)
    reader = lab.consumer("reader", auto_offset_reset="earliest")
    writer = lab.writer("writer", idempotent=True)
    lab.hold(4, 5, 6)
    lab.step("X-40", "new replicas are in the assignment and count for nothing until in sync")
    lab.same("the reassignment", lab.reassign(4, 5, 6), NONE)
    lab.until("it has begun", lambda: lab.desc().replicas == (4, 5, 6, 1, 2, 3))
    lab.same("the ISR", lab.desc().isr, (1, 2, 3))
    lab.same("a write that none of them has", writer.write("before"), ok(10))
    lab.same("leader and leader epoch", (lab.desc().leader, lab.desc().leader_epoch), (1, 0))
    lab.kill(2)
    lab.until_isr(1, 3)
    lab.release(4, 5)
    lab.until_isr(1, 3, 4, 5)
    lab.step("X-40", "it ends with the last of them, not before")
    lab.same("the replicas", lab.desc().replicas, (4, 5, 6, 1, 2, 3))
    lab.release(6)
    lab.until_isr(4, 5, 6)
    lab.same("the replicas", lab.desc().replicas, (4, 5, 6))
    lab.same("the leader", lab.desc().leader, 4)
    lab.same("a write", writer.write("after"), ok(11))
    lab.until_quiet()
    same_logs(lab, 4, 5, 6)
    lab.start(2)
    lab.step("X-40", "whoever was dropped keeps nothing, none lost")
    lab.until("2 has deleted it", lambda: lab.log(2) == [])
    lab.same("the logs of 1 and 3", (lab.log(1), lab.log(3)), ([], []))
    lab.same("records that were read", len(reader.read_to(12)), 12)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-40")
def a_reassignment_is_cancelled(lab: Lab) -> None:
    """5 is dead, so the move to 4, 5 and 6 cannot end; it is called off, with 4 in sync already."""
    on_1_2_3(lab)
    writer = lab.writer("writer", idempotent=True)
    lab.kill(5)
    lab.step("X-40", "with a new replica that is dead it cannot end, and writes go on")
    lab.same("the reassignment", lab.reassign(4, 5, 6), NONE)
    lab.until_isr(1, 2, 3, 4, 6)
    lab.same("a write", writer.write("meanwhile"), ok(10))
    lab.step("X-40", "cancelled, it has the replicas that it had, and all that was acknowledged")
    lab.same("the cancellation", lab.reassign(), NONE)
    lab.until("it is called off", lambda: sorted(lab.desc().replicas) == [1, 2, 3])
    lab.until_isr(1, 2, 3)
    lab.same("the leader", lab.desc().leader, 1)
    lab.until("4 has deleted it", lambda: lab.log(4) == [])
    none = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    lab.same("another cancellation", lab.reassign(), none)
    lab.same("a write", writer.write("after"), ok(11))
    lab.start(5)
    lab.until_quiet()
    same_logs(lab, 1, 2, 3)
    lab.same("the audit", lab.audit(), CLEAN)


@story("D1-T4")
def a_leader_is_moved_away(lab: Lab) -> None:
    """1 leads and is replaced by 4: 2 leads, and 1, which has no log any more, names 2."""
    on_1_2_3(lab, brokers=4)
    lab.step("D1-T4", "a reassignment takes the leadership from 1")
    lab.same("the reassignment", lab.reassign(2, 3, 4), NONE)
    lab.until_led(2)
    lab.until("1 knows", lambda: lab.desc(via=1).leader == 2)
    writer = lab.writer("writer")
    lost = writer.begin("to the old one", to=1)
    lab.same("what 1 says", writer.wait(lost).error, NOT_LEADER)
    lab.same("the leader that 1 names", lost.named_leader, (2, lab.desc().leader_epoch))
    writer.again(lost, to=2)
    lab.same("what 2 says", writer.wait(lost), ok(10))
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-17")
def a_reassignment_loses_what_acks_1_wrote(lab: Lab) -> None:
    """The leader is moved away while the next in line, in sync, is a little behind."""
    on_1_2_3(lab, brokers=4)
    lab.hold(2, 3)
    lab.step("X-17", "1 acknowledges acks=1; 2 and 3 lack the record; then 1 is moved away")
    lab.same("acks=1", lab.writer("quick", acks=1).write("acks=1"), ok(10))
    lab.same("the reassignment", lab.reassign(2, 3, 4), NONE)
    lab.until("2 knows that it leads", lambda: lab.desc(via=2).leader == 2)
    lab.release(2, 3)
    lab.until_isr(2, 3, 4)
    lab.until_quiet()
    lab.step("X-17", "the record is gone by a planned move, and the controller names it")
    lab.same("lost", lab.audit().lost, ("acks=1",))
    lab.same("moves", len(lab.happenings(CONTROLLER, "ReassignmentEnded")), 1)
