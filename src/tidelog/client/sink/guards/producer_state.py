"""Before the commit each partition must remember of this batch's producer what the receipt says.

Whatever another writer added under the same identity has moved the last sequence, or begun the
transaction earlier than our first record.
"""

from __future__ import annotations

from tidelog.client.sink.errors import GuardFailed
from tidelog.client.sink.values import Receipt
from tidelog.core.model.limits import SEQUENCE_MODULUS
from tidelog.core.wire.messages.api_61_describe_producers import ProducerState


def check_producer(receipt: Receipt, producers: list[ProducerState]) -> None:
    """GuardFailed unless the partition's leader tells the same story as the receipt."""
    place = receipt.place
    state = next((each for each in producers if each.producer_id == receipt.producer_id), None)
    if state is None:
        raise GuardFailed(f"{place} knows nothing of producer {receipt.producer_id}")
    if state.producer_epoch != receipt.producer_epoch:
        raise GuardFailed(
            f"{place} is at producer epoch {state.producer_epoch}, not {receipt.producer_epoch}"
        )
    last_sequence = (receipt.next_sequence - 1) % SEQUENCE_MODULUS
    if state.last_sequence != last_sequence:
        raise GuardFailed(
            f"{place} is at sequence {state.last_sequence}, and the receipt ends at"
            f" {last_sequence}: another writer wrote under the same identity"
        )
    if state.current_txn_start_offset != receipt.base_offset:
        raise GuardFailed(
            f"{place}: the transaction begins at offset {state.current_txn_start_offset}, and the"
            f" receipt at {receipt.base_offset}: another writer wrote under the same identity"
        )
