"""What offsets promise on a single broker."""

from __future__ import annotations

import pytest

from tidelog.core.model.errors import ErrorCode
from tidelog.worlds.simulator.single_broker import SingleBroker


@pytest.mark.scenario("D4-O9", "N40")
@pytest.mark.parametrize("end", ["killed", "power lost", "stopped"])
def test_offsets_strictly_increase_and_stay_what_they_were_over_segments_and_restarts(
    end: str,
) -> None:
    stage = SingleBroker(fsync="group")
    orders = stage.create_topic("orders", internal_segment_bytes="300")
    for number in range(20):
        assert stage.produce(orders, f"a{number}", f"b{number}").base_offset == 2 * number
    before = stage.read(orders).records
    assert len(stage.segments(orders)) > 3

    restart = {
        "killed": stage.restart,
        "power lost": stage.lose_power_and_restart,
        "stopped": stage.restart_cleanly,
    }
    restart[end]()
    stage.produce(orders, "more")

    after = stage.read(orders).records
    assert after[: len(before)] == before
    assert [record.offset for record in after] == list(range(41))


@pytest.mark.scenario("D4-O9", "N40")
def test_offsets_of_deleted_records_are_never_given_again() -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders", internal_segment_bytes="200")
    for number in range(6):
        stage.produce(orders, f"m{number}")

    stage.delete_records(orders, 6)
    stage.world.run_for(1_000)
    stage.restart()

    assert stage.produce(orders, "m6").base_offset == 6
    assert stage.fetch(orders, offset=5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert stage.read(orders, offset=6).payloads == ["m6"]


def test_a_topic_that_is_made_again_starts_at_zero_under_another_id() -> None:
    stage = SingleBroker()
    old = stage.create_topic("orders")
    stage.produce(old, "old")
    stage.delete_topic(old)
    new = stage.create_topic("orders")

    assert new.topic_id != old.topic_id
    assert stage.produce(new, "new").base_offset == 0
    assert stage.fetch(old).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    stage.lose_power_and_restart()
    assert stage.read(new).payloads in (["new"], [])
