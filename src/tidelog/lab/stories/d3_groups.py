"""Document 3 for consumers of a group: what is read again, and what never, after which death.

Records are named by their offsets: r0, r1, ... The group is `order-processors`.
"""

from __future__ import annotations

from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest
from tidelog.lab.group_audit import GroupVerdict
from tidelog.lab.lab import Lab
from tidelog.lab.stories.group_stage import (
    GROUP,
    SESSION,
    SESSION_MS,
    committed_offset,
    names,
    offsets_in_sync,
    stage,
)
from tidelog.lab.story import story

NOTHING_WRONG = GroupVerdict()
HEARTBEAT = HeartbeatRequest.api_key
HEARTBEAT_MS = 2_000


@story("D3-F1", "D4-O8", "N41")
def a_fetch_from_1000_is_committed_as_1100(lab: Lab) -> None:
    """The group has committed 1000. A member reads 1000 to 1099 and commits; another goes on."""
    stage(lab, count=1_200)
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(1_000)
    assert first.commit().is_ok
    lab.step("D3-F1", "it is given 1000 to 1099, which lie below the high watermark")
    got = first.read(100)
    lab.same("offsets", [each.offset for each in got], list(range(1_000, 1_100)))
    lab.true("the high watermark is behind them", lab.high_watermark() >= 1_100)
    lab.step("D3-F1", "D4-O8", "N41", "it commits the next offset to read, not the last one read")
    lab.true("the commit is answered ok", first.commit().is_ok)
    lab.same("grp", committed_offset(lab), 1_100)
    first.leave()
    second = lab.consumer("second", group=GROUP, **SESSION)
    second.read(100)
    lab.step("D3-F1", "the next member begins there")
    lab.same("offsets", second.offsets, list(range(1_100, 1_200)))
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)


@story("D3-F2", "N13")
def a_leader_dies_in_a_members_fetch(lab: Lab) -> None:
    """Its fetch at 1000 waits at the leader for new records when the leader dies."""
    stage(lab, count=1_000)
    member = lab.consumer("member", group=GROUP, **SESSION)
    member.read(1_000)
    assert member.commit().is_ok
    member.read_for(200)  # the next fetch waits at 1
    lab.kill(1)
    lab.until_led(2)
    answer = lab.writer("writer").write(*names(1_000, 1_100))
    lab.step("D3-F2", "N13", "the same fetch goes to broker 2: 1000 to 1099 come once")
    lab.same("written at", answer.offset, 1_000)
    lab.same("offsets", [each.offset for each in member.read(100)], list(range(1_000, 1_100)))
    lab.step("D3-F2", "it commits 1100, and nothing came twice or is missing")
    lab.true("the commit is answered ok", member.commit().is_ok)
    lab.same("grp", committed_offset(lab), 1_100)
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)


@story("D3-A1a", "D3-A1b", "N35")
def a_commit_every_five_seconds(lab: Lab) -> None:
    """0 to 99 were committed after 5 s; the consumer dies with 100 to 199 in its hands."""
    stage(lab, count=200)
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(100)
    lab.pass_ms(5_000)
    assert first.commit().is_ok  # the poll at 5 s commits what the one before it gave
    first.read(100)
    lab.pass_ms(100)
    first.kill()
    died_us = lab.now_us
    second = lab.consumer("second", group=GROUP, **SESSION)
    second.read(100)
    idle_ms = (second.got[0].at_us - died_us) / 1_000
    verdict = lab.audit_group(GROUP)
    lab.step("D3-A1a", "the next one begins with 100: no loss, 100 to 199 again")
    lab.same("offsets", second.offsets, list(range(100, 200)))
    lab.same("delivered twice", verdict.twice, names(100, 200))
    lab.same("skipped", verdict.skipped, ())
    lab.same("which is", verdict.semantics, "at least once")
    lab.same("broken promises", verdict.broken, ())
    lab.step("D3-A1b", "N35", "it is given them when the dead one's session is over, not before")
    lab.lasted("ms without a reader", idle_ms, SESSION_MS - HEARTBEAT_MS, SESSION_MS + 2_000)


@story("D3-A2")
def a_crash_between_two_commits(lab: Lab) -> None:
    """100 is committed, 100 to 150 are processed, the consumer dies."""
    stage(lab, count=200)
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(100)
    assert first.commit().is_ok
    first.read(51)
    first.kill()
    second = lab.consumer("second", group=GROUP, **SESSION)
    second.read(100)
    verdict = lab.audit_group(GROUP)
    lab.step("D3-A2", "the next one begins at 100: 100 to 150 come twice, all others once")
    lab.same("offsets", second.offsets, list(range(100, 200)))
    lab.same("delivered twice", verdict.twice, names(100, 151))
    lab.same("skipped", verdict.skipped, ())
    lab.same("broken promises", verdict.broken, ())


@story("N36")
def a_commit_that_runs_ahead_of_the_work(lab: Lab) -> None:
    """A consumer commits 150 when it has only got to 100, and dies: at most once."""
    stage(lab, count=200)
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(100)
    assert first.commit(150).is_ok
    first.kill()
    second = lab.consumer("second", group=GROUP, **SESSION)
    second.read(50)
    verdict = lab.audit_group(GROUP)
    lab.step("N36", "nobody is ever given 100 to 149, though they are in the log")
    lab.same("offsets", second.offsets, list(range(150, 200)))
    lab.same("skipped", verdict.skipped, names(100, 150))
    lab.same("delivered twice", verdict.twice, ())
    lab.same("which is", verdict.semantics, "at most once")
    lab.same("broken promises", verdict.broken, ())


@story("D3-K2", "D4-C4")
def consumer_leader_and_coordinator_die_together(lab: Lab) -> None:
    """500 is committed; the consumer and the broker that leads and coordinates die."""
    stage(lab, count=1_000, offsets_on=(1, 2, 3))
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(500)
    assert first.commit().is_ok
    first.kill()
    lab.kill(1)
    second = lab.consumer("second", group=GROUP, **SESSION)
    second.read(500)
    lab.step("D3-K2", "another broker leads and coordinates; the new consumer begins at 500")
    lab.same("leader, coordinator", (lab.leader(), lab.coordinator(GROUP)), (2, 2))
    lab.same("offsets", second.offsets, list(range(500, 1_000)))
    lab.step("D4-C4", "the group's offset was kept for it, by group and partition")
    lab.same("grp", committed_offset(lab), 500)
    lab.same("another group", committed_offset(lab, "others"), None)
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)


@story("D3-K3", "N17", "N49")
def no_death_of_a_broker_is_a_rebalance(lab: Lab) -> None:
    """First the leader of the data dies, then the group's coordinator."""
    stage(lab, count=100, offsets_on=(3, 2, 1))
    member = lab.consumer("member", group=GROUP, **SESSION)
    member.read(40)
    assert member.commit().is_ok
    generation = member.generation
    lab.step("D3-K3", "heartbeats go to the coordinator, and to no other broker")
    lab.pass_ms(3 * HEARTBEAT_MS)
    seen = {node for node in (1, 2, 3) if lab.requests(node, HEARTBEAT, peer="member")}
    lab.same("brokers that got some", seen, {3})
    lab.kill(1)
    member.read(30)
    assert member.commit().is_ok
    lab.step(
        "D3-K3", "N17", "the leader dies: the member fetches elsewhere, and stays in its group"
    )
    lab.same("leader", lab.leader(), 2)
    lab.same("assignments, generation", (member.rebalances, member.generation), (1, generation))
    lab.start(1)
    lab.until_isr(1, 2, 3)
    offsets_in_sync(lab, 1, 2, 3)
    lab.kill(3)
    member.read(30)
    assert member.commit().is_ok
    lab.pass_ms(SESSION_MS)
    lab.step("D3-K3", "N49", "the coordinator dies: the next one knows the group, and goes on")
    lab.same("coordinator", lab.coordinator(GROUP), 2)
    lab.same("assignments, generation", (member.rebalances, member.generation), (1, generation))
    lab.same("grp", committed_offset(lab), 100)
    lab.same("offsets", member.offsets, list(range(100)))
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)


@story("N35")
def a_member_that_overslept(lab: Lab) -> None:
    """Its process stands still for longer than its session; another has its partition by then."""
    stage(lab, count=200)
    sleeper = lab.consumer("sleeper", group=GROUP, **SESSION)
    sleeper.read(100)
    assert sleeper.commit().is_ok
    sleeper.read(20)
    sleeper.pause()
    late = sleeper.begin_commit()  # 120, on its way when the process is stopped
    heir = lab.consumer("heir", group=GROUP, **SESSION)
    heir.read(60)
    assert heir.commit().is_ok
    sleeper.resume()
    outcome = sleeper.wait(late)
    lab.step("N35", "what it commits when it wakes up is refused, and does not count")
    lab.true("refused", not outcome.is_ok)
    lab.same("grp", committed_offset(lab), 160)
    verdict = lab.audit_group(GROUP)
    lab.same("delivered twice", verdict.twice, names(100, 120))
    lab.same("broken promises", verdict.broken, ())
