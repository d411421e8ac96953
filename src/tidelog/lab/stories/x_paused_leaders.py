"""Leaders that were paused for longer than their session: they ask before they acknowledge.

Apache Kafka's leader takes what waits in its sockets when it goes on, and says ok to acks=1 before
it hears that another leads: those records are lost.
"""

from __future__ import annotations

from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, NONE, NOT_LEADER, ok, same_logs
from tidelog.lab.story import story
from tidelog.lab.writers import PartitionWriter, WrittenBatch


@story("X-47")
def a_paused_leader_asks_first(lab: Lab) -> None:
    """1 is stopped for longer than its session; five clients with acks=1 write to it meanwhile."""
    orders(lab)
    lab.pause(1)
    waiting = _write_to(lab, 1)
    lab.listen_to(2)
    lab.until_led(2)
    lab.step("X-47", "2 leads, and takes writes")
    lab.same("a write at 2", lab.writer("other").write("other"), ok(10))
    lab.resume(1)
    lab.step("X-47", "what waited in the sockets of 1 is refused, not acknowledged and lost")
    _all_refused(lab, waiting)
    _send_again(lab, waiting)
    lab.until_isr(1, 2, 3)
    lab.until_quiet()
    same_logs(lab, 1, 2, 3)
    lab.step("X-47", "no acknowledged record is lost by the pause")
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-47")
def a_paused_leader_waits_for_the_metadata(lab: Lab) -> None:
    """The controller admits 1 again at its first heartbeat; that 2 leads, 1 has not read yet."""
    orders(lab)
    lab.pause(1)
    lab.listen_to(2)
    lab.until_led(2)
    lab.withhold(CONTROLLER, 1, purpose="quorum")
    lab.resume(1)
    lab.until_unfenced(1)
    lab.step("X-47", "a heartbeat is answered, but 1 still takes itself for the leader")
    waiting = _write_to(lab, 1)
    _all_refused(lab, waiting)
    lab.let_pass(CONTROLLER, 1, purpose="quorum")
    lab.until_isr(1, 2, 3)
    _send_again(lab, waiting)
    lab.until_quiet()
    lab.step("X-47", "no acknowledged record is lost by the pause")
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-47")
def a_paused_controller_does_not_answer_for_itself(lab: Lab) -> None:
    """The leader is on the node of the active controller: both are replaced while it is paused."""
    lab.cluster(controllers=None, profile="tidelog")
    active = lab.quorum().leader_id
    others = [node for node in (1, 2, 3) if node != active]
    lab.create("orders", (active, *others), min_insync_replicas="2")
    lab.fill(10)
    lab.until_quiet()
    lab.pause(active)
    waiting = _write_to(lab, active)
    lab.listen_to(others[0])
    lab.until("another controller", lambda: lab.quorum().leader_id in others)
    lab.until_led(others[0])
    lab.step("X-47", "another node is the controller, and leads")
    lab.same("a write elsewhere", lab.writer("other").write("other"), ok(10))
    lab.resume(active)
    lab.step("X-47", "its own controller is not asked: it has no majority any more")
    _all_refused(lab, waiting)
    _send_again(lab, waiting)
    lab.until_isr(1, 2, 3)
    lab.until_quiet()
    lab.step("X-47", "no acknowledged record is lost by the pause")
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-47")
def a_paused_leader_that_still_leads(lab: Lab) -> None:
    """The only replica is stopped for longer than its session: it asks, and leads again."""
    orders(lab, replicas=(1,), isr_min="1")
    lab.pause(1)
    lab.pass_ms(20_000)
    lab.resume(1)
    lab.step("X-47", "the controller has let it in again, and it goes on by itself")
    lab.until("1 takes writes", lambda: lab.writer("retrying", acks=1).write("after").is_ok)
    confirmed = lab.happenings(1, "LeadershipConfirmed")
    lab.same("confirmations", len(confirmed), 1)
    lab.same("the audit", lab.audit(), CLEAN)


Waiting = list[tuple[PartitionWriter, WrittenBatch]]


def _write_to(lab: Lab, node: int) -> Waiting:
    """Five clients of their own, so that each has a connection with a request in it."""
    writers = [lab.writer(f"hasty-{number}", acks=1) for number in range(5)]
    return [(each, each.begin(each.name, to=node)) for each in writers]


def _all_refused(lab: Lab, waiting: Waiting) -> None:
    answers = [writer.wait(batch).error for writer, batch in waiting]
    lab.same("the answers", answers, [NOT_LEADER] * len(waiting))


def _send_again(lab: Lab, waiting: Waiting) -> None:
    for writer, batch in waiting:
        writer.again(batch)
        lab.same(f"{writer.name} again, at the new leader", writer.wait(batch).error, NONE)
