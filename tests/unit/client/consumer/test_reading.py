"""What a consumer asks for, what it gives to a program, and what it keeps from it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.consumer.given import P0, TOPIC, Reader
from tests.unit.client.fake_cluster import once
from tidelog.client.consumer.errors import (
    ConsumerError,
    CorruptRecords,
    NoOffset,
    PartitionReadRefused,
)
from tidelog.client.consumer.offset_lookup import LookupFailed, OffsetAndTimestamp
from tidelog.client.events import PositionReset, ReadReplicaChosen
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.control_records import end_txn_marker
from tidelog.core.wire.messages.api_01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tidelog.core.wire.messages.api_02_list_offsets import ListOffsetsRequest
from tidelog.core.wire.records import build


def refused(error: ErrorCode) -> Any:
    """A rule: partition 0 answers its fetches with this error."""

    def rule(broker_id: int, request: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return None
        topic_id = bytes(15) + b"\x0a"
        data = PartitionData(partition_index=0, error_code=error, high_watermark=-1)
        answer = FetchableTopicResponse(topic=TOPIC, topic_id=topic_id, partitions=[data])
        return FetchResponse(session_id=0, responses=[answer])

    return rule


@pytest.mark.parametrize(("policy", "expected"), [("earliest", ["a", "b"]), ("latest", ["b"])])
def test_without_a_position_the_policy_decides(policy: str, expected: list[str]) -> None:
    reader = Reader(auto_offset_reset=policy)
    reader.log.write("a")
    reader.start()
    reader.clock.run_until(lambda: reader.consumer.is_reading(P0))
    reader.log.write("b")
    reader.until(*expected)

    assert [reset.policy for reset in reader.host.trace.of(PositionReset)] == [policy]


def test_without_a_position_and_a_policy_the_program_is_asked() -> None:
    reader = Reader(auto_offset_reset="none")
    reader.log.write("a")
    reader.start()
    reader.clock.run_for(1_000)

    [error] = reader.errors
    assert isinstance(error, NoOffset) and error.partition == P0
    reader.host.do(lambda _: reader.consumer.seek_to_beginning(P0))
    reader.until("a")


def test_a_program_may_seek_to_either_end() -> None:
    reader = Reader()
    reader.log.write("a")
    reader.start()
    reader.until("a")

    reader.host.do(lambda _: reader.consumer.seek_to_end(P0))
    reader.clock.run_for(600)
    assert reader.consumer.position(P0) == 1
    reader.host.do(lambda _: reader.consumer.seek_to_beginning(P0))
    reader.until("a", "a")


def test_records_fetched_before_a_seek_are_not_given_after_it() -> None:
    reader = Reader(polls=False)
    reader.log.write("a")
    reader.log.write("b")
    reader.start()
    reader.clock.run_for(50)

    reader.seek(1)
    assert reader.poll() == []
    reader.clock.run_for(50)
    assert reader.poll() == ["b"]


def test_an_answer_to_a_fetch_from_before_a_seek_does_not_count() -> None:
    reader = Reader()
    reader.log.write("a")
    reader.start()
    reader.until("a")
    reader.log.write("b")
    reader.log.write("c")

    reader.seek(2)
    reader.until("a", "c")


def test_poll_gives_at_most_so_many_and_the_rest_later_without_another_fetch() -> None:
    reader = Reader(polls=False, max_poll_records=2)
    reader.log.write("a", "b", "c", "d", "e")
    reader.start()
    reader.clock.run_for(50)
    fetches = len(reader.fetches())

    assert reader.poll() == ["a", "b"]
    assert reader.consumer.position(P0) == 2
    assert reader.poll(records_max=1) == ["c"]
    assert len(reader.fetches()) == fetches, "what is here is taken first"
    assert reader.poll() == ["d", "e"]
    assert reader.poll() == []
    reader.clock.run_for(50)
    assert len(reader.fetches()) == fetches + 1


def test_a_batch_is_entered_in_its_middle() -> None:
    reader = Reader()
    reader.log.write("a", "b", "c")
    reader.start(seek=1)
    reader.until("b", "c")


def test_the_first_request_names_every_partition_and_later_ones_only_what_changed() -> None:
    reader = Reader(partitions=3)
    reader.log.write("a")
    reader.start(0, 1, 2)
    reader.until("a")
    reader.clock.run_for(2_000)

    first, second, third, *_ = (each.request for each in reader.fetches())
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert [each.partition for topic in first.topics for each in topic.partitions] == [0, 1, 2]
    assert second.session_epoch == 1
    assert [each.partition for topic in second.topics for each in topic.partitions] == [0]
    assert third.session_epoch == 2 and not third.topics


def test_partitions_that_are_read_no_more_leave_the_session() -> None:
    reader = Reader(partitions=2)
    reader.start(0, 1)
    reader.clock.run_for(600)
    reader.host.do(lambda _: reader.consumer.assign([P0]))
    reader.clock.run_for(600)

    forgotten = [
        topic.partitions
        for each in reader.fetches()
        for topic in each.request.forgotten_topics_data
    ]
    assert forgotten == [[1]]


def test_a_session_that_the_broker_forgot_begins_anew() -> None:
    reader = Reader()
    reader.log.write("a")
    reader.start()
    reader.until("a")

    reader.cluster.brokers[1].sessions.clear()
    reader.log.write("b")
    reader.until("a", "b")

    numbers = [each.request.session_epoch for each in reader.fetches()]
    assert numbers.count(0) == 2


def test_closing_ends_the_session() -> None:
    reader = Reader()
    reader.start()
    reader.clock.run_for(600)
    assert reader.cluster.brokers[1].sessions

    reader.host.do(lambda now_ms: reader.consumer.close(now_ms))
    reader.clock.run_for(600)

    assert not reader.cluster.brokers[1].sessions


def test_a_paused_partition_is_not_read_and_does_not_hold_up_the_others() -> None:
    reader = Reader(partitions=2)
    reader.start(0, 1)
    reader.clock.run_for(100)
    reader.host.do(lambda _: reader.consumer.pause(P0))
    reader.log.write("a")
    reader.cluster[f"{TOPIC}-1"].write("b")
    reader.clock.run_for(2_000)
    reader.cluster[f"{TOPIC}-1"].write("c")
    reader.clock.run_for(2_000)
    assert reader.values() == ["b", "c"]

    reader.host.do(lambda _: reader.consumer.resume(P0))
    reader.clock.run_for(2_000)
    assert reader.values() == ["b", "c", "a"]


def test_records_of_aborted_transactions_and_markers_are_skipped_by_read_committed() -> None:
    def story(level: str) -> list[str]:
        reader = Reader(isolation_level=level)
        log = reader.log
        numbers = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
        log.write("aborted", base_sequence=0, **numbers)
        log.write("plain")
        marker = end_txn_marker(commit=False, coordinator_epoch=0)
        log.append(bytes(build([marker], control=True, transactional=True)))
        log.log[-1] = _marker_of(7, log.end_offset - 1, commit=False)
        log.write("committed", base_sequence=1, **numbers)
        log.append(bytes(build([marker], control=True)))
        log.log[-1] = _marker_of(7, log.end_offset - 1, commit=True)
        log.aborted = [(7, 0)]
        reader.start()
        reader.clock.run_for(200)
        assert reader.consumer.position(P0) == 5, "markers take offsets"
        return reader.values()

    assert story("read_committed") == ["plain", "committed"]
    assert story("read_uncommitted") == ["aborted", "plain", "committed"]


def _marker_of(producer_id: int, offset: int, *, commit: bool) -> bytearray:
    marker = end_txn_marker(commit=commit, coordinator_epoch=0)
    return build(
        [marker],
        base_offset=offset,
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        control=True,
        transactional=True,
    )


def test_a_damaged_batch_is_an_error_after_everything_before_it() -> None:
    reader = Reader()
    reader.log.write("a")
    reader.log.write("b")
    reader.log.log[1][-1] ^= 1
    reader.start()
    reader.clock.run_for(1_000)

    assert reader.values() == ["a"]
    error = reader.errors[0]
    assert isinstance(error, CorruptRecords) and error.offset == 1
    assert "checksum" in str(error)


def test_damage_is_not_noticed_by_those_who_do_not_want_to_know() -> None:
    reader = Reader(check_crcs=False)
    reader.log.write("b")
    reader.log.log[0][-2] ^= 1
    reader.start()
    reader.clock.run_for(1_000)

    assert len(reader.records) == 1 and not reader.errors


def test_a_leader_sends_its_reader_to_a_nearer_replica_until_that_one_is_behind() -> None:
    """KIP-392, and an offset that the follower does not have yet is asked of the leader again."""
    reader = Reader(client_rack="b")
    reader.log.preferred_replica = 3
    reader.log.write("a")
    reader.start()
    reader.until("a")

    assert reader.host.trace.of(ReadReplicaChosen)[0].replica_id == 3
    assert reader.fetches(1)[0].request.rack_id == "b"
    assert reader.fetches(3)

    reader.log.follower_lag = 1
    leaders = len(reader.fetches(1))
    reader.clock.run_for(1_500)
    assert len(reader.fetches(1)) > leaders, "out of range at the follower"
    assert not reader.errors
    assert len(reader.host.trace.of(PositionReset)) == 1

    reader.log.follower_lag = 0
    reader.log.write("b")
    reader.until("a", "b")


def test_a_read_replica_that_dies_sends_the_reader_back_to_the_leader() -> None:
    reader = Reader(client_rack="b")
    reader.log.preferred_replica = 3
    reader.log.write("a")
    reader.start()
    reader.until("a")

    reader.log.preferred_replica = None
    reader.cluster.kill(3)
    reader.log.write("b")
    reader.until("a", "b", within_ms=2_000)


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ],
)
def test_errors_that_pass_are_waited_for_with_a_pause(error: ErrorCode) -> None:
    reader = Reader()
    rule = refused(error)
    reader.cluster.rules.append(rule)
    reader.log.write("a")
    reader.start()
    reader.clock.run_for(3_000)
    assert 2 <= len(reader.fetches()) < 15
    assert not reader.errors and not reader.records

    reader.cluster.rules.remove(rule)
    reader.until("a", within_ms=2_000)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, PartitionReadRefused),
        (ErrorCode.CORRUPT_MESSAGE, CorruptRecords),
    ],
)
def test_errors_that_do_not_pass_are_the_programs(
    error: ErrorCode, kind: type[ConsumerError]
) -> None:
    reader = Reader()
    reader.cluster.rules.append(once(refused(error)))
    reader.start()
    reader.clock.run_for(1_000)

    assert [type(each) for each in reader.errors] == [kind]


def test_offsets_by_time_and_at_both_ends_come_from_every_leader() -> None:
    reader = Reader(partitions=2)
    one, two = P0, TopicPartition(TOPIC, 1)
    reader.cluster[f"{TOPIC}-1"].elect(2)
    reader.log.write("a", timestamp_ms=1_000)
    reader.log.write("b", timestamp_ms=2_000)
    results: list[Any] = []

    def on_result(result: Any, now_ms: int) -> None:
        results.append(result)

    consumer = reader.consumer
    reader.host.do(lambda now_ms: consumer.beginning_offsets([one, two], on_result, now_ms=now_ms))
    reader.host.do(lambda now_ms: consumer.end_offsets([one, two], on_result, now_ms=now_ms))
    times = {one: 1_500, two: 1_500}
    reader.host.do(lambda now_ms: consumer.offsets_for_times(times, on_result, now_ms=now_ms))
    reader.clock.run_until(lambda: len(results) == 3, within_ms=1_000)

    beginning, end, by_time = results
    assert {each: found.offset for each, found in beginning.items()} == {one: 0, two: 0}
    assert {each: found.offset for each, found in end.items()} == {one: 2, two: 0}
    assert by_time == {one: OffsetAndTimestamp(1, 1_500, 0), two: None}
    assert {each.broker_id for each in reader.cluster.requests(ListOffsetsRequest)} == {1, 2}


def test_a_lookup_goes_on_until_there_is_a_leader_or_its_time_is_up() -> None:
    reader = Reader(default_api_timeout_ms=3_000)
    reader.log.elect(None)
    results: list[Any] = []

    def on_result(result: Any, now_ms: int) -> None:
        results.append(result)

    ask = reader.consumer.end_offsets
    reader.host.do(lambda now_ms: ask([P0], on_result, now_ms=now_ms))
    reader.clock.run_for(3_000)
    assert [type(each) for each in results] == [LookupFailed]

    reader.host.do(lambda now_ms: ask([P0], on_result, now_ms=now_ms))
    reader.log.elect(3)
    reader.clock.run_until(lambda: len(results) == 2, within_ms=2_000)
    assert results[1][P0].offset == 0


def test_only_assigned_partitions_have_positions() -> None:
    with pytest.raises(ValueError, match="not assigned"):
        Reader().consumer.position(P0)
