"""A range is read to its end, whoever leads meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, once
from tests.unit.client.ranges.given import RangeStory, in_pieces, refused
from tidelog.client.ranges.errors import RangeLost, RangeRefused
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_01_fetch import FetchRequest


def test_a_range_is_given_from_its_first_to_its_last_batch() -> None:
    story = RangeStory()
    story.fill(20)
    story.begin(5, 12)
    story.read_all()

    assert story.offsets() == list(range(5, 12))
    assert story.range.is_complete and story.range.next_offset == 12
    [piece] = story.pieces
    assert (piece.start_offset, piece.next_offset) == (5, 12)
    assert (piece.log_start_offset, piece.high_watermark, piece.broker_id) == (0, 20, 1)


def test_an_empty_range_asks_nobody() -> None:
    story = RangeStory()
    story.begin(5, 5)
    story.clock.run_for(1_000)

    assert story.range.is_complete and not story.fetches()


def test_the_next_piece_is_on_its_way_while_the_program_works() -> None:
    story = RangeStory()
    story.fill(9)
    story.cluster.rules.append(in_pieces(3, 3, 3)(story))
    story.begin(0, 9)

    story.until_fetched()
    story.clock.run_for(1_000)
    assert story.asked_offsets() == [0], "nothing more before it is taken"
    story.take()
    story.clock.run_for(1_000)
    assert story.asked_offsets() == [0, 3], "asked without the program waiting for it"
    story.read_all()
    assert story.asked_offsets() == [0, 3, 6]
    assert story.offsets() == list(range(9))


def test_fetches_name_the_isolation_level_and_pass_on_what_was_aborted() -> None:
    story = RangeStory()
    story.fill(3)
    story.log.aborted = [(77, 1)]
    story.begin(0, 3)
    story.read_all()

    [seen] = story.fetches()
    assert seen.request.isolation_level == 1, "read_committed unless somebody asks for more"
    assert [tuple(each) for each in story.pieces[0].aborted] == [(77, 1)]


def test_uncommitted_reading_gets_no_aborted_transactions() -> None:
    story = RangeStory(isolation_level="read_uncommitted")
    story.fill(3)
    story.log.aborted = [(77, 1)]
    story.begin(0, 3)
    story.read_all()

    assert story.fetches()[0].request.isolation_level == 0
    assert story.pieces[0].aborted == ()


def test_a_short_range_asks_for_few_bytes_and_a_long_one_for_many() -> None:
    story = RangeStory(max_partition_fetch_bytes=1_000_000)
    story.fill(200)
    story.begin(0, 2)
    story.read_all()
    story.begin(0, 100_000)
    story.clock.run_for(100)

    wanted = [seen.request.topics[0].partitions[0].partition_max_bytes for seen in story.fetches()]
    assert wanted[0] < 100_000
    assert wanted[1] == 1_000_000


def test_ranges_of_one_client_share_its_connections() -> None:
    story = RangeStory()
    story.fill(10)
    story.begin(0, 5)
    story.read_all()
    sockets = list(story.cluster.brokers[1].sockets)
    other = story.begin(5, 10)
    story.clock.run_until(lambda: other.fetched is not None)

    assert story.cluster.brokers[1].sockets == sockets


def test_a_closed_range_wants_nothing_more() -> None:
    story = RangeStory()
    story.fill(10)
    story.cluster.rules.append(in_pieces(1, 1)(story))
    story.begin(0, 10)
    story.until_fetched()
    story.take()
    story.range.close()
    story.clock.run_for(5_000)

    assert story.range.fetched is None
    assert len(story.fetches()) == 2


# Whoever leads


def test_a_killed_leader_is_followed_to_its_successor() -> None:
    story = RangeStory()
    story.fill(10)
    story.cluster.rules.append(in_pieces(4)(story))
    story.begin(0, 10)
    story.until_fetched()
    story.take()

    story.cluster.kill(1)
    story.log.elect(2)
    story.read_all()

    assert story.offsets() == list(range(10))
    assert story.asked_offsets(2) == [4]


def test_a_paused_leader_is_left_when_another_leads() -> None:
    story = RangeStory(request_timeout_ms=3_000)
    story.fill(10)
    story.cluster.pause(1)
    story.begin(0, 10)
    story.clock.run_for(1_000)
    story.log.elect(3)
    story.read_all()

    assert story.asked_offsets(3) == [0]


@pytest.mark.parametrize("gives_hints", [True, False])
def test_a_moved_leader_is_found_with_and_without_its_hint(gives_hints: bool) -> None:
    story = RangeStory()
    story.cluster.gives_hints = gives_hints
    story.fill(10)
    story.cluster.rules.append(in_pieces(4)(story))
    story.begin(0, 10)
    story.until_fetched()

    story.log.elect(2)
    story.take()
    story.read_all()

    assert story.offsets() == list(range(10))
    assert story.asked_offsets(2) == [4]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_another_try_may_cure_is_tried_again(error: ErrorCode) -> None:
    story = RangeStory()
    story.fill(3)
    story.cluster.rules.append(once(refused(error)))
    story.begin(0, 3)
    story.read_all()

    assert story.offsets() == [0, 1, 2]
    assert story.asked_offsets() == [0, 0]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_what_no_other_try_cures_is_told_at_once(error: ErrorCode) -> None:
    story = RangeStory()
    story.fill(3)
    story.cluster.rules.append(refused(error))
    story.begin(0, 3)
    story.until_fetched(within_ms=1_000)

    assert isinstance(story.range.error, RangeRefused)
    assert error.name in str(story.range.error) and "broker 1" in str(story.range.error)
    story.clock.run_for(5_000)
    assert len(story.fetches()) == 1


def test_a_connection_that_ends_is_opened_again() -> None:
    story = RangeStory()
    story.fill(3)

    def close_it(broker_id: int, request: Any) -> Any:
        return Close() if isinstance(request, FetchRequest) else None

    story.cluster.rules.append(once(close_it))
    story.begin(0, 3)
    story.read_all()

    assert story.offsets() == [0, 1, 2]


def test_a_reader_with_a_rack_reads_from_the_replica_that_it_is_sent_to() -> None:
    story = RangeStory(client_rack="b")
    story.fill(6)
    story.log.preferred_replica = 2
    story.begin(0, 6)
    story.read_all()

    assert story.asked_offsets(2) == [0]
    assert story.pieces[0].broker_id == 2


def test_a_replica_that_lags_sends_the_reader_back_to_the_leader() -> None:
    story = RangeStory(client_rack="b")
    story.fill(6)
    story.log.preferred_replica = 2
    story.log.follower_lag = 4
    story.begin(5, 6)
    story.until_fetched()

    assert story.asked_offsets(2)[:1] == [5]
    assert story.range.error is None or not isinstance(story.range.error, RangeLost)
