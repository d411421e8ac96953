"""Reordered: offsets that do not increase, or numbered records that stand in another order."""

from __future__ import annotations

from itertools import pairwise

from tidelog.judge.excuses import NO_EXCUSES, Excuses
from tidelog.judge.history import Anomaly, FinalLog, History, Read, Seen, Wrote


def reordered(history: History, excuses: Excuses = NO_EXCUSES) -> list[Anomaly]:
    """Offsets strictly increase; so do the sequences of one producer epoch (D4-O9, D4-I8).

    And the records of a writer that promises an order stand in the order of its writes.
    """
    orders = _orders(history, excuses)
    found: list[Anomaly] = []
    for operation in history:
        if not isinstance(operation, Read | FinalLog):
            continue
        found.extend(
            Anomaly(
                check="reordered",
                at_us=operation.at_us,
                partition=operation.partition,
                evidence=complaint,
            )
            for complaint in [
                *_offsets(operation.records),
                *_sequences(operation.records),
                *_writes(operation, orders, excuses),
            ]
        )
    return found


def _orders(history: History, excuses: Excuses) -> dict[tuple[str, str], tuple[str, int, int]]:
    """Who wrote a payload as which of its writes, and where in that write, if it has an order."""
    return {
        (write.partition, payload): (write.writer, write.order, place)
        for write in history
        if isinstance(write, Wrote)
        and write.order is not None
        and not excuses.retries(write.writer)
        for place, payload in enumerate(write.payloads)
    }


def _writes(
    operation: Read | FinalLog,
    orders: dict[tuple[str, str], tuple[str, int, int]],
    excuses: Excuses,
) -> list[str]:
    """Only within one producer epoch, where a leader may have forgotten an earlier one's."""
    is_forgetful = excuses.may_repeat_under_new_epoch(operation.partition)
    newest: dict[tuple[str, int], tuple[int, int]] = {}
    complaints = []
    for record in operation.records:
        found = orders.get((operation.partition, record.payload))
        if found is None:
            continue
        writer, order, place = found
        is_counted = is_forgetful and record.numbered is not None
        key = (writer, record.numbered.producer_epoch if is_counted and record.numbered else 0)
        before = newest.get(key)
        if before is not None and (order, place) < before:
            complaints.append(
                f"{writer}: {record.payload!r} at {record.offset} is its write {order}, "
                f"after its write {before[0]}"
            )
        newest[key] = (order, place)
    return complaints


def _offsets(records: tuple[Seen, ...]) -> list[str]:
    return [
        f"offset {after.offset} follows {before.offset}"
        for before, after in pairwise(records)
        if after.offset <= before.offset
    ]


def _sequences(records: tuple[Seen, ...]) -> list[str]:
    newest: dict[tuple[int, int], int] = {}
    complaints = []
    for record in records:
        if record.numbered is None:
            continue
        producer_id, producer_epoch, sequence = record.numbered
        before = newest.get((producer_id, producer_epoch))
        if before is not None and sequence <= before:
            complaints.append(
                f"producer {producer_id}: sequence {sequence} at {record.offset} follows {before}"
            )
        newest[(producer_id, producer_epoch)] = sequence
    return complaints
