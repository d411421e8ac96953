"""Sequences, retries, gaps and epochs of idempotent producers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.given import NOW_MS, SMALL, Rig, append, batch, read_all
from tidelog.core.model.errors import ErrorCode
from tidelog.core.storage.log import Appended, Log
from tidelog.core.storage.producers import sequence_after, sequence_before

FAR = 2**31 - 8


def send(log: Log, sequence: int, count: int = 1, *, producer_epoch: int = 0) -> Appended:
    view = batch(count, producer_id=1, producer_epoch=producer_epoch, sequence=sequence)
    return append(log, view)


@pytest.mark.parametrize(
    ("sequence", "count", "after"),
    [(0, 5, 5), (0, 0, 0), (2**31 - 1, 1, 0), (2**31 - 3, 5, 2), (7, 2**31, 7)],
)
def test_sequences_wrap_at_the_end_of_31_bits(sequence: int, count: int, after: int) -> None:
    assert sequence_after(sequence, count) == after
    assert sequence_before(after, count) == sequence


@pytest.mark.scenario("D4-I7")
def test_a_retry_is_answered_with_its_first_offset_and_not_written() -> None:
    log = Rig().open()
    send(log, 0, 3)
    send(log, 3, 2)

    again = send(log, 0, 3)

    assert again == Appended(ErrorCode.NONE, 0, 3, NOW_MS, True, None)
    assert log.log_end_offset == 5
    assert len(read_all(log)) == 5


def test_the_latest_five_batches_are_recognised_and_no_older_one() -> None:
    log = Rig().open()
    for sequence in range(6):
        send(log, sequence)

    for sequence in range(1, 6):
        again = send(log, sequence)
        assert (again.is_duplicate, again.base_offset) == (True, sequence)

    assert send(log, 0).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("sequence", "count"),
    [(5, 1), (4, 1), (1, 1), (0, 2), (1, 3), (0, 4)],
    ids=["a gap", "a gap of one", "a part", "a shorter part", "too long", "longer"],
)
def test_what_is_neither_next_nor_an_exact_retry_is_out_of_order(sequence: int, count: int) -> None:
    log = Rig().open()
    send(log, 0, 3)

    result = send(log, sequence, count)

    assert result.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 3


def test_an_older_producer_epoch_is_fenced_off() -> None:
    log = Rig().open()
    send(log, 0, producer_epoch=4)

    assert send(log, 1, producer_epoch=3).error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(log, 0, producer_epoch=3).error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_newer_producer_epoch_starts_at_zero() -> None:
    log = Rig().open()
    send(log, 0, 2, producer_epoch=4)

    assert send(log, 2, producer_epoch=5).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, producer_epoch=5).error == ErrorCode.NONE
    assert send(log, 2, producer_epoch=4).error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_batches_of_an_older_producer_epoch_are_no_duplicates_of_the_new() -> None:
    log = Rig().open()
    send(log, 0, producer_epoch=4)

    result = send(log, 0, producer_epoch=5)

    assert (result.is_duplicate, result.base_offset) == (False, 1)


def test_a_producer_that_nobody_knows_may_start_anywhere() -> None:
    log = Rig().open()

    assert send(log, 77, 2).base_offset == 0
    assert send(log, 79).base_offset == 2
    assert send(log, 77, 2).is_duplicate


@pytest.mark.scenario("X-23")
def test_sequences_wrap_inside_a_batch_and_the_retry_is_recognised() -> None:
    log = Rig().open()
    assert send(log, FAR, 20).base_offset == 0

    again = send(log, FAR, 20)
    assert (again.is_duplicate, again.base_offset, again.end_offset) == (True, 0, 20)
    assert send(log, 11).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 13).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 12, 3).base_offset == 20


@pytest.mark.scenario("X-23")
def test_sequences_wrap_between_batches() -> None:
    log = Rig().open()
    send(log, FAR, 8)

    assert send(log, 0, 2).base_offset == 8
    assert send(log, FAR, 8).is_duplicate
    assert send(log, 0, 2).is_duplicate


@pytest.mark.scenario("X-23")
def test_a_wrapped_batch_is_recognised_after_a_clean_restart() -> None:
    rig = Rig()
    log = rig.open()
    send(log, FAR, 20)
    log.close_cleanly()
    rig.kill()

    log = rig.open(clean=True)

    assert send(log, FAR, 20).is_duplicate
    assert send(log, 12).base_offset == 20


@pytest.mark.scenario("X-22")
def test_a_producer_idle_for_a_day_may_go_on_at_any_sequence() -> None:
    rig = Rig()
    log = rig.open()
    send(log, 0)
    day_ms = log.config.producer_id_expiration_ms

    assert log.expire_producers(NOW_MS + day_ms - 1) == 0
    assert send(log, 9).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.expire_producers(NOW_MS + day_ms) == 1

    assert send(log, 9).base_offset == 1
    assert send(log, 9).is_duplicate


@pytest.mark.scenario("X-22")
def test_a_producer_idle_for_a_day_is_forgotten_by_a_restart_too() -> None:
    rig = Rig()
    log = rig.open()
    send(log, 0)
    log.close_cleanly()
    rig.kill()
    rig.wall_ms += log.config.producer_id_expiration_ms

    assert send(rig.open(clean=True), 9).error == ErrorCode.NONE


@pytest.mark.scenario("X-22")
def test_a_producer_whose_records_were_all_deleted_goes_on_without_an_error() -> None:
    rig = Rig()
    log = rig.open()
    for sequence in range(12):
        send(log, sequence)
    log.advance_high_watermark(12)
    log.delete_records_before(12)

    assert send(log, 12).base_offset == 12
    assert send(log, 12).is_duplicate


@pytest.mark.scenario("X-22")
def test_after_a_restart_a_producer_whose_records_are_gone_may_go_on_anywhere() -> None:
    rig = Rig()
    log = rig.open()
    for sequence in range(12):
        send(log, sequence)
    log.advance_high_watermark(12)
    log.delete_records_before(12)
    log.close_cleanly()
    rig.kill()

    log = rig.open(clean=True, log_start_offset=12)

    assert log.log_end_offset == 12
    assert send(log, 40).base_offset == 12


def test_retention_does_not_make_the_running_log_forget_a_producer() -> None:
    log = Rig(replace(SMALL, retention_bytes=0)).open()
    for sequence in range(12):
        send(log, sequence)
    log.advance_high_watermark(12)

    assert log.enforce_retention(NOW_MS) > 0

    assert log.log_start_offset == 12
    assert send(log, 11).is_duplicate
    assert send(log, 14).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_five_batches_are_known_again_after_a_crash() -> None:
    rig = Rig()
    log = rig.open()
    for sequence in range(30):
        send(log, sequence)
    rig.kill()

    log = rig.open()

    for sequence in range(25, 30):
        assert send(log, sequence).base_offset == sequence
    assert log.log_end_offset == 30
    assert send(log, 30).base_offset == 30


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_producer_without_timestamps_is_known_again_after_a_restart(is_clean: bool) -> None:
    """No timestamp is not the year 1970: its retry must not be stored a second time."""
    rig = Rig()
    log = rig.open()
    append(log, batch(3, timestamp_ms=-1, producer_id=1, producer_epoch=0, sequence=0))
    if is_clean:
        log.close_cleanly()
    rig.kill()

    log = rig.open(clean=is_clean)
    again = append(log, batch(3, timestamp_ms=-1, producer_id=1, producer_epoch=0, sequence=0))

    assert again.is_duplicate
    assert log.log_end_offset == 3
    assert log.expire_producers(rig.wall_ms + log.config.producer_id_expiration_ms) == 1


def test_a_truncation_forgets_what_it_cut() -> None:
    log = Rig().open()
    for sequence in range(30):
        send(log, sequence)

    log.truncate_to(17)

    assert send(log, 18).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 16).is_duplicate
    assert send(log, 17).base_offset == 17


def test_a_log_that_starts_anew_knows_no_producer() -> None:
    log = Rig().open()
    send(log, 0)

    log.start_anew_at(500)

    assert send(log, 44).base_offset == 500


def test_batches_without_a_producer_are_never_duplicates() -> None:
    log = Rig().open()

    append(log)
    append(log)

    assert log.log_end_offset == 2
    assert log.producers.by_id == {}
