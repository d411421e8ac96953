"""Reordered: offsets that do not increase, or numbered records that stand in another order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from tidelog.judge.anomalies import REORDERED, Anomaly
from tidelog.judge.excuses import Excuses
from tidelog.judge.history import FinalLog, History, RecordsRead, Seen, Wrote

_Evidence = dict[str, Any]


def reordered(history: History, excuses: Excuses) -> list[Anomaly]:
    """Offsets strictly increase; so do the sequences of one producer epoch (D4-O9, D4-I8).

    And the records of a writer that promises an order stand in the order of its writes.
    """
    orders = _orders(history, excuses)
    found: list[Anomaly] = []
    for operation in history:
        if not isinstance(operation, RecordsRead | FinalLog):
            continue
        found.extend(
            REORDERED.found(at_us=operation.at_us, partition=operation.partition, **evidence)
            for evidence in [
                *_offsets(operation.records),
                *_sequences(operation.records),
                *_writes(operation, orders, excuses),
            ]
        )
    return found


class _OrderedRecord(NamedTuple):
    """Where a record is in the order of its writer."""

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
    operation: RecordsRead | FinalLog,
    orders: dict[tuple[str, str], tuple[Wrote, int, int]],
    excuses: Excuses,
) -> list[_Evidence]:
    """An earlier write may come later only as a repetition, under a new producer epoch."""
    newest: dict[str, _OrderedRecord] = {}
    evidence = []
    for record in operation.records:
        found = orders.get((operation.partition, record.payload))
        if found is None:
            continue
        write, order, position = found
        producer_epoch = 0 if record.numbered is None else record.numbered.producer_epoch
        current = _OrderedRecord(order, position, producer_epoch, write)
        before = newest.get(write.writer)
        if before is not None and current[:2] < before[:2]:
            is_new_epoch = current.producer_epoch > before.producer_epoch
            if not is_new_epoch or not excuses.may_repeat_under_new_epoch(
                write, (each for each, _, _ in orders.values())
            ):
                evidence.append(
                    {
                        "writer": write.writer,
                        "payload": record.payload,
                        "offset": record.offset,
                        "write": order,
                        "write_before": before.order,
                    }
                )
        newest[write.writer] = current
    return evidence


def _offsets(records: tuple[Seen, ...]) -> list[_Evidence]:
    return [
        {"offset": after.offset, "payload": after.payload, "offset_before": before.offset}
        for before, after in pairwise(records)
        if after.offset <= before.offset
    ]


def _sequences(records: tuple[Seen, ...]) -> list[_Evidence]:
    newest: dict[tuple[int, int], int] = {}
    evidence = []
    for record in records:
        if record.numbered is None:
            continue
        producer_id, producer_epoch, sequence = record.numbered
        before = newest.get((producer_id, producer_epoch))
        if before is not None and sequence <= before:
            evidence.append(
                {
                    "producer_id": producer_id,
                    "sequence": sequence,
                    "payload": record.payload,
                    "offset": record.offset,
                    "sequence_before": before,
                }
            )
        newest[(producer_id, producer_epoch)] = sequence
    return evidence
