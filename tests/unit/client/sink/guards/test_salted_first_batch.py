"""Attempts differ in the size of their first batch."""

from __future__ import annotations

import pytest

from tidelog.client.sink.guards.salted_first_batch import RECORDS_MAX, first_batch_records_max


def test_attempts_that_follow_each_other_have_different_first_batches() -> None:
    sizes = [first_batch_records_max(salt) for salt in range(RECORDS_MAX)]

    assert sorted(sizes) == list(range(1, RECORDS_MAX + 1))


@pytest.mark.parametrize("available", [2, 3, 10, 250, 251, 252, 100_000])
def test_a_first_batch_never_takes_all_that_is_there(available: int) -> None:
    """If it did, two attempts with few records would look the same again."""
    sizes = {first_batch_records_max(salt, available=available) for salt in range(1_000)}

    assert sizes == set(range(1, min(RECORDS_MAX, available - 1) + 1))


def test_a_single_record_is_its_own_first_batch() -> None:
    assert first_batch_records_max(77, available=1) == 1
