"""A broker that was paused: what confirms its leaderships, and what does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.core.node.lone_links import LoneLinks
from tidelog.core.node.broker.session_watch import (
    BrokerPaused,
    LeadershipConfirmed,
    SessionWatch,
    pause_ms_max,
)
from tidelog.core.node.settings import NodeSettings

VOTERS = "1@one:9092,2@two:9092,3@three:9092"
LONGEST_MS = 5_000


def settings(**changed: str) -> NodeSettings:
    texts = {
        "node.id": "1",
        "listeners": "PLAINTEXT://one:9092",
        "log.dirs": "data",
        "controller.quorum.voters": VOTERS,
        "tidelog.cluster.secret": "the secret of all brokers of a test",
    }
    return NodeSettings.of(texts | {name.replace("_", "."): text for name, text in changed.items()})


class Watched(LoneLinks):
    """A watch that has started at 0, on a node that is not the controller."""

    def __init__(self, **changed: str) -> None:
        super().__init__()
        self.metadata = SimpleNamespace(is_active=False, requests_sent=7)
        self.watch = SessionWatch(
            settings=settings(**changed),
            metadata=cast("Any", self.metadata),
            alarms=self.alarms,
            trace=self.trace,
        )
        self.watch.start(0)

    def pause(self, until_ms: int) -> None:
        assert until_ms >= self.watch.late_ms
        self.watch.on_paused(until_ms)
        self.watch.check()


@pytest.mark.parametrize(
    ("session_ms", "interval_ms", "longest_ms"),
    [
        (9_000, 2_000, 5_000),  # the defaults
        (900, 200, 500),
        (3_000, 500, 2_000),
        (4_000, 2_000, 1_000),  # an interval as long as it may be: a quarter of the session
    ],
)
def test_how_long_a_session_surely_outlives(
    session_ms: int, interval_ms: int, longest_ms: int
) -> None:
    given = settings(
        broker_session_timeout_ms=str(session_ms), broker_heartbeat_interval_ms=str(interval_ms)
    )

    assert pause_ms_max(given) == longest_ms


def test_the_only_voter_need_not_ask() -> None:
    """Nobody else decides anything, however long it stands still."""
    watched = Watched(controller_quorum_voters="1@one:9092")

    watched.watch.on_event(10)

    assert watched.watch.late_ms > 10**15


def test_a_broker_that_waits_for_its_controller_is_not_paused() -> None:
    """Its own alarms are events enough."""
    watched = Watched()
    for _ in range(100):
        now_ms = watched.alarms.heap[0][0]
        assert now_ms < watched.watch.late_ms
        watched.alarms.run(now_ms)
        watched.watch.on_event(now_ms)
    assert now_ms > 10 * LONGEST_MS


def test_a_heartbeat_and_then_the_metadata_confirm_it() -> None:
    watched = Watched()
    watched.watch.on_event(100)
    watched.pause(14_000)
    assert watched.trace.of(BrokerPaused) == [BrokerPaused(gap_ms=13_900)]
    confirmed = [watched.watch.is_confirmed]

    watched.watch.on_heartbeat_answered(sent_ms=14_000, now_ms=14_010)
    confirmed.append(watched.watch.is_confirmed)
    watched.watch.on_metadata_read(8, 14_300)
    confirmed.append(watched.watch.is_confirmed)

    assert confirmed == [False, False, True]
    assert watched.trace.of(LeadershipConfirmed) == [LeadershipConfirmed(after_ms=300)]


def test_metadata_that_was_asked_for_before_the_answer_does_not_count() -> None:
    """The controller may have taken something away and let us in between the two."""
    watched = Watched()
    watched.pause(14_000)
    watched.watch.on_metadata_read(7, 14_005)

    watched.watch.on_heartbeat_answered(sent_ms=14_000, now_ms=14_010)
    watched.watch.on_metadata_read(7, 14_020)

    assert not watched.watch.is_confirmed


def test_later_heartbeats_do_not_put_it_off() -> None:
    watched = Watched()
    watched.pause(14_000)
    watched.watch.on_heartbeat_answered(sent_ms=14_000, now_ms=14_010)
    watched.metadata.requests_sent = 8

    watched.watch.on_heartbeat_answered(sent_ms=14_060, now_ms=14_070)
    watched.watch.on_metadata_read(8, 14_300)

    assert watched.watch.is_confirmed


def test_a_heartbeat_from_before_the_pause_proves_nothing() -> None:
    watched = Watched()
    watched.pause(14_000)

    watched.watch.on_heartbeat_answered(sent_ms=13_999, now_ms=14_010)
    watched.watch.on_metadata_read(8, 14_300)

    assert not watched.watch.is_confirmed


def test_a_second_pause_begins_anew() -> None:
    watched = Watched()
    watched.pause(14_000)
    watched.watch.on_heartbeat_answered(sent_ms=14_000, now_ms=14_010)

    watched.pause(30_000)
    watched.watch.on_metadata_read(8, 30_010)
    watched.watch.on_heartbeat_answered(sent_ms=14_060, now_ms=30_020)

    assert not watched.watch.is_confirmed


def test_the_node_of_the_controller_has_read_everything() -> None:
    """Its heartbeat is answered when a majority has committed what it wrote after the pause."""
    watched = Watched()
    watched.pause(14_000)
    watched.metadata.is_active = True

    watched.watch.on_heartbeat_answered(sent_ms=14_000, now_ms=14_010)

    assert watched.watch.is_confirmed


def test_a_node_that_is_no_broker_leads_nothing_to_be_confirmed() -> None:
    watched = Watched(
        process_roles="controller",
        listeners="CONTROLLER://one:9092",
        controller_listener_names="CONTROLLER",
    )
    watched.pause(14_000)

    assert watched.watch.is_confirmed
