"""A ticket for a batch, and receipts for it."""

from __future__ import annotations

from typing import Any

from tidelog.client.sink.values import BatchTicket, Receipt
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition

IDENTITY = ProducerIdAndEpoch(producer_id=9, producer_epoch=4)
TICKET = BatchTicket(
    transactional_id="tidelog-sink-s",
    batch_id=7,
    identity=IDENTITY,
    end_offsets={TopicPartition("out", index): 10 for index in range(3)},
    transaction_timeout_ms=60_000,
)


def receipt(partition: int = 0, **changes: Any) -> Receipt:
    given: dict[str, Any] = {
        "topic": "out",
        "partition": partition,
        "producer_id": IDENTITY.producer_id,
        "producer_epoch": IDENTITY.producer_epoch,
        "first_sequence": 0,
        "next_sequence": 30,
        "base_offset": 100,
        "next_offset": 130,
        "records": 30,
    }
    return Receipt(**{**given, **changes})
