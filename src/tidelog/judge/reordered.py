"""Reordered: offsets that do not increase, or numbered records that stand in another order."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

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


class _Place(NamedTuple):
    """A record's place in the order of its writer."""

    order: int
    position: int
    producer_epoch: int
    write: Wrote


def _orders(history: History, excuses: Excuses) -> dict[tuple[str, str], tuple[Wrote, int, int]]:
    """Which write of its writer a payload is, if it has an order, and where in that write."""
    return {
        (write.partition, payload): (write, write.order, position)
        for write in history
        if isinstance(write, Wrote)
        and write.order is not None
        and not excuses.retries(write.writer)
        for position, payload in enumerate(write.payloads)
    }


def _writes(
    operation: Read | FinalLog,
    orders: dict[tuple[str, str], tuple[Wrote, int, int]],
    excuses: Excuses,
) -> list[str]:
    """An earlier write may come later only as a repetition, under a new producer epoch."""
    newest: dict[str, _Place] = {}
    complaints = []
    for record in operation.records:
        found = orders.get((operation.partition, record.payload))
        if found is None:
            continue
        write, order, position = found
        producer_epoch = 0 if record.numbered is None else record.numbered.producer_epoch
        place = _Place(order, position, producer_epoch, write)
        before = newest.get(write.writer)
        if before is not None and place[:2] < before[:2]:
            is_new_epoch = place.producer_epoch > before.producer_epoch
            if not is_new_epoch or not excuses.may_repeat_under_new_epoch(write):
                complaints.append(
                    f"{write.writer}: {record.payload!r} at {record.offset} is its write {order}, "
                    f"after its write {before.order}"
                )
        newest[write.writer] = place
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
