"""Document 3, configuration 7: who has the records is dead, and who lacks them lives.

Brokers 1 and 2 hold 0–1000 and die; broker 3 fell out of the ISR at 851 and lives. Without unclean
elections the partition waits for those who know; with them it goes on, without 150 records.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, NONE, NOT_ENOUGH, ok, same_logs
from tidelog.lab.story import story

BEHIND = 851
COMMITTED = 1_001


@story("D3-C7a", "D5-U1", "N31")
def without_unclean_elections_the_partition_waits(lab: Lab) -> None:
    """1 and 2 die with 0–1000; 3 lives with 0–850, and is never elected."""
    _three_is_behind(lab, unclean="false")
    _one_and_two_die(lab)
    lab.until_led(None)
    lab.release(3)
    lab.pass_ms(20_000)
    lab.step("D3-C7a", "D5-U1", "offline, though 3 lives: it is not in sync")
    state = lab.desc()
    lab.same("leader, ISR", (state.leader, state.isr), (None, ()))
    lab.same("end(3)", lab.end(3), BEHIND)
    lab.start(1, 2)
    lab.until_isr(1, 2, 3)
    lab.until_quiet()
    lab.step("D3-C7a", "N31", "1 and 2 are back: 0–1000 are complete")
    lab.same("end(3)", lab.end(3), COMMITTED)
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-C7b", "D5-U2", "D3-Q1", "N30", "N4")
def with_unclean_elections_the_partition_goes_on(lab: Lab) -> None:
    """The same with unclean elections allowed: 3 leads, 150 committed records are gone."""
    _three_is_behind(lab, unclean="true")
    _one_and_two_die(lab)
    lab.release(3)
    lab.until_led(3)
    lab.step("D3-C7b", "D5-U2", "3 leads with 0–850, and the ISR is [3] by that very election")
    state = lab.desc()
    lab.same("leader, ISR", (state.leader, state.isr), (3, (3,)))
    lab.same("end(3)", lab.end(3), BEHIND)
    kinds = [str(each.fields["kind"]) for each in lab.happenings(CONTROLLER, "LeaderElected")]
    lab.same("the election", kinds[-1], "unclean")

    lab.step("N30", "the ISR is below the minimum: acks=all is refused, acks=1 takes 851 again")
    lab.same("acks=all", lab.writer("careful").write("refused").error, NOT_ENOUGH)
    lab.same("acks=1", lab.writer("careless", acks=1).write("new"), ok(BEHIND))
    lab.step("N4", "what acks=1 wrote is not visible while the ISR is too small")
    lab.same("bytes for a consumer at 851", len(lab.fetch(3, BEHIND).records or b""), 0)

    lab.start(1)
    lab.until("1 is in sync", lambda: 1 in lab.desc().isr)
    lab.until_high_watermark(BEHIND + 1)
    lab.step("D3-C7b", "1 comes back, cuts to 851 and joins: the new record is visible")
    (cut,) = lab.happenings(1, "FollowerTruncated")
    lab.same("1's log was cut to", cut.fields["to_end_offset"], BEHIND)
    same_logs(lab, 1, 3)
    lab.same("what a consumer gets", lab.read(3, offset=BEHIND), ["new"])
    lab.same("acks=all works again", lab.writer("third").write("more").error, NONE)
    lab.step("D3-C7b", "D3-Q1", "N30", "150 committed records are lost")
    lost = lab.audit().lost
    lab.same("their number", len(lost), COMMITTED - BEHIND)
    lab.same("the first and the last", (lost[0], lost[-1]), ("r851", "r1000"))


@story("D5-U2", "N50")
def unclean_elections_are_switched_on_later(lab: Lab) -> None:
    """The partition waits; an administrator asks for an unclean election, and it goes on."""
    _three_is_behind(lab, unclean="false")
    _one_and_two_die(lab)
    lab.until_led(None)
    lab.release(3)
    lab.step("N50", "ElectLeaders UNCLEAN elects at once whoever lives")
    lab.same("the election", lab.elect("unclean"), NONE)
    lab.until_led(3)
    lab.step("D5-U2", "3 leads, and what it lacks is lost")
    lab.same("end(3)", lab.end(3), BEHIND)


@story("N50")
def the_topic_is_switched_to_unclean_elections(lab: Lab) -> None:
    """The same by the topic's setting: the controller acts on it within its interval."""
    interval = {"unclean.leader.election.interval.ms": "5000"}  # instead of five minutes
    _three_is_behind(lab, unclean="false", settings=interval)
    _one_and_two_die(lab)
    lab.until_led(None)
    lab.release(3)
    lab.configure("unclean.leader.election.enable", "true")
    lab.until_led(3, within_ms=6_000)
    lab.step("N50", "within the interval the leaderless partition is given to 3")
    lab.same("leader, end(3)", (lab.leader(), lab.end(3)), (3, BEHIND))


def _three_is_behind(lab: Lab, *, unclean: str, settings: Mapping[str, str] | None = None) -> None:
    """0–850 are on all; 3 is held until it leaves the ISR; 851–1000 are on 1 and 2."""
    orders(lab, count=BEHIND, unclean_leader_election_enable=unclean, settings=settings)
    lab.hold(3)
    writer = lab.writer("writer")
    batch = writer.begin(*(f"r{number}" for number in range(BEHIND, COMMITTED)))
    lab.until_isr(1, 2)
    assert writer.wait(batch).is_ok


def _one_and_two_die(lab: Lab) -> None:
    lab.kill(1)
    lab.until_led(2)
    lab.kill(2)
