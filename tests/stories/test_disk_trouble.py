"""What a broker does when its disk is full, torn, failing or lying."""

from __future__ import annotations

import pytest

from tidelog.client.partition_requests import produce_answer
from tidelog.core.model.errors import ErrorCode
from tidelog.core.storage.events import SegmentsDeleted, TailCut
from tidelog.core.wire.record_batch import batches
from tidelog.worlds.simulator import requests
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.durable_store import FileNode
from tidelog.worlds.simulator.payloads import read_answer
from tidelog.worlds.simulator.requests import TopicName
from tidelog.worlds.simulator.single_broker import ProduceOutcome, SingleBroker

NONE = ErrorCode.NONE


def not_acknowledged(stage: SingleBroker, topic: TopicName, payload: str) -> bool:
    """A write whose answer is missing or an error: never an ack."""
    batch = stage.batch(payload, size_bytes=500)
    outcome = stage.ask(requests.produce(topic, 0, batch, acks=-1), 11)
    if isinstance(outcome, CallFailed):
        return True
    return produce_answer(outcome).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.scenario("X-31")
@pytest.mark.parametrize("bytes_left", [0, 30, 61, 200])
def test_a_full_disk_is_never_acknowledged_and_stops_a_broker_with_one_directory(
    bytes_left: int,
) -> None:
    stage = SingleBroker(seed=bytes_left)
    orders = stage.create_topic("orders")
    stage.produce(orders, "kept")

    stage.broker.store.fill_up(bytes_left=bytes_left)
    assert not_acknowledged(stage, orders, "too much")
    stage.run_until(lambda: not stage.broker.is_up, within_ms=1_000)
    assert "no space left" in (stage.broker.halt_reason or "")

    stage.restart()
    assert stage.read(orders).payloads == ["kept"]
    assert stage.produce(orders, "after").base_offset == 1


@pytest.mark.scenario("X-31")
def test_one_failing_directory_of_two_goes_offline_and_the_other_serves_on() -> None:
    stage = SingleBroker(log_dirs="one,two")
    topics = [stage.create_topic(f"topic-{number}") for number in range(6)]
    for topic in topics:
        stage.produce(topic, "kept")
    in_two = [topic for topic in topics if stage.segments(topic)[0].startswith("two/")]
    in_one = [topic for topic in topics if topic not in in_two]
    assert in_one and in_two

    stage.broker.store.break_below("two")
    assert stage.produce(in_two[0], "lost").error == ErrorCode.KAFKA_STORAGE_ERROR
    assert stage.broker.is_up
    for topic in in_two:
        assert stage.produce(topic, "lost").error == ErrorCode.KAFKA_STORAGE_ERROR
    for topic in in_one:
        assert stage.produce(topic, "more").error == NONE

    stage.restart()
    for topic in topics:
        assert "lost" not in stage.read(topic).payloads
        assert "kept" in stage.read(topic).payloads


@pytest.mark.scenario("X-31")
def test_a_read_that_fails_is_an_error_for_its_reader_and_takes_the_directory_offline() -> None:
    stage = SingleBroker(log_dirs="one,two")
    topics = [stage.create_topic(f"topic-{number}") for number in range(6)]
    for topic in topics:
        for number in range(3):
            stage.produce(topic, f"m{number}")
    in_two = [topic for topic in topics if stage.segments(topic)[0].startswith("two/")]
    stage.restart()

    stage.broker.store.break_below("two")
    told = stage.fetch(in_two[0], offset=1)

    assert told.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert stage.broker.is_up
    assert stage.produce(in_two[1], "lost").error == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.scenario("X-31")
def test_a_directory_that_fails_while_logs_are_opened_leaves_the_other_one_serving() -> None:
    stage = SingleBroker(log_dirs="one,two")
    topics = [stage.create_topic(f"topic-{number}") for number in range(6)]
    for topic in topics:
        stage.produce(topic, "kept")
    in_one = [topic for topic in topics if stage.segments(topic)[0].startswith("one/")]

    stage.broker.kill()
    stage.broker.store.break_below("two/topic-")
    stage.start()

    assert stage.broker.is_up
    for topic in in_one:
        assert stage.read(topic).payloads == ["kept"]
    stage.restart()
    for topic in topics:
        assert stage.read(topic).payloads == ["kept"]


@pytest.mark.scenario("X-31")
@pytest.mark.parametrize("operation", range(0, 120, 3))
def test_an_error_at_any_moment_of_the_start_costs_no_record(operation: int) -> None:
    stage = SingleBroker()
    topics = [stage.create_topic(f"topic-{number}", partitions=2) for number in range(2)]
    for topic in topics:
        stage.produce(topic, "kept", index=1)

    stage.broker.kill()
    stage.broker.store.fail_operation(after=operation)
    stage.start()
    stage.restart()

    for topic in topics:
        assert stage.read(topic, index=1).payloads == ["kept"]


@pytest.mark.scenario("X-31")
def test_what_lies_in_a_directory_that_cannot_be_read_is_not_made_anew_in_another() -> None:
    """Twice, because after the first start the controller would believe that it had moved."""
    stage = SingleBroker(log_dirs="one,two")
    topics = [stage.create_topic(f"topic-{number}") for number in range(4)]
    for topic in topics:
        stage.produce(topic, "kept")
    in_two = [topic for topic in topics if stage.segments(topic)[0].startswith("two/")]
    assert in_two

    for _ in range(2):
        stage.broker.kill()
        stage.broker.store.break_below("two/recovery-point")
        stage.start()
        stage.world.run_for(1_000)
    for topic in in_two:
        assert stage.produce(topic, "lost").error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    new = stage.create_topic("new")
    assert stage.produce(new, "kept").error == NONE

    stage.restart()
    for topic in [*topics, new]:
        assert stage.read(topic).payloads == ["kept"]


@pytest.mark.scenario("X-31")
def test_a_start_that_cannot_read_its_checkpoints_changes_no_log() -> None:
    """Storage seed 610515.

    1. The head of a log is deleted; a power loss brings some of its segments back, with holes.
    2. The next start cannot read where the log starts, and must leave it alone.
    """
    stage = SingleBroker(fsync="group")
    orders = stage.create_topic("orders", internal_segment_bytes="200")
    payloads = [f"m{number}" for number in range(11)]
    for payload in payloads[:10]:
        stage.produce(orders, payload, size_bytes=120)
    segments = stage.segments(orders)
    third = stage.broker.store.find(segments[2])
    assert len(segments) == 10 and isinstance(third, FileNode)
    stage.delete_records(orders, 8)
    stage.run_until(lambda: len(stage.segments(orders)) == 2, within_ms=120_000)
    stage.produce(orders, payloads[10], size_bytes=120)
    kept = stage.segments(orders)
    stage.broker.lose_power()
    stage.broker.store.bring_back(segments[2], third)
    assert stage.segments(orders) == [segments[2], *kept]

    stage.broker.store.fail_next_sync()
    stage.start()
    assert not stage.broker.is_up
    stage.restart()

    assert stage.read(orders, offset=8).payloads == payloads[8:]


@pytest.mark.scenario("X-31")
def test_a_full_disk_met_by_a_chore_stops_the_broker_without_waiting_for_a_client() -> None:
    stage = SingleBroker()
    stage.produce(stage.create_topic("orders"), "kept")

    stage.broker.store.fill_up(bytes_left=0)

    stage.run_until(lambda: not stage.broker.is_up, within_ms=2_000)
    assert "no space left" in (stage.broker.halt_reason or "")


@pytest.mark.scenario("X-31")
def test_a_failed_sync_is_final_and_acknowledges_nothing() -> None:
    stage = SingleBroker(fsync="group")
    orders = stage.create_topic("orders")
    stage.produce(orders, "kept")

    stage.broker.store.fail_next_sync()
    assert not_acknowledged(stage, orders, "unsynced")
    assert not stage.broker.is_up
    assert "sync" in (stage.broker.halt_reason or "")

    stage.restart()
    assert stage.read(orders).payloads[:1] == ["kept"]


@pytest.mark.scenario("X-32")
@pytest.mark.parametrize("kept_bytes", [1, 11, 60, 61, 70])
def test_a_torn_last_batch_is_cut_and_its_offset_is_given_again(kept_bytes: int) -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders")
    for payload in ("a", "b", "torn"):
        stage.produce(orders, payload)

    stage.broker.kill()
    segment = stage.broker.store.find(stage.segments(orders)[-1])
    assert isinstance(segment, FileNode)
    torn_position = [position for position, _ in batches(bytes(segment.data))][-1]
    segment.truncate(torn_position + kept_bytes)
    stage.start()

    assert stage.events(TailCut)
    assert stage.read(orders).payloads == ["a", "b"]
    assert stage.produce(orders, "c").base_offset == 2
    assert stage.read(orders, offset=1).payloads == ["b", "c"]


@pytest.mark.scenario("X-32")
@pytest.mark.parametrize("seed", range(12))
def test_a_power_loss_takes_only_what_was_never_promised(seed: int) -> None:
    stage = SingleBroker(seed=seed, fsync="group")
    orders = stage.create_topic("orders", internal_segment_bytes="600")
    for number in range(10):
        assert stage.produce(orders, f"sure{number}", size_bytes=90).error == NONE
    told: list[object] = []
    for number in range(4):
        batch = stage.batch(f"maybe{number}", size_bytes=90)
        stage.client.call(requests.produce(orders, 0, batch, acks=1), 11, told.append)
    stage.world.run_for(1)

    stage.lose_power_and_restart()

    found = stage.read(orders)
    assert found.corrupt_offset is None
    assert found.payloads[:10] == [f"sure{number}" for number in range(10)]
    assert found.payloads[10:] == [f"maybe{number}" for number in range(len(found.payloads) - 10)]


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_in_an_old_segment_is_noticed_by_the_reader_and_harms_nothing_else(
    bit: int,
) -> None:
    stage = SingleBroker(seed=bit)
    orders = stage.create_topic("orders", internal_segment_bytes="300")
    for number in range(12):
        stage.produce(orders, f"m{number}", size_bytes=100)
    old = stage.segments(orders)[1]
    node = stage.broker.store.find(old)
    assert isinstance(node, FileNode)
    position, header = next(batches(bytes(node.data)))

    stage.broker.store.flip_bit(old, position=position + 21 + 9 * bit, bit=bit)

    found = stage.read(orders)
    assert found.corrupt_offset == header.base_offset
    assert found.payloads == [f"m{number}" for number in range(header.base_offset)]
    behind = stage.read(orders, offset=header.end_offset)
    assert behind.payloads == [f"m{number}" for number in range(header.end_offset, 12)]


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize(
    ("field", "byte", "bit"),
    [
        ("batch length", 10, 1),
        ("magic", 16, 0),
        ("last offset delta, larger", 26, 3),
        ("last offset delta, smaller", 26, 1),
        ("last offset delta, negative", 23, 7),
        ("count of records", 60, 2),
        ("base offset", 7, 6),
    ],
)
def test_a_flipped_bit_in_a_header_is_told_at_its_own_offsets_and_hides_no_others(
    field: str, byte: int, bit: int
) -> None:
    stage = SingleBroker(seed=bit)
    orders = stage.create_topic("orders", internal_segment_bytes="900")
    for number in range(12):
        names = [f"m{number}.{each}" for each in range(3)]
        assert stage.produce(orders, *names, size_bytes=40).error == NONE
    old = stage.segments(orders)[0]
    node = stage.broker.store.find(old)
    assert isinstance(node, FileNode)
    position, header = list(batches(bytes(node.data)))[1]
    stage.broker.store.flip_bit(old, position=position + byte, bit=bit)

    def told(offset: int) -> bool:
        """Whether the reader is refused, or is given bytes whose checksum is wrong."""
        answer = stage.fetch(orders, offset=offset)
        refused = answer.error_code == ErrorCode.CORRUPT_MESSAGE
        return refused or read_answer(answer.records, next_offset=offset)[1] == offset

    for restarts in (False, True):
        if restarts:
            stage.restart_cleanly()
        assert next(each for each in range(36) if told(each)) == header.base_offset, field
        for offset in (header.base_offset + 1, header.end_offset - 1):
            assert stage.fetch(orders, offset=offset).error_code == ErrorCode.CORRUPT_MESSAGE
        behind = stage.read(orders, offset=header.end_offset)
        assert behind.corrupt_offset is None
        assert [record.offset for record in behind.records] == list(range(header.end_offset, 36))

    stage.broker.store.flip_bit(old, position=position + byte, bit=bit)
    assert len(stage.read(orders).records) == 36


def test_retention_may_delete_what_is_still_being_synced_and_writes_are_acknowledged_on() -> None:
    stage = SingleBroker(fsync="group")
    orders = stage.create_topic("orders", internal_segment_bytes="200", retention_ms="60000")
    for number in range(10):
        stage.produce(orders, f"m{number}", size_bytes=120)
    stage.world.run_for(1_000)

    stage.broker.kill()
    stage.broker.sync_us_max = 60_000
    stage.broker.clock_offset_ms += 100_000
    stage.start()
    stage.run_until(lambda: bool(stage.events(SegmentsDeleted)), within_ms=1_000)

    assert stage.produce(orders, "m10") == ProduceOutcome(NONE, 10)
