"""Document 3, the ways to lose data: acks=1, two dead brokers, a split brain."""

from __future__ import annotations

from tidelog.lab import administration
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, NONE, NOT_ENOUGH, ok, same_logs
from tidelog.lab.story import story

PARTITIONS = 24


@story("D3-S1")
def acks_1_loses_only_inside_its_window(lab: Lab) -> None:
    """Records are written at many moments before one crash: lost are those that no follower had."""
    lab.cluster()
    lab.create("orders", *[(1, 2, 3)] * PARTITIONS)
    quick = lab.writer("acks=1", acks=1)
    careful = lab.writer("acks=all")
    written = []
    for index in range(PARTITIONS):
        writer = quick if index % 2 else careful
        written.append(writer.begin(f"m{index}", index=index, to=1))
        if index % 4 == 3:
            lab.pass_ms(1)
    lab.kill(1)
    copies = [lab.payloads(2, index) for index in range(PARTITIONS)]
    lab.until_led(2, index=PARTITIONS - 1)
    lab.step("D3-S1", "an acknowledged record is lost exactly where no copy of it had left")
    for index, batch in enumerate(written):
        if batch.is_ok and batch.acks == 1:
            lab.same(f"partition {index}", lab.payloads(2, index), copies[index])
    lost = [index for index in range(PARTITIONS) if lab.audit(index).lost]
    uncopied = [i for i, batch in enumerate(written) if batch.is_ok and not copies[i]]
    lab.same("partitions with a loss", lost, uncopied)
    lab.true("some were inside the window", bool(lost))
    lab.step("D3-S1", "acks=all never loses")
    lab.same("losses of acks=all", [index for index in lost if written[index].acks != 1], [])


@story("D3-S2a", "N1", "N4")
def two_brokers_die_and_the_slow_one_was_in_sync(lab: Lab) -> None:
    """3 is slow but in the ISR: then nothing was acknowledged, and 3 is elected cleanly."""
    orders(lab)
    lab.hold(3)
    writer = lab.writer("writer", idempotent=True)
    message = writer.begin("M1")
    lab.until_end(2, 11)
    lab.step("D3-S2a", "N1", "1 and 2 have M1, the minimum is 2, 3 is slow: no acknowledgement")
    lab.pass_ms(200)
    lab.same("the answer", message.answer, None)
    lab.kill(1, 2)
    lab.release(3)
    lab.until_led(3)
    lab.step("D3-S2a", "3 was in sync, so it is elected cleanly, and nothing acknowledged is lost")
    kinds = [str(each.fields["kind"]) for each in lab.happenings(CONTROLLER, "LeaderElected")]
    lab.true("the elections were clean", set(kinds) <= {"clean", "eligible"})
    lab.step("D3-S2a", "N4", "acks=all is refused until a second replica is back")
    lab.same("the answer", lab.writer("other").write("x").error, NOT_ENOUGH)
    lab.start(2)
    lab.until_isr(2, 3)
    writer.again(message)
    lab.same("the retry of M1", writer.wait(message), ok(10))
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-S2b-A", "N31")
def both_stop_cleanly_and_either_may_return(lab: Lab) -> None:
    """ISR [1, 2], M1 acknowledged, both stop: an eligible replica that stopped cleanly may lead."""
    _m1_on_1_and_2(lab, unclean="false")
    lab.stop(1)
    lab.stop(2)
    lab.until_led(None)
    lab.step("D3-S2b-A", "offline: 3 lives, and is not eligible")
    lab.same("ISR, eligible", (lab.desc().isr, lab.desc().eligible), ((), (1, 2)))
    lab.start(1)
    lab.until_led(1)
    lab.release(3)
    lab.until("3 is back", lambda: 3 in lab.desc().isr)
    lab.step("D3-S2b-A", "N31", "1 was not the last in the ISR, but is eligible: M1 is there")
    lab.same("what a consumer gets", lab.read(1)[10:], ["M1"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-S2b-A", "N31")
def both_are_killed_and_the_last_known_leader_leads(lab: Lab) -> None:
    """After SIGKILL nobody is eligible: the last known leader leads when all of them are back."""
    _m1_on_1_and_2(lab, unclean="false")
    lab.kill(1)
    lab.until_led(2)
    lab.kill(2)
    lab.until_led(None)
    lab.start(1)
    lab.until_unfenced(1)
    lab.pass_ms(2_000)
    lab.step("D3-S2b-A", "1 is back, but was killed: it is not eligible, and the partition waits")
    lab.same("the leader", lab.leader(), None)
    lab.start(2)
    lab.until_led(2)
    lab.release(3)
    lab.until_isr(1, 2, 3)
    lab.step("D3-S2b-A", "N31", "2, the last known leader, leads; M1 is there")
    kinds = [str(each.fields["kind"]) for each in lab.happenings(CONTROLLER, "LeaderElected")]
    lab.same("the election", kinds[-1], "last-known")
    lab.same("what a consumer gets", lab.read(2)[10:], ["M1"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-S2b-A", "N31")
def without_eligible_leaders_only_the_last_member_may_return(lab: Lab) -> None:
    """The feature switched off: of 1 and 2 only the last one in the ISR revives the partition."""
    lab.cluster()
    administration.lower_feature(lab, "eligible.leader.replicas.version", 0)
    lab.create("orders", (1, 2, 3), min_insync_replicas="2")
    lab.fill(10)
    _without_3(lab)
    lab.stop(1)
    lab.stop(2)
    lab.until_led(None)
    lab.step("D3-S2b-A", "offline: the ISR keeps its last member, and nobody is eligible")
    lab.same("ISR, eligible", (lab.desc().isr, lab.desc().eligible), ((2,), ()))
    lab.start(1)
    lab.until_unfenced(1)
    lab.pass_ms(2_000)
    lab.same("with 1 back, though it stopped cleanly", lab.leader(), None)
    lab.start(2)
    lab.until_led(2)
    lab.release(3)
    lab.until_isr(1, 2, 3)
    lab.step("D3-S2b-A", "N31", "with 2 back M1 is there")
    lab.same("what a consumer gets", lab.read(2)[10:], ["M1"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-S2b-B")
def both_are_killed_and_unclean_elections_are_allowed(lab: Lab) -> None:
    """The same with unclean elections: 3 leads, the acknowledged M1 is lost."""
    _m1_on_1_and_2(lab, unclean="true")
    lab.kill(1, 2)
    lab.release(3)
    lab.until_led(3)
    lab.start(1, 2)
    lab.until_isr(1, 2, 3)
    lab.step("D3-S2b-B", "M1 was acknowledged and committed, and is lost")
    lab.same("lost", lab.audit().lost, ("M1",))
    kinds = [str(each.fields["kind"]) for each in lab.happenings(CONTROLLER, "LeaderElected")]
    lab.same("the step that lost it", kinds[-1], "unclean")


def _m1_on_1_and_2(lab: Lab, *, unclean: str) -> None:
    """3 is out of the ISR without M1; M1 is acknowledged by 1 and 2."""
    orders(lab, unclean_leader_election_enable=unclean)
    _without_3(lab)


def _without_3(lab: Lab) -> None:
    lab.hold(3)
    writer = lab.writer("writer")
    batch = writer.begin("M1")
    lab.until_isr(1, 2)
    assert writer.wait(batch).is_ok


@story("D3-S2c")
def five_replicas_survive_two(lab: Lab) -> None:
    """RF 5 with a minimum of 3: two brokers die, nothing is lost, and writes go on."""
    orders(lab, replicas=(1, 2, 3, 4, 5), isr_min="3")
    writer = lab.writer("writer")
    assert writer.write("M1").is_ok
    lab.kill(1, 2)
    lab.until_led(3)
    lab.step("D3-S2c", "3 leads, M1 is there, and acks=all works with three")
    lab.until_isr(3, 4, 5)
    lab.same("the answer", writer.write("M2"), ok(11))
    lab.same("what a consumer gets", lab.read(3)[10:], ["M1", "M2"])
    lab.same("the audit", lab.audit(), CLEAN)


@story("D3-S5", "N38", "D2-G1")
def a_split_brain(lab: Lab) -> None:
    """Broker 1 is cut off with a producer at its side; broker 2 is elected; then all is healed."""
    orders(lab)
    lab.isolate(1)
    lab.listen_to(2)
    lab.until_led(2)
    lab.step("N38", "two believe that they lead")
    lab.same(
        "as 1 knows it, as 2 knows it", (lab.desc(via=1).leader, lab.desc(via=2).leader), (1, 2)
    )

    quick = lab.writer("P1 acks=1", acks=1)
    blind = lab.writer("P1 acks=0", acks=0)
    careful = lab.writer("P1 acks=all", idempotent=True)
    lab.step("D3-S5", "N38", "1 takes writes of acks=0 and 1, and can acknowledge none of acks=all")
    lab.same("acks=1 at broker 1", quick.write("P1 one", to=1), ok(10))
    blind.begin("P1 none", to=1)
    kept = careful.begin("P1 all", to=1)
    lab.same("acks=all at broker 2", lab.writer("P2").write("P2"), ok(10))
    lab.pass_ms(1_000)
    lab.true("acks=all at broker 1 is not acknowledged", not kept.is_ok)
    lab.step("D3-S5", "readers on the side of broker 1 get what was committed before, no more")
    lab.same("what they get", lab.read(1)[10:], [])

    lab.rejoin(1)
    lab.until_isr(1, 2, 3)
    careful.again(kept)
    lab.step("D3-S5", "healed: acks=all is retried at broker 2, and is there once")
    lab.true("the retry is acknowledged", careful.wait(kept).error is NONE)
    lab.until_quiet()
    same_logs(lab, 1, 2, 3)
    lab.step("D3-S5", "what acks=0 and acks=1 gave to broker 1 is lost, P2's record is safe")
    lab.same("log(1)", lab.payloads(1)[10:], ["P2", "P1 all"])
    lab.same("lost, as far as anybody was told an offset", lab.audit().lost, ("P1 one",))
    lab.step("D2-G1", "the old leader brought nothing back: it was cut")
    lab.true("broker 1 truncated", bool(lab.happenings(1, "FollowerTruncated")))
