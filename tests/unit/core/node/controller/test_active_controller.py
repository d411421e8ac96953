"""The active controller: sessions, death, admission, leave-taking, and its own rounds."""

from __future__ import annotations

import pytest

from tests.unit.core.controller.cluster import broker, directory, roles, state
from tests.unit.core.metadata.given import topic
from tests.unit.core.node.controller_bench import SESSION_MS, ControllerBench
from tidelog.core.controller.events import (
    BrokerFenced,
    BrokerRefused,
    ControllerActivated,
    ControllerResigned,
    ElectionKind,
    LeaderElected,
)
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.records import ConfigRecord
from tidelog.core.model.errors import ErrorCode

SILENCE = {"tidelog.failure.detection": "session"}


def office(*states: PartitionState, settings: dict[str, str] | None = None) -> ControllerBench:
    brokers = [broker(each) for each in (1, 2, 3)]
    partitions = states or (state(1, 2, 3),)
    return ControllerBench(*brokers, *topic("t", 1, *partitions), settings=settings)


@pytest.mark.scenario("D3-T2", "D5-B2")
def test_silence_for_a_session_fences_a_broker_and_its_followers_lead() -> None:
    given = office(settings=SILENCE)
    given.wait(2_000)
    for each in (1, 2, 3):
        given.beat(each)
    given.wait(4_000)
    given.beat(2)
    given.beat(3)

    given.wait(SESSION_MS - 4_001)
    assert not given.brokers[1].is_fenced
    given.wait(1)

    assert given.brokers[1].is_fenced
    assert roles(given.partition()) == (2, (2, 3), (), ())
    assert given.trace.of(BrokerFenced) == [
        BrokerFenced(broker_id=1, broker_epoch=1, reason="its session ended")
    ]
    assert [event.kind for event in given.trace.of(LeaderElected)] == [ElectionKind.CLEAN]


def test_a_new_controller_gives_everybody_a_full_session() -> None:
    given = office(settings=SILENCE)

    given.wait(SESSION_MS - 1)
    assert not given.trace.of(BrokerFenced)
    given.wait(1)

    assert [event.broker_id for event in given.trace.of(BrokerFenced)] == [1, 2, 3]
    assert given.trace.of(ControllerActivated) == [
        ControllerActivated(controller_epoch=3, brokers=3)
    ]


def test_a_controller_that_slept_blames_nobody() -> None:
    given = office(settings=SILENCE)

    given.now_ms = 3 * SESSION_MS
    given.alarms.run(given.now_ms)

    assert not given.trace.of(BrokerFenced)
    given.wait(SESSION_MS)
    assert len(given.trace.of(BrokerFenced)) == 3


def test_who_resigns_fences_nobody_any_more() -> None:
    given = office(settings=SILENCE)

    given.active_controller.on_resigned(0)
    given.metadata.resign()
    given.wait(10 * SESSION_MS)

    assert not given.trace.of(BrokerFenced)
    assert given.trace.of(ControllerResigned) == [ControllerResigned(controller_epoch=3)]
    assert not any(alarm.is_pending for _, _, alarm in given.alarms.heap)


def test_a_closed_connection_and_a_closed_door_prove_a_death() -> None:
    given = office()
    given.probed.clear()
    given.beat(1, connection=11)

    given.active_controller.on_connection_closed(11, 100)
    assert list(given.probed) == [("host-1", 9092)]
    given.probed["host-1", 9092](True, 140)

    assert given.trace.of(BrokerFenced) == [
        BrokerFenced(broker_id=1, broker_epoch=1, reason="its process is dead")
    ]
    assert given.partition().leader == 2


@pytest.mark.scenario("X-41")
def test_a_closed_connection_alone_proves_nothing() -> None:
    given = office()
    given.probed.clear()
    given.beat(1, connection=11)
    given.active_controller.on_connection_closed(11, 100)

    given.probed["host-1", 9092](False, 140)

    assert not given.trace.of(BrokerFenced)


@pytest.mark.scenario("X-41")
def test_who_was_heard_again_meanwhile_is_alive() -> None:
    given = office()
    given.probed.clear()
    given.beat(1, connection=11)
    given.active_controller.on_connection_closed(11, 100)

    given.beat(1, connection=12)
    given.probed["host-1", 9092](True, 140)

    assert not given.trace.of(BrokerFenced)


def test_the_death_of_a_former_process_does_not_fence_its_successor() -> None:
    given = office()
    dead = given.probed["host-1", 9092]
    given.wait(SESSION_MS)
    given.register(1)
    given.beat(1)

    dead(True, given.now_ms)

    assert not given.brokers[1].is_fenced


def test_with_sessions_only_nobody_knocks() -> None:
    given = office(settings=SILENCE)
    given.beat(1, connection=11)

    given.active_controller.on_connection_closed(11, 100)

    assert given.probed == {}


def test_a_new_controller_knocks_once_at_every_broker_that_is_not_fenced() -> None:
    given = ControllerBench(
        broker(1), broker(2, fenced=True), *topic("t", 1, state(1, 2, isr=(1,)))
    )

    assert list(given.probed) == [("host-1", 9092)]
    given.probed["host-1", 9092](True, 40)

    assert given.brokers[1].is_fenced


def test_a_connection_on_which_no_broker_was_heard_means_nothing() -> None:
    given = office()
    given.probed.clear()

    given.active_controller.on_connection_closed(99, 100)

    assert given.probed == {}


@pytest.mark.scenario("X-36")
def test_a_restart_inside_the_session_waits_for_its_end() -> None:
    given = office(settings=SILENCE)
    given.beat(1, connection=11)
    given.active_controller.on_connection_closed(11, 10)

    assert given.register(1).error_code == 101
    assert given.trace.of(BrokerRefused) == [BrokerRefused(broker_id=1, error=101)]
    given.wait(SESSION_MS)
    answer = given.register(1)

    assert answer.error_code == ErrorCode.NONE
    assert given.brokers[1].broker_epoch == answer.broker_epoch
    assert given.brokers[1].is_fenced


@pytest.mark.scenario("X-36")
def test_a_restart_is_admitted_at_once_when_it_has_the_place_of_the_former_one() -> None:
    """Its log directories, or its address: nobody can share those with a process that lives."""
    given = office()
    given.beat(1, connection=11)
    given.beat(2, connection=12)

    assert given.register(1, connection=13).error_code == 101, "the former one is still heard"
    given.active_controller.on_connection_closed(11, 10)
    stranger = given.register(1, directories=[directory(8)], host="elsewhere", connection=13)
    assert stranger.error_code == 101, "it may be anybody"
    assert given.register(1, host="elsewhere", connection=13).error_code == ErrorCode.NONE

    assert roles(given.partition()) == (2, (2, 3), (), ())


def test_a_process_with_emptied_directories_is_known_by_its_address() -> None:
    given = office()
    given.beat(1, connection=11)
    given.active_controller.on_connection_closed(11, 10)

    answer = given.register(1, directories=[directory(8)], connection=13)

    assert answer.error_code == ErrorCode.NONE
    assert given.partition().isr == (2, 3)


def test_after_a_power_loss_nobody_closes_the_connection_but_the_silence_tells() -> None:
    given = office()
    given.beat(1, connection=11)

    given.wait(2_999)
    assert given.register(1, connection=13).error_code == 101
    given.wait(1)
    assert given.register(1, connection=13).error_code == ErrorCode.NONE


def test_nobody_takes_the_place_of_a_broker_in_the_controllers_own_process() -> None:
    given = ControllerBench(broker(1), *topic("t", 1, state(1)), settings={"node.id": "1"})
    given.beat(1, connection=None)

    assert given.register(1, incarnation=2, connection=13).error_code == 101


def test_a_dead_process_needs_no_proof_from_its_successor() -> None:
    given = office()
    given.probed["host-1", 9092](True, 40)

    assert given.register(1, directories=[directory(8)]).error_code == ErrorCode.NONE


def test_a_controllers_own_broker_need_not_wait_for_its_former_self() -> None:
    given = ControllerBench(
        broker(1), *topic("t", 1, state(1)), settings={**SILENCE, "node.id": "1"}
    )

    answer = given.register(1, connection=None)

    assert answer.error_code == ErrorCode.NONE
    assert given.probed == {}


def test_a_broker_is_let_in_when_it_has_read_its_own_registration() -> None:
    given = office(settings=SILENCE)
    given.wait(SESSION_MS)
    broker_epoch = given.register(1).broker_epoch

    waiting = given.beat(1, offset=broker_epoch - 1)
    assert (waiting.is_caught_up, waiting.is_fenced) == (False, True)
    fenced = given.beat(1, offset=broker_epoch, want_fence=True)
    assert (fenced.is_caught_up, fenced.is_fenced) == (True, True)
    let_in = given.beat(1, offset=broker_epoch)
    assert (let_in.is_caught_up, let_in.is_fenced, let_in.should_shut_down) == (True, False, False)

    assert given.brokers[1].is_active


@pytest.mark.scenario("X-45")
def test_after_the_death_of_all_the_last_known_leader_leads_when_it_is_back() -> None:
    """Every registration is unclean; who comes first does not matter."""
    given = office(settings=SILENCE)
    given.wait(SESSION_MS)
    assert given.partition().leader is None

    for each in (3, 2, 1):
        given.register(each)
    assert roles(given.partition())[1:3] == ((), ())
    last_known = given.partition().last_known_leaders
    for each in sorted({1, 2, 3} - {*last_known}):
        given.beat(each)
        assert given.partition().leader is None
    given.beat(last_known[0])

    assert given.partition().leader == last_known[0]
    assert given.partition().leader_is_recovering


def test_a_leaving_broker_stays_until_the_others_know_who_leads_now() -> None:
    given = office(settings=SILENCE)
    for each in (1, 2, 3):
        given.beat(each, offset=90)

    asked = given.beat(1, offset=90, want_shut_down=True)
    assert (asked.is_fenced, asked.should_shut_down) == (False, False)
    assert given.partition().leader == 2
    moved_at = given.metadata.log.log_end_offset
    given.beat(2, offset=moved_at - 1)
    assert not given.beat(1, want_shut_down=True).should_shut_down
    given.beat(3, offset=moved_at - 1)
    gone = given.beat(1, want_shut_down=True)

    assert (gone.is_fenced, gone.should_shut_down) == (True, True)
    assert given.brokers[1].is_fenced


def test_a_leaving_broker_stays_until_it_knows_itself_that_it_leads_no_more() -> None:
    given = office(settings=SILENCE)
    for each in (1, 2, 3):
        given.beat(each, offset=90)
    given.beat(1, offset=90, want_shut_down=True)
    for each in (2, 3):
        given.beat(each)

    assert not given.beat(1, offset=90, want_shut_down=True).should_shut_down
    assert given.beat(1, want_shut_down=True).should_shut_down


def test_a_fetch_of_the_metadata_says_earlier_than_a_heartbeat_how_far_a_broker_has_read() -> None:
    given = office(settings=SILENCE)
    for each in (1, 2, 3):
        given.beat(each, offset=90)
    given.beat(1, offset=90, want_shut_down=True)

    for each in (2, 3):
        given.active_controller.on_metadata_read(each, given.metadata.log.log_end_offset)

    assert given.beat(1, want_shut_down=True).should_shut_down


def test_who_stopped_in_good_order_may_come_back_at_once_and_stays_eligible() -> None:
    given = office(state(1, 2, 3, isr=(1,)), settings=SILENCE)
    broker_epoch = given.brokers[1].broker_epoch
    while not given.beat(1, want_shut_down=True).should_shut_down:
        for each in (2, 3):
            given.beat(each)
    assert roles(given.partition()) == (None, (), (1,), (1,))

    assert given.register(1, previous_broker_epoch=broker_epoch).error_code == ErrorCode.NONE
    given.beat(1)

    assert roles(given.partition()) == (1, (1,), (), ())
    assert not given.partition().leader_is_recovering
    assert given.trace.of(LeaderElected)[-1].kind is ElectionKind.ELIGIBLE


def test_a_broker_that_loses_a_directory_leads_nothing_in_it() -> None:
    given = office()

    given.beat(1, lost=[directory(1)])

    assert given.partition().leader == 2
    assert not given.brokers[1].is_fenced


@pytest.mark.scenario("D5-R6", "D5-B5")
def test_leaderships_return_to_preferred_brokers_after_a_while() -> None:
    given = office(
        state(1, 2, 3, leader=2),
        settings={"leader.imbalance.check.interval.seconds": "1"},
    )

    given.wait(999)
    assert given.partition().leader == 2
    given.wait(1)

    assert given.partition().leader == 1
    assert [event.kind for event in given.trace.of(LeaderElected)] == [ElectionKind.PREFERRED]


def test_leaderships_stay_where_they_are_when_they_shall() -> None:
    given = office(
        state(1, 2, 3, leader=2),
        settings={
            "leader.imbalance.check.interval.seconds": "1",
            "auto.leader.rebalance.enable": "false",
        },
    )

    given.wait(5_000)

    assert given.partition().leader == 2


@pytest.mark.scenario("D5-U2")
def test_unclean_elections_that_are_allowed_later_act_within_their_interval() -> None:
    offline = state(1, 2, 3, isr=(), leader=None, eligible=(1,), last_known=(1,))
    given = ControllerBench(
        broker(1, fenced=True),
        broker(2),
        *topic("t", 1, offline),
        settings={"unclean.leader.election.interval.ms": "500"},
    )
    given.wait(1_100)
    assert given.partition().leader is None

    allowed = ConfigRecord(
        resource_type=2, resource_name="t", name="unclean.leader.election.enable", value="true"
    )
    given.metadata.propose([allowed], None, now_ms=given.now_ms)
    given.wait(400)

    assert roles(given.partition()) == (2, (2,), (), ())
    assert given.partition().leader_is_recovering
