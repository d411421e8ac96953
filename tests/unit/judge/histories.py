"""Short words for histories: one letter is one payload, `_` is a hole in the offsets."""

from __future__ import annotations

from tidelog.judge.excuses import BatchDamaged, ElectionHeld, ElectionSource, TailLost
from tidelog.judge.history import (
    CallOutcome,
    EndOffsetListed,
    FinalLog,
    HighWatermarkSet,
    Moved,
    RecordsRead,
    Seen,
    WriteAcks,
    Wrote,
)

P = "orders-0"
UNKNOWN, REFUSED = CallOutcome.UNKNOWN, CallOutcome.REFUSED
ACKS_1 = WriteAcks.LEADER
CLEAN, UNCLEAN, LAST_KNOWN = ElectionSource.CLEAN, ElectionSource.UNCLEAN, ElectionSource.LAST_KNOWN


def seen(payloads: str, first: int, leader_epoch: int | None = None) -> tuple[Seen, ...]:
    return tuple(
        Seen(first + index, payload, None, leader_epoch)
        for index, payload in enumerate(payloads)
        if payload != "_"
    )


def wrote(
    at: int,
    payloads: str,
    base_offset: int | None = None,
    *,
    outcome: CallOutcome = CallOutcome.OK,
    acks: WriteAcks = WriteAcks.ALL,
    writer: str = "w",
    order: int | None = None,
    invoked: int | None = None,
) -> Wrote:
    return Wrote(
        at_us=at,
        invoked_us=at - 1 if invoked is None else invoked,
        partition=P,
        payloads=tuple(payloads),
        outcome=outcome,
        base_offset=base_offset,
        acks=acks,
        writer=writer,
        order=order,
    )


def read(
    at: int,
    start_offset: int,
    payloads: str,
    *,
    first: int | None = None,
    corrupt: int | None = None,
    reader: str = "r",
    known: int | None = None,
    served: int | None = None,
    leader_epoch: int | None = None,
    high_watermark: int = 99,
) -> RecordsRead:
    return RecordsRead(
        at_us=at,
        invoked_us=at - 1,
        partition=P,
        start_offset=start_offset,
        records=seen(payloads, start_offset if first is None else first, leader_epoch),
        high_watermark=high_watermark,
        log_start_offset=0,
        corrupt_offset=corrupt,
        reader=reader,
        known_leader_epoch=known,
        served_leader_epoch=served,
    )


def committed(at: int, high_watermark: int, *, leader_epoch: int) -> HighWatermarkSet:
    return HighWatermarkSet(
        at_us=at, partition=P, leader_epoch=leader_epoch, high_watermark=high_watermark
    )


def moved(at: int, offset: int, *, reader: str = "r") -> Moved:
    return Moved(at_us=at, reader=reader, partition=P, offset=offset, because="sought")


def end(
    at: int,
    end_offset: int,
    *,
    leader_epoch: int | None = None,
    known: int | None = None,
    reader: str = "r",
    invoked: int | None = None,
) -> EndOffsetListed:
    return EndOffsetListed(
        at_us=at,
        invoked_us=at - 1 if invoked is None else invoked,
        reader=reader,
        partition=P,
        end_offset=end_offset,
        leader_epoch=leader_epoch,
        known_leader_epoch=known,
    )


def final(
    at: int, payloads: str, *, log_start: int = 0, leader_epoch: int | None = None
) -> FinalLog:
    return FinalLog(
        at_us=at,
        partition=P,
        log_start_offset=log_start,
        end_offset=log_start + len(payloads),
        records=seen(payloads, log_start, leader_epoch),
    )


def elected(
    at: int,
    election: ElectionSource,
    *,
    kept: int,
    leader: int = 1,
    leader_epoch: int | None = None,
    predecessor: int | None = None,
) -> ElectionHeld:
    return ElectionHeld(
        at_us=at,
        partition=P,
        leader=leader,
        leader_epoch=at if leader_epoch is None else leader_epoch,
        election=election,
        kept_end_offset=kept,
        predecessor=predecessor,
    )


def lost_tail(at: int, *, broker: int, floor: int, until: int | None = None) -> TailLost:
    return TailLost(
        at_us=at,
        partition=P,
        broker_id=broker,
        floor_offset=floor,
        because="power loss",
        until_us=until,
    )


def damaged(
    at: int, start_offset: int, end_offset: int, *, until: int | None = None
) -> BatchDamaged:
    return BatchDamaged(
        at_us=at, partition=P, start_offset=start_offset, end_offset=end_offset, until_us=until
    )
