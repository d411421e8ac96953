"""What a partition remembers of the producer must be what the receipt says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.sink.guards.given import receipt
from tidelog.client.sink.errors import GuardFailed
from tidelog.client.sink.guards.producer_state import check_producer
from tidelog.core.wire.messages.api_61_describe_producers import ProducerState


def state(**changes: Any) -> ProducerState:
    given: dict[str, Any] = {
        "producer_id": 9,
        "producer_epoch": 4,
        "last_sequence": 29,
        "current_txn_start_offset": 100,
    }
    return ProducerState(**{**given, **changes})


def test_the_same_story_is_believed() -> None:
    check_producer(receipt(), [state(producer_id=8, last_sequence=5), state()])


def test_sequences_wrap_around() -> None:
    check_producer(receipt(next_sequence=0), [state(last_sequence=2**31 - 1)])


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ([], "knows nothing of producer 9"),
        ([state(producer_id=8)], "knows nothing of producer 9"),
        ([state(producer_epoch=5)], "producer epoch 5, not 4"),
        ([state(last_sequence=30)], "at sequence 30, and the receipt ends at 29"),
        ([state(last_sequence=28)], "at sequence 28, and the receipt ends at 29"),
        ([state(current_txn_start_offset=90)], "begins at offset 90, and the receipt at 100"),
        ([state(current_txn_start_offset=-1)], "begins at offset -1"),
    ],
)
def test_another_story_is_a_second_writer(told: list[ProducerState], sentence: str) -> None:
    with pytest.raises(GuardFailed, match=f"out-0.*{sentence}"):
        check_producer(receipt(), told)
