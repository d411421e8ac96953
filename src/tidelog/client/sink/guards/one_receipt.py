"""Every partition of a batch has one writer: two receipts are two writers."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.sink.errors import GuardFailed
from tidelog.client.sink.values import Begun, Receipt
from tidelog.core.model.ids import TopicPartition


def receipts_by_partition(
    begun: Begun, receipts: Iterable[Receipt]
) -> dict[TopicPartition, Receipt]:
    """The receipts, if each is of this batch and of a partition of its own."""
    found: dict[TopicPartition, Receipt] = {}
    for receipt in receipts:
        place = receipt.place
        if place in found:
            raise GuardFailed(f"{place} has two receipts: two tasks wrote it in one batch")
        if place not in begun.end_offsets:
            raise GuardFailed(f"{place} has a receipt and is no partition of this sink")
        if (receipt.producer_id, receipt.producer_epoch) != begun.identity:
            raise GuardFailed(
                f"{place} has a receipt of producer {receipt.producer_id} epoch"
                f" {receipt.producer_epoch}, and this batch has {begun.identity.producer_id} epoch"
                f" {begun.identity.producer_epoch}"
            )
        found[place] = receipt
    return found
