"""Dirty read: a reader was given what no leader had committed when it was given."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.anomalies import DIRTY_READ, Anomaly
from tidelog.judge.excuses import Excuses
from tidelog.judge.history import (
    EndOffsetListed,
    HighWatermarkSet,
    History,
    RecordsRead,
    Seen,
)

HighWatermarks = dict[int, int]
"""By leader epoch: the high watermark of its leader so far."""


def dirty_read(history: History, excuses: Excuses) -> list[Anomaly]:
    """No reader is given a record that is not below a high watermark at the time of its read.

    A record of leader epoch `r` can be committed by the leaders of `r` and of later leader epochs
    only, and a broker that answers in leader epoch `s` knows of none after `s`. So it must stand
    below the highest high watermark of the leaders from `r` to `s`. This holds for a read replica
    as well: its high watermark is one that a leader told it. Nothing excuses it: what a reader may
    lose was committed when it was read. An answer also contradicts itself when it holds records
    beyond the high watermark that it names.
    """
    by_partition: dict[str, HighWatermarks] = {}
    found: list[Anomaly] = []
    for operation in history:
        if isinstance(operation, HighWatermarkSet):
            known = by_partition.setdefault(operation.partition, {})
            high_watermark = known.get(operation.leader_epoch, 0)
            known[operation.leader_epoch] = max(high_watermark, operation.high_watermark)
        elif isinstance(operation, RecordsRead):
            found += _beyond_its_own_answer(operation)
            found += _uncommitted(operation, by_partition.get(operation.partition))
        elif isinstance(operation, EndOffsetListed):
            found += _beyond_the_end(operation, by_partition.get(operation.partition))
    return found


def _beyond_its_own_answer(read: RecordsRead) -> Iterator[Anomaly]:
    beyond = [record for record in read.records if record.offset >= read.high_watermark]
    if beyond:
        yield DIRTY_READ.found(
            at_us=read.at_us,
            partition=read.partition,
            reader=read.reader,
            payload=beyond[0].payload,
            offset=beyond[0].offset,
            high_watermark=read.high_watermark,
        )


def _uncommitted(read: RecordsRead, known: HighWatermarks | None) -> Iterator[Anomaly]:
    if known is None:
        return
    served = read.served_leader_epoch
    if served is None:
        served = read.known_leader_epoch
    newest: dict[int | None, Seen] = {record.leader_epoch: record for record in read.records}
    for leader_epoch, record in newest.items():
        high_watermark = max(
            (
                mark
                for each, mark in known.items()
                if (leader_epoch is None or each >= leader_epoch)
                and (served is None or each <= served)
            ),
            default=0,
        )
        if record.offset >= high_watermark:
            yield DIRTY_READ.found(
                at_us=read.at_us,
                partition=read.partition,
                reader=read.reader,
                payload=record.payload,
                leader_epoch=leader_epoch,
                offset=record.offset,
                high_watermark=high_watermark,
            )


def _beyond_the_end(listed: EndOffsetListed, known: HighWatermarks | None) -> Iterator[Anomaly]:
    leader_epoch = listed.leader_epoch
    if known is None or leader_epoch is None or leader_epoch not in known:
        return
    if listed.end_offset > known[leader_epoch]:
        yield DIRTY_READ.found(
            at_us=listed.at_us,
            partition=listed.partition,
            reader=listed.reader,
            end_offset=listed.end_offset,
            leader_epoch=leader_epoch,
            high_watermark=known[leader_epoch],
        )
