"""Document 3's consumer timelines in virtual time: leaders die, and nothing is read twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.consumer.given import P0, Reader
from tests.unit.client.fake_cluster import Drop
from tidelog.client.cluster_metadata import Leader
from tidelog.client.consumer.errors import LogTruncationError, OutOfRange
from tidelog.client.events import LeaderHinted, PositionReset, PositionTruncated
from tidelog.core.wire.messages.api_01_fetch import FetchRequest
from tidelog.core.wire.messages.api_23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)


def hundred(first: int) -> list[str]:
    return [f"m{number}" for number in range(first, first + 100)]


@pytest.mark.scenario("D3-F1", "N41")
def test_a_fetch_gives_what_is_below_the_high_watermark_and_the_position_is_the_next_offset() -> (
    None
):
    reader = Reader()
    reader.log.write(*hundred(0))
    reader.log.write(*hundred(100))
    reader.log.hidden = 100
    reader.start()
    reader.until(*hundred(0))
    reader.clock.run_for(1_000)

    assert len(reader.records) == 100 and reader.consumer.position(P0) == 100
    reader.log.hidden = 0
    reader.until(*hundred(0), *hundred(100))
    assert reader.consumer.position(P0) == 200
    assert reader.consumer.high_watermark(P0) == 200


@pytest.mark.scenario("D3-F2", "N13", "N17")
@pytest.mark.parametrize("how", ["killed", "paused"])
def test_a_leader_that_dies_in_the_fetch_costs_time_and_nothing_else(how: str) -> None:
    reader = Reader(request_timeout_ms=5_000)
    reader.log.write(*hundred(0))
    reader.start()
    reader.until(*hundred(0))
    began_ms = reader.clock.now_ms

    reader.cluster.kill(1) if how == "killed" else reader.cluster.pause(1)
    reader.log.elect(None)
    reader.clock.after(1_000, lambda: reader.log.elect(2))
    reader.clock.after(1_001, lambda: reader.log.write(*hundred(100)))
    reader.until(*hundred(0), *hundred(100))

    assert not reader.errors
    assert reader.offsets() == list(range(200))
    waited_ms = reader.clock.now_ms - began_ms
    assert waited_ms < 2_300 if how == "killed" else 5_000 < waited_ms < 8_000


@pytest.mark.scenario("D3-K1")
def test_after_failover_the_offset_has_a_new_record_and_the_old_one_was_never_seen() -> None:
    """The five records above the high watermark die with their leader."""
    reader = Reader()
    reader.log.write("a", "b")
    reader.log.write("old")
    reader.log.hidden = 1
    reader.start()
    reader.until("a", "b")

    reader.log.elect(2, end_offset=2)
    reader.log.hidden = 0
    reader.log.write("new")
    reader.until("a", "b", "new")

    assert reader.offsets() == [0, 1, 2]
    assert [record.leader_epoch for record in reader.records] == [0, 0, 1]
    assert reader.cluster.requests(OffsetForLeaderEpochRequest), "position 2 of epoch 0 is valid"
    assert not reader.host.trace.of(PositionTruncated)


def test_a_consumer_with_an_old_leader_epoch_is_fenced_and_told_the_new_leader() -> None:
    """74 from the new leader, which was a follower of ours a moment ago."""
    reader = Reader()
    reader.log.write("a")
    reader.start()
    reader.until("a")

    reader.log.elect(1)
    reader.log.write("b")
    reader.until("a", "b", within_ms=2_000)

    assert [hint.leader_epoch for hint in reader.host.trace.of(LeaderHinted)] == [1]


def test_a_consumer_that_knows_more_than_an_isolated_leader_reads_nothing_from_it() -> None:
    """75: leader 1 is cut off and does not know that 2 leads by now."""
    reader = Reader()
    reader.log.write("a")
    reader.start()
    reader.until("a")
    asked: list[int] = []
    reader.log.elect(2)
    reader.log.write("b")

    def isolated(broker_id: int, request: Any) -> Any:
        """Broker 1 believes in leader epoch 0 and tells everybody so."""
        if broker_id != 1 or not isinstance(request, FetchRequest):
            return None
        asked.extend(topic.partitions[0].current_leader_epoch for topic in request.topics)
        return Drop()

    reader.cluster.rules.append(isolated)
    metadata = reader.host.client.metadata
    reader.host.do(lambda _: metadata.learn_leader(P0, Leader(2, 1), []))
    reader.until("a", "b", within_ms=10_000)

    assert 1 not in asked, "broker 1 was not asked again"
    assert reader.offsets() == [0, 1]


@pytest.mark.parametrize("restarts", [False, True])
def test_an_unclean_election_cuts_what_was_read_and_the_position_goes_back(restarts: bool) -> None:
    """Read to 5 in leader epoch 0; the new leader has only 0 to 2, and writes its own 3."""
    reader = Reader()
    for value in ("a", "b", "c", "d", "e"):
        reader.log.write(value)
    if restarts:
        reader.log.elect(2, end_offset=3)
        reader.log.write("new")
        reader.start()
        reader.seek(5, leader_epoch=0)
        reader.until("new")
    else:
        reader.start()
        reader.until("a", "b", "c", "d", "e")
        reader.log.elect(2, end_offset=3)
        reader.log.write("new")
        reader.until("a", "b", "c", "d", "e", "new")

    [cut] = reader.host.trace.of(PositionTruncated)
    assert (cut.position, cut.divergence) == (5, 3)
    assert reader.records[-1].offset == 3 and reader.records[-1].leader_epoch == 1


@pytest.mark.scenario("N32")
def test_without_a_reset_policy_the_program_is_told_where_the_log_was_cut() -> None:
    reader = Reader(auto_offset_reset="none")
    for value in ("a", "b", "c"):
        reader.log.write(value)
    reader.start(seek=0)
    reader.until("a", "b", "c")

    reader.log.elect(2, end_offset=1)
    reader.log.write("new")
    reader.clock.run_for(5_000)

    [error] = reader.errors
    assert isinstance(error, LogTruncationError)
    assert (error.offset, error.divergence, error.divergence_epoch) == (3, 1, 0)
    assert "from offset 1 on" in str(error)
    with pytest.raises(LogTruncationError):
        reader.poll()

    reader.seek(1, leader_epoch=0)
    reader.until("a", "b", "c", "new")


def test_an_epoch_that_nobody_knows_resets_the_position_by_policy() -> None:
    """The log begins after the position's leader epoch: nobody can say where it was cut."""
    reader = Reader()
    reader.log.leader_epoch = 5
    reader.log.write("a")

    def unknown(broker_id: int, request: Any) -> Any:
        if not isinstance(request, OffsetForLeaderEpochRequest):
            return None
        entry = EpochEndOffset(partition=0)
        topic = OffsetForLeaderTopicResult(topic="orders", partitions=[entry])
        return OffsetForLeaderEpochResponse(topics=[topic])

    reader.cluster.rules.append(unknown)
    reader.start()
    reader.seek(7, leader_epoch=3)
    reader.until("a")

    [reset] = reader.host.trace.of(PositionReset)
    assert (reset.policy, reset.offset) == ("earliest", 0)


def test_a_client_without_leader_epochs_is_out_of_range_and_resets() -> None:
    reader = Reader()
    for value in ("a", "b", "c"):
        reader.log.write(value)
    reader.log.elect(2, end_offset=1)
    reader.start()
    reader.seek(3)
    reader.until("a")

    assert not reader.host.trace.of(PositionTruncated)
    assert [reset.offset for reset in reader.host.trace.of(PositionReset)] == [0]


def test_out_of_range_without_a_policy_is_an_error_until_somebody_seeks() -> None:
    reader = Reader(auto_offset_reset="none")
    reader.log.write("a")
    reader.start(seek=9)
    reader.clock.run_for(1_000)

    [error] = reader.errors
    assert isinstance(error, OutOfRange) and error.offset == 9
    reader.seek(0)
    reader.until("a")


def test_a_verdict_about_a_position_that_was_left_does_not_count() -> None:
    """Position 5 is beyond the log, but while that is found out the program seeks to 2."""
    reader = Reader()
    for value in ("a", "b", "c", "d", "e"):
        reader.log.write(value)
    reader.log.elect(2, end_offset=3)
    reader.start()
    reader.until("a", "b", "c")
    asked = len(reader.cluster.requests(OffsetForLeaderEpochRequest))
    reader.seek(5, leader_epoch=0)
    reader.clock.run_until(
        lambda: len(reader.cluster.requests(OffsetForLeaderEpochRequest)) > asked
    )

    reader.seek(2, leader_epoch=0)
    reader.clock.run_for(2_000)

    assert reader.values() == ["a", "b", "c", "c"]
    assert not reader.host.trace.of(PositionTruncated)


def test_an_error_about_an_offset_that_was_left_does_not_count() -> None:
    reader = Reader()
    reader.log.write("a")
    reader.start(seek=9)
    reader.clock.run_until(lambda: reader.fetches())

    reader.seek(1)
    reader.log.write("b")
    reader.clock.run_for(2_000)

    assert reader.values() == ["b"]
    assert not reader.host.trace.of(PositionReset)


def test_records_are_not_given_while_their_position_is_in_doubt() -> None:
    """They were fetched from the old leader; the new one may know better."""
    reader = Reader(polls=False)
    reader.log.write("a")
    reader.start(seek=0)
    reader.clock.run_for(100)
    assert reader.poll() == ["a"]
    reader.log.write("b")
    reader.clock.run_for(100)

    reader.log.elect(2, end_offset=1)
    metadata = reader.host.client.metadata
    reader.host.do(lambda _: metadata.learn_leader(P0, Leader(2, 1), []))
    assert reader.poll() == [], "b was never committed"
    reader.log.write("new")
    reader.clock.run_for(100)
    assert reader.poll() == ["new"]
