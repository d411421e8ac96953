"""A range that cannot be read to its end is told what is gone, or who does not answer."""

from __future__ import annotations

from tests.unit.client.fake_cluster import once
from tests.unit.client.ranges.given import (
    STALLED_MS,
    TOPIC,
    RangeStory,
    answers,
    in_pieces,
    refused,
)
from tidelog.client.ranges.errors import Loss, RangeLost, RangeRefused, RangeStalled
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_23_offset_for_leader_epoch import OffsetForLeaderEpochRequest


def test_records_that_were_deleted_are_a_loss_that_tells_what_is_there() -> None:
    story = RangeStory()
    story.fill(10)
    story.log.log_start_offset = 6
    story.begin(2, 9)
    story.until_fetched()

    lost = story.range.error
    assert isinstance(lost, RangeLost)
    assert (lost.kind, lost.offset) == (Loss.DELETED, 2)
    assert (lost.log_start_offset, lost.high_watermark) == (6, 10)
    assert "orders-0 at offset 2" in str(lost) and "6 to 10" in str(lost)


def test_records_after_the_end_are_a_loss() -> None:
    story = RangeStory()
    story.fill(10)
    story.begin(12, 15)
    story.until_fetched()

    lost = story.range.error
    assert isinstance(lost, RangeLost)
    assert (lost.kind, lost.log_start_offset, lost.high_watermark) == (Loss.BEYOND_END, 0, 10)


def test_an_offset_that_was_out_of_range_for_a_moment_is_no_loss() -> None:
    story = RangeStory()
    story.fill(3)
    story.cluster.rules.append(once(refused(ErrorCode.OFFSET_OUT_OF_RANGE)))
    story.begin(0, 3)
    story.read_all()

    assert story.offsets() == [0, 1, 2]


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    story = RangeStory()
    story.fill(10)
    story.cluster.rules.append(in_pieces(4)(story))
    story.begin(0, 10)
    story.until_fetched()
    story.cluster.topics[TOPIC] = bytes(15) + b"\x63"
    story.cluster.rules.append(refused(ErrorCode.UNKNOWN_TOPIC_ID))
    story.take()
    story.until_fetched()

    assert isinstance(story.range.error, RangeLost)
    assert story.range.error.kind == Loss.REPLACED


def test_a_log_that_was_cut_below_what_was_read_is_a_loss() -> None:
    """An unclean election: the new leader has other records under offsets that were read."""
    story = RangeStory()
    story.fill(10)
    story.cluster.rules.append(in_pieces(6)(story))
    story.begin(0, 12)
    story.until_fetched()
    story.log.elect(2, end_offset=3)
    story.fill(9)
    story.take()
    story.until_fetched()

    lost = story.range.error
    assert isinstance(lost, RangeLost)
    assert (lost.kind, lost.offset, lost.high_watermark) == (Loss.TRUNCATED, 6, 3)


def test_a_clean_election_costs_one_question() -> None:
    story = RangeStory()
    story.fill(10)
    story.cluster.rules.append(in_pieces(6)(story))
    story.begin(0, 12)
    story.until_fetched()
    story.log.elect(2)
    story.log.write("x", "y")
    story.take()
    story.read_all()

    assert story.offsets() == list(range(12))
    assert len(story.cluster.requests(OffsetForLeaderEpochRequest)) == 1


# What does not come


def test_a_range_that_gets_nothing_says_from_whom_and_why() -> None:
    story = RangeStory()
    story.fill(3)
    for broker_id in story.cluster.brokers:
        story.cluster.kill(broker_id)
    story.begin(0, 3)
    story.until_fetched(within_ms=STALLED_MS + 100)

    error = story.range.error
    assert isinstance(error, RangeStalled)
    assert "b1:9092 (refused)" in str(error) and "20 s" in str(error)


def test_a_leader_that_is_silent_is_named() -> None:
    story = RangeStory()
    story.fill(3)
    story.cluster.rules.append(in_pieces(1)(story))
    story.begin(0, 3)
    story.until_fetched()
    story.cluster.pause(1)
    story.take()
    story.until_fetched(within_ms=STALLED_MS + 100)

    assert isinstance(story.range.error, RangeStalled)
    assert "broker 1 at b1:9092 does not answer" in str(story.range.error)


def test_an_open_transaction_that_never_ends_is_named() -> None:
    story = RangeStory()
    story.fill(3)
    story.cluster.rules.append(answers(high_watermark=3, last_stable_offset=1, records=b""))
    story.begin(1, 3)
    story.until_fetched(within_ms=STALLED_MS + 1_000)

    assert isinstance(story.range.error, RangeStalled)
    assert "an open transaction at offset 1" in str(story.range.error)


def test_a_topic_that_nobody_knows_is_named_so() -> None:
    story = RangeStory()
    story.begin(0, 3, TopicPartition("payments", 0))
    story.until_fetched(within_ms=STALLED_MS + 1_000)

    assert isinstance(story.range.error, RangeStalled)
    assert "no broker knows this topic" in str(story.range.error)


def test_time_counts_only_while_the_program_waits() -> None:
    story = RangeStory()
    story.fill(3)
    story.cluster.rules.append(in_pieces(1)(story))
    story.begin(0, 3)
    story.until_fetched()
    story.clock.run_for(10 * STALLED_MS)
    story.take()
    story.cluster.pause(1)
    story.clock.run_for(STALLED_MS - 100)
    story.range.wait_begins(story.clock.now_ms)
    story.clock.run_for(STALLED_MS - 100)
    assert story.range.error is None
    story.clock.run_for(200)
    assert isinstance(story.range.error, RangeStalled)


def test_an_answer_without_a_whole_batch_is_refused() -> None:
    story = RangeStory()
    story.fill(1)
    half = bytes(story.log.log[0][:-5])
    story.cluster.rules.append(answers(records=half, high_watermark=1))
    story.begin(0, 1)
    story.until_fetched()

    assert isinstance(story.range.error, RangeRefused)


def test_the_bytes_of_an_answer_outlive_it() -> None:
    """The host's buffer is overwritten after each answer; what was taken must not change."""
    story = RangeStory()
    story.fill(1)
    story.begin(0, 1)
    story.until_fetched()
    story.clock.run_for(1_000)

    assert bytes(story.take().records) == bytes(story.log.log[0])
