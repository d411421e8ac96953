"""Document 3, the committed offsets themselves are lost: one replica, on a broker that dies (S4).

`__consumer_offsets` is on broker 4 alone, `orders` on 1, 2 and 3. The group did 0 to 500, so it has
committed 501 when broker 4 dies; 1000 records are in the log.
"""

from __future__ import annotations

from tidelog.client.consumer.errors import NoOffset
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.lab.group_audit import GroupVerdict
from tidelog.lab.lab import Lab
from tidelog.lab.stories.group_stage import (
    GROUP,
    SESSION,
    committed_offset,
    names,
    offsets_in_sync,
    stage,
)
from tidelog.lab.story import story

BROKERS = (1, 2, 3, 4)
DONE, ALL = 501, 1_000
GROUP_2, GROUP_3 = "order-mailers", "order-auditors"


@story("D3-S4a", "N33")
def the_only_broker_with_the_offsets_is_dead(lab: Lab) -> None:
    """Nobody coordinates the group: who reads reads on, who begins waits, nothing is skipped."""
    stage(lab, count=ALL, brokers=BROKERS, offsets_on=(4,))
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(DONE)
    assert first.commit().is_ok
    lab.kill(4)
    first.read(100)
    lab.step("N33", "a member that runs keeps its position and reads on")
    lab.same("offsets", first.offsets, list(range(DONE + 100)))
    first.kill()
    second = lab.consumer("second", group=GROUP, auto_offset_reset="latest", **SESSION)
    lab.step("D3-S4a", "FindCoordinator is refused, and a new consumer waits")
    lab.until("broker 4 is known to be dead", lambda: 4 not in lab.unfenced())
    error, _ = lab.groups.find_coordinator(GROUP, via=1)
    lab.same("the answer", error, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    lab.same("records after 10 s", second.read_for(10_000), [])
    lab.start(4)
    second.read(ALL - DONE)
    lab.step("D3-S4a", "N33", "when the broker is back with its disk, the group goes on at 501")
    lab.same("offsets", second.offsets, list(range(DONE, ALL)))
    verdict = lab.audit_group(GROUP)
    lab.same("delivered twice", verdict.twice, names(DONE, DONE + 100))
    lab.same("skipped, broken", (verdict.skipped, verdict.broken), ((), ()))


@story("D3-S4b", "N33")
def the_only_copy_of_the_offsets_is_lost(lab: Lab) -> None:
    """Broker 4 returns without its offsets: what a consumer does then is auto.offset.reset."""
    stage(lab, count=ALL, brokers=BROKERS, offsets_on=(4,))
    for group in (GROUP, GROUP_2, GROUP_3):
        first = lab.consumer(f"first of {group}", group=group, **SESSION)
        first.read(DONE)
        assert first.commit().is_ok
        first.leave()
    lab.kill(4)
    for suffix in (".log", ".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"):
        lab.engine.delete_file(4, OFFSETS_TOPIC, 0, suffix=suffix)
    lab.start(4)
    lab.step("D3-S4b", "N33", "its partition is there again, and empty: the group has no offset")
    lab.same("grp", committed_offset(lab), None)
    latest = lab.consumer("latest", group=GROUP, auto_offset_reset="latest", **SESSION)
    lab.until("it stands at the end", lambda: _polled(latest.poll()) and latest.position() == ALL)
    assert lab.writer("later").write("r1000").is_ok
    latest.read(1)
    verdict = lab.audit_group(GROUP)
    lab.step("D3-S4b", "latest begins at 1000: 501 to 999 are skipped, and still in the log")
    lab.same("offsets", latest.offsets, [ALL])
    lab.same("skipped", verdict.skipped, names(DONE, ALL))
    lab.same("delivered twice", verdict.twice, ())
    lab.step("D3-S4b", "the audit names the promise that was broken: a commit was forgotten")
    lab.true("commit forgotten", verdict.broken[0].startswith("commit forgotten"))
    earliest = lab.consumer("earliest", group=GROUP_2, **SESSION)
    earliest.read(ALL + 1)
    verdict = lab.audit_group(GROUP_2)
    lab.step("D3-S4b", "earliest reads everything again: 0 to 500 twice, nothing skipped")
    lab.same("delivered twice", verdict.twice, names(0, DONE))
    lab.same("skipped", verdict.skipped, ())
    none = lab.consumer("none", group=GROUP_3, auto_offset_reset="none", **SESSION)
    error = none.poll_until_error(NoOffset)
    lab.step("D3-S4b", "none reads nothing: poll raises, and the program must decide")
    lab.same("the partition, records", (str(error.partition), none.got), ("orders-0", []))


@story("D3-S4c")
def with_three_copies_of_the_offsets_nothing_happens(lab: Lab) -> None:
    """The same death with three replicas: the group goes on at 501."""
    stage(lab, count=ALL, brokers=BROKERS, offsets_on=(4, 1, 2))
    first = lab.consumer("first", group=GROUP, **SESSION)
    first.read(DONE)
    assert first.commit().is_ok
    first.kill()
    lab.kill(4)
    second = lab.consumer("second", group=GROUP, auto_offset_reset="latest", **SESSION)
    second.read(ALL - DONE)
    lab.step("D3-S4c", "broker 1 coordinates, and knows what was committed")
    lab.same("coordinator", lab.coordinator(GROUP), 1)
    lab.same("offsets", second.offsets, list(range(DONE, ALL)))
    lab.same("the group's audit", lab.audit_group(GROUP), GroupVerdict())


@story("N34")
def a_commit_needs_a_second_broker(lab: Lab) -> None:
    """Of three replicas of the offsets two are dead: with our minimum of 2 no commit is ok."""
    stage(lab, count=100, offsets_on=(3, 2, 1), replicas=((3, 2, 1),), min_insync_replicas="1")
    member = lab.consumer("member", group=GROUP, **SESSION)
    member.read(50)
    lab.kill(1, 2)
    offsets_in_sync(lab, 3)
    commit = member.begin_commit()
    lab.pass_ms(8_000)
    lab.step("N34", "the coordinator alone does not promise to remember")
    lab.same("the outcome so far", commit.outcome, None)
    lab.start(2)
    lab.true("ok when a second broker has it", member.wait(commit).is_ok)
    lab.kill(3)
    lab.step("N34", "so it is not forgotten when the coordinator dies next")
    lab.start(1)
    lab.same("grp", committed_offset(lab), 50)
    lab.same("broken promises", lab.audit_group(GROUP).broken, ())


@story("N34")
def a_commit_on_one_broker_is_forgotten(lab: Lab) -> None:
    """The same with Kafka's inherited settings, a minimum of 1 and an unclean election."""
    stage(lab, count=100, offsets_on=(3, 2, 1), replicas=((1, 2, 3),))
    offsets = lab.groups.offsets_topic()
    lab.configure("min.insync.replicas", "1", topic=offsets)
    lab.configure("unclean.leader.election.enable", "true", topic=offsets)
    member = lab.consumer("member", group=GROUP, **SESSION)
    member.read(20)
    assert member.commit().is_ok
    lab.kill(1, 2)
    offsets_in_sync(lab, 3)
    member.read_for(100)
    assert member.commit(50).is_ok
    member.kill()
    lab.kill(3)
    lab.start(1, 2)
    lab.until("another one coordinates", lambda: lab.coordinator(GROUP) in (1, 2))
    lab.step("N34", "an answered commit is gone, and the one before it is back")
    lab.same("grp", committed_offset(lab), 20)
    lab.start(3)
    lab.until_isr(1, 2, 3)
    (broken,) = lab.audit_group(GROUP).broken
    lab.true("commit forgotten", broken.startswith("commit forgotten"))


def _polled(_: object) -> bool:
    return True
