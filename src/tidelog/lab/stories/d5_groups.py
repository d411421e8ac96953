"""Documents 4 and 5 for consumers: where positions are kept, and what racks and controllers matter.

Brokers 1 and 2 are in rack a, 3 and 4 in rack b; the controller, 9, is outside both.
"""

from __future__ import annotations

from tidelog.lab.group_audit import GroupVerdict
from tidelog.lab.lab import Lab
from tidelog.lab.stories.group_stage import GROUP, SESSION, committed_offset, stage
from tidelog.lab.story import story

NOTHING_WRONG = GroupVerdict()
RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


@story("D4-O5", "D4-O8", "N41")
def a_position_is_kept_in_kafka_or_elsewhere(lab: Lab) -> None:
    """One consumer commits to its group, the other writes its position into a table of its own."""
    stage(lab, count=100)
    table: dict[str, int] = {}
    in_kafka = lab.consumer("in kafka", group=GROUP, **SESSION)
    elsewhere = lab.consumer("elsewhere")
    in_kafka.read(60)
    assert in_kafka.commit().is_ok
    elsewhere.read_for(500)
    table["orders-0"] = 60  # with the results of 0 to 59, in one transaction of a database
    in_kafka.leave()
    lab.step("D4-O5", "D4-O8", "N41", "to a consumer an offset is a position: the next one to read")
    lab.same("grp", committed_offset(lab), 60)
    lab.same("the brokers know of no position but the group's", committed_offset(lab, "x"), None)
    member = lab.consumer("member", group=GROUP, **SESSION)
    member.read(40)
    sought = lab.consumer("sought")
    sought.seek(table["orders-0"])
    sought.read_to(100)
    lab.step("D4-O5", "both go on where they stopped: by the commit, and by a seek")
    lab.same("from the group", member.offsets, list(range(60, 100)))
    lab.same("from the table", [each.offset for each in sought.got], member.offsets)
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)


@story("D5-R12", "D5-K3", "N49")
def a_rack_with_leader_and_coordinator_is_lost(lab: Lab) -> None:
    """Rack a has the partition's leader and the group's coordinator; its power fails."""
    stage(
        lab,
        count=100,
        brokers=tuple(RACKS),
        racks=RACKS,
        replicas=((1, 3, 4),),
        offsets_on=(2, 3, 4),
    )
    member = lab.consumer("member", group=GROUP, **SESSION)
    member.read(50)
    assert member.commit().is_ok
    generation = member.generation
    lab.kill(1, 2)
    member.read(50)
    assert member.commit().is_ok
    lab.step("D5-R12", "rack b leads and coordinates; the member reads and commits on")
    lab.same("leader, coordinator", (lab.leader(), lab.coordinator(GROUP)), (3, 3))
    lab.same("offsets", member.offsets, list(range(100)))
    lab.same("grp", committed_offset(lab), 100)
    lab.step("D5-K3", "N49", "there was no rebalance")
    lab.same("assignments, generation", (member.rebalances, member.generation), (1, generation))
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)


@story("D5-K3", "N49")
def a_group_needs_no_controller(lab: Lab) -> None:
    """The only controller dies: members join, read and commit, as long as no broker dies too."""
    stage(lab, count=100, replicas=((1, 2, 3), (2, 3, 1)))
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(50)
    assert first.commit().is_ok
    lab.kill(9)
    lab.pass_ms(10_000)
    first.read(20)
    lab.step("N49", "nothing happens to the group")
    lab.true("a commit is ok", first.commit().is_ok)
    lab.same("assignments", first.rebalances, 1)
    second = lab.consumer("second", group=GROUP, **SESSION)
    members = (first, second)
    lab.until("they share", lambda: all(len(each.owned) == 1 for each in members))
    reader = first if first.owned == [0] else second
    reader.read(30)
    lab.step("D5-K3", "a group coordinates itself: another member joins, and the work is shared")
    lab.same("partitions", sorted(first.owned + second.owned), [0, 1])
    lab.same("the group's audit", lab.audit_group(GROUP), NOTHING_WRONG)
