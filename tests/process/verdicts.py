"""What producers were told, held against the log by the judge that also judges the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.process.producers import Call, Ok
from tests.process.wire import EARLIEST, WireClient, whole_records
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import batches
from tidelog.judge.anomalies import LOST, Anomaly
from tidelog.judge.history import (
    CallOutcome,
    FinalLog,
    Operation,
    Seen,
    Sequence32,
    WriteAcks,
    Wrote,
)
from tidelog.judge.history_checks import judge


class NotLeader(AssertionError):
    """Whoever was asked for a log does not lead it (any more)."""


def writes(
    calls: Iterable[Call],
    *,
    partition: str,
    writer: str = "writer",
    acks: WriteAcks = WriteAcks.ALL,
    in_order: bool = True,
) -> list[Operation]:
    """What one producer was told about its records, each handed over after the one before it."""
    found: list[Operation] = []
    for place, call in enumerate(calls):
        told = call.outcome
        is_ok = isinstance(told, Ok)
        found.append(
            Wrote(
                at_us=2 * place + 1,
                invoked_us=2 * place,
                partition=partition,
                payloads=(call.value,),
                outcome=CallOutcome.OK if is_ok else CallOutcome.UNKNOWN,
                base_offset=told.offset if isinstance(told, Ok) else None,
                error=None if told is None or isinstance(told, Ok) else told.error,
                writer=writer,
                acks=acks,
                order=place if in_order else None,
            )
        )
    return found


def final_log(address: str, topic: str, *, partition: int, at_us: int) -> FinalLog:
    """All that the leader at this address gives to read; NotLeader if it leads no more."""
    seen: list[Seen] = []
    with WireClient(address) as wire:
        first = wire.offset_at(topic, EARLIEST, partition=partition)
        _check(first.error_code)
        log_start_offset = offset = first.offset
        while True:
            answer = wire.fetch(topic, offset, partition=partition, bytes_max=16 << 20)
            _check(answer.error_code)
            if offset >= answer.high_watermark:
                break
            found = [each for each in _seen(bytes(answer.records)) if each.offset >= offset]
            assert found, f"nothing at {offset}, below the high watermark"
            seen += found
            offset = found[-1].offset + 1
    return FinalLog(
        at_us=at_us,
        partition=f"{topic}-{partition}",
        log_start_offset=log_start_offset,
        end_offset=offset,
        records=tuple(seen),
    )


def _check(error_code: int) -> None:
    if error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise NotLeader
    assert error_code == ErrorCode.NONE, ErrorCode(error_code)


def verdict(history: Sequence[Operation], final: FinalLog) -> list[Anomaly]:
    """What no excuse covers: none is given."""
    return judge([*history, final])


def lost(anomalies: Sequence[Anomaly]) -> list[str]:
    """The payloads that were acknowledged and are gone."""
    return [str(each.evidence["payload"]) for each in anomalies if each.kind == LOST]


def _seen(data: bytes) -> list[Seen]:
    view = memoryview(data)
    records = {
        record.offset: (record.value or b"").decode().rstrip(".") for record in whole_records(data)
    }
    found = []
    for _, header in batches(view):
        for offset in range(header.base_offset, header.end_offset):
            numbered = None
            if header.producer_id >= 0:
                sequence = (header.base_sequence + offset - header.base_offset) % 2**31
                numbered = Sequence32(header.producer_id, header.producer_epoch, sequence)
            if offset in records:
                found.append(Seen(offset, records[offset], numbered, header.leader_epoch))
    return found
