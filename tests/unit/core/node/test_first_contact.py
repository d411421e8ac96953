"""Before its first heartbeat to a new controller a broker is known by its metadata fetches."""

from __future__ import annotations

from tests.unit.core.controller.cluster import broker, state
from tests.unit.core.metadata.given import topic
from tests.unit.core.node.controller_bench import ControllerBench
from tidelog.core.controller.events import BrokerFenced
from tidelog.core.node.controller.active_controller import PROBE_INTERVAL_MS


def office() -> ControllerBench:
    return ControllerBench(*[broker(each) for each in (1, 2, 3)], *topic("t", 1, state(1, 2, 3)))


def test_who_dies_before_its_first_heartbeat_to_a_new_controller_is_found_out_as_well() -> None:
    """A broker fetches metadata from a new controller at once; its next heartbeat may be a whole
    interval away. When it dies meanwhile, only the connection of its fetches tells."""
    given = office()
    given.probed.clear()
    given.active_controller.on_metadata_fetched(1, connection=21)

    given.active_controller.on_connection_closed(21, 100)
    given.probed["host-1", 9092](True, 140)

    assert given.trace.of(BrokerFenced) == [
        BrokerFenced(broker_id=1, broker_epoch=1, reason="its process is dead")
    ]


def test_once_a_heartbeat_was_heard_its_connection_is_the_one_that_counts() -> None:
    given = office()
    given.probed.clear()
    given.beat(1, connection=11)
    given.active_controller.on_metadata_fetched(1, connection=21)
    given.active_controller.on_metadata_fetched(7, connection=22)

    for connection in (21, 22):
        given.active_controller.on_connection_closed(connection, 100)
    assert given.probed == {}

    given.active_controller.on_connection_closed(11, 100)
    assert list(given.probed) == [("host-1", 9092)]


def test_whom_a_new_controller_has_no_connection_with_is_asked_again_until_it_has_one() -> None:
    """Its fetch may be parked since before we led: then nobody tells us that it died."""
    given = office()
    for knock in list(given.probed.values()):
        knock(False, 10)
    given.probed.clear()
    given.beat(2, connection=12)
    given.active_controller.on_metadata_fetched(3, connection=13)

    given.wait(PROBE_INTERVAL_MS)
    assert list(given.probed) == [("host-1", 9092)]
    given.probed.pop(("host-1", 9092))(True, PROBE_INTERVAL_MS + 40)
    assert [event.broker_id for event in given.trace.of(BrokerFenced)] == [1]

    given.wait(3 * PROBE_INTERVAL_MS)
    assert given.probed == {}


def test_who_lost_its_connection_and_lives_is_asked_again_until_it_is_heard() -> None:
    given = office()
    for broker_id in (1, 2, 3):
        given.beat(broker_id, connection=10 + broker_id)
    given.probed.clear()
    given.active_controller.on_connection_closed(12, 0)
    given.probed.pop(("host-2", 9092))(False, 20)

    given.wait(PROBE_INTERVAL_MS)
    assert list(given.probed) == [("host-2", 9092)]
    given.probed.clear()
    given.beat(2, connection=22)
    given.wait(2 * PROBE_INTERVAL_MS)
    assert given.probed == {}
