"""Groups in deeper trouble: deaths in the middle of a rebalance or a commit, or together."""

from __future__ import annotations

from tidelog.client.consumer.errors import LogTruncationError
from tidelog.core.wire.messages.api_08_offset_commit import OffsetCommitRequest
from tidelog.core.wire.messages.api_11_join_group import JoinGroupRequest
from tidelog.lab.group_audit import GroupVerdict
from tidelog.lab.lab import Lab
from tidelog.lab.members import LabMember
from tidelog.lab.stories.group_stage import (
    GROUP,
    SESSION,
    committed_offset,
    names,
    offsets_in_sync,
    stage,
)
from tidelog.lab.story import story

JOIN_GROUP = JoinGroupRequest.api_key
OFFSET_COMMIT = OffsetCommitRequest.api_key
NOTHING_WRONG = GroupVerdict()
CUT, READ = 851, 1_001


@story("X-42")
def a_coordinator_dies_in_a_rebalance(lab: Lab) -> None:
    """A second member has asked to join; the coordinator dies before the first one answered it."""
    stage(lab, count=40, replicas=((1, 2, 3), (2, 1, 3)))
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(20)
    assert first.commit().is_ok
    second = lab.consumer("second", group=GROUP, **SESSION)
    lab.at_the_moment(
        "the second has asked to join", lambda: bool(lab.requests(3, JOIN_GROUP, peer="second"))
    )
    lab.kill(3)
    lab.until("they share the partitions", lambda: _share(first, second), within_ms=60_000)
    lab.step("X-42", "the group completes its rebalance on the new coordinator")
    lab.same("coordinator", lab.coordinator(GROUP), 2)
    lab.same("partitions", sorted(first.owned + second.owned), [0, 1])
    lab.true("one generation", first.generation == second.generation)
    lab.step("X-42", "what was committed before is not forgotten")
    lab.same("grp", committed_offset(lab), 20)
    reader = first if first.owned == [0] else second
    reader.read(20)
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)


@story("X-42")
def a_coordinator_dies_in_a_commit(lab: Lab) -> None:
    """The commit is in the coordinator's log and nowhere else when it dies."""
    stage(lab, count=40)
    member = lab.consumer("member", group=GROUP, **SESSION)
    member.read(20)
    assert member.commit().is_ok
    member.read(20)
    lab.hold(1, 2)
    since_us = lab.now_us
    commit = member.begin_commit()
    lab.at_the_moment(
        "the coordinator was asked", lambda: bool(lab.requests(3, OFFSET_COMMIT, since_us=since_us))
    )
    lab.pass_ms(1_000)
    lab.step("X-42", "while no other broker has it, it is not answered")
    lab.same("the outcome so far", commit.outcome, None)
    lab.kill(3)
    lab.release(1, 2)
    outcome = member.wait(commit)
    lab.step("X-42", "the member is not told anything false: the commit goes to the next one")
    lab.true("ok", outcome.is_ok)
    lab.same("coordinator", lab.coordinator(GROUP), 2)
    lab.same("grp", committed_offset(lab), 40)
    lab.start(3)
    offsets_in_sync(lab, 1, 2, 3)
    lab.same("grp when the dead one is back", committed_offset(lab), 40)
    lab.same("assignments", member.rebalances, 1)
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)


@story("X-51")
def coordinator_member_and_leader_die_together(lab: Lab) -> None:
    """One broker coordinates, another leads partition 0, a member reads it: all die at once."""
    replicas = ((1, 2, 4), (2, 4, 5))
    stage(lab, count=60, brokers=(1, 2, 3, 4, 5), replicas=replicas, offsets_on=(3, 4, 5))
    assert lab.writer("other").write(*(f"o{number}" for number in range(60)), index=1).is_ok
    members = [lab.consumer(name, group=GROUP, **SESSION) for name in ("first", "second")]
    lab.until("they share the partitions", lambda: _share(*members), within_ms=60_000)
    victim, heir = sorted(members, key=lambda member: member.owned)
    for member in members:
        member.read(30)
        assert member.commit().is_ok
        member.read(10)
    victim.kill()
    lab.kill(1, 3)
    heir.until_assigned(0, 1)
    heir.read(60 - 30 + 60 - 30)
    lab.step("X-51", "the group settles on the new coordinator")
    lab.same("coordinator", lab.coordinator(GROUP), 4)
    lab.same("leader", lab.leader(), 2)
    lab.step("X-51", "nothing that was committed is read again, nothing is skipped")
    others = tuple(f"o{number}" for number in range(30, 40))
    lab.same("partition 0", lab.audit_group(GROUP), GroupVerdict(twice=names(30, 40)))
    lab.same("partition 1", lab.audit_group(GROUP, index=1), GroupVerdict(twice=others))


@story("X-5")
def a_group_returns_to_a_cut_log(lab: Lab) -> None:
    """1001 was committed with leader epoch 0; an unclean election cut the log to 851."""
    stage(
        lab,
        count=CUT,
        brokers=(1, 2, 3, 4),
        offsets_on=(4,),
        unclean_leader_election_enable="true",
    )
    lab.hold(3)
    writer = lab.writer("before")
    batch = writer.begin(*names(CUT, READ))
    lab.until_isr(1, 2, within_ms=90_000)
    assert writer.wait(batch).is_ok
    before = lab.consumer("before", group=GROUP, **SESSION)
    before.read(READ)
    assert before.commit().is_ok
    before.leave()
    lab.kill(1, 2)
    lab.release(3)
    lab.until_led(3)
    lab.start(1)
    lab.until_isr(1, 3, within_ms=90_000)
    assert lab.writer("after").write(*(f"new {number}" for number in range(CUT, 1_051))).is_ok
    committed = lab.committed(GROUP)
    lab.step("X-5", "the leader epoch was committed with the offset")
    lab.same("grp", committed and (committed.offset, committed.leader_epoch), (READ, 0))
    careful = lab.consumer("careful", group=GROUP, auto_offset_reset="none", **SESSION)
    truncated = careful.poll_until_error(LogTruncationError)
    lab.step("X-5", "without a policy it is an exception that names where the logs part")
    lab.same("the offset", truncated.divergence, CUT)
    careful.leave()
    after = lab.consumer("after", group=GROUP, **SESSION)
    got = after.read(200)
    lab.step("X-5", "with one it goes back to 851: it is never given the new 1001 in silence")
    lab.same("the first record", (got[0].offset, got[0].value), (CUT, b"new 851"))
    lab.same("offsets", after.offsets, list(range(CUT, 1_051)))


def _share(*members: LabMember) -> bool:
    """Whether each of them has one partition."""
    return all(len(member.owned) == 1 for member in members)
