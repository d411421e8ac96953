"""The audit: all that the clients of a story were answered and given, against the final log.

The checks are the judge's, with no excuse given: a story itself says which loss it expects, and
names it. A write that was tried several times counts once, by the best answer that its writer got.
Reads are the story's consumers', every fetch that the story made as a consumer to look at a
broker, and, in the end, those of a consumer that the audit itself sends through the whole
partition. The report says how many there were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.judge.anomalies import (
    DUPLICATED,
    LOST,
    READ_THEN_LOST,
    REORDERED,
    Anomaly,
    AnomalyKind,
)
from tidelog.judge.history import (
    CallOutcome,
    FinalLog,
    Operation,
    RecordsRead,
    Seen,
    Sequence32,
    WriteAcks,
    Wrote,
)
from tidelog.judge.history_checks import judge
from tidelog.lab.clients import LabConsumer
from tidelog.lab.engine import OBSERVER
from tidelog.lab.evidence import LogEntry, entries
from tidelog.lab.members import LabMember
from tidelog.lab.writers import WrittenBatch, write_answer

if TYPE_CHECKING:
    from tidelog.lab.lab import Lab

BY_PAYLOAD = (LOST, READ_THEN_LOST, DUPLICATED, REORDERED)
"""Anomalies that a story expects by the payloads of their records."""
ACKS = {0: WriteAcks.NONE, 1: WriteAcks.LEADER, -1: WriteAcks.ALL}
PERHAPS_STORED = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
"""Errors after which a record may nevertheless be in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabVerdict:
    """What went wrong, by payload. Empty: nothing."""

    lost: tuple[str, ...] = ()
    read_then_lost: tuple[str, ...] = ()
    duplicated: tuple[str, ...] = ()
    reordered: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Evidence of any further anomaly, as text."""


CLEAN = LabVerdict()


def audit(lab: Lab, *, index: int = 0) -> LabVerdict:
    """The verdict over partition `index` of the story's topic, as its leader now gives it."""
    partition = f"{lab.topic.name}-{index}"
    final = final_log(lab, partition, index)
    reads = [
        *_consumed([*lab.consumers_made, *lab.members_made], partition),
        *_fetched(lab, partition),
        *_consumed([_read_through(lab, index, final)], partition),
    ]
    history: list[Operation] = [
        *(each for each in lab.engine.high_watermarks() if each.partition == partition),
        *_writes(lab, partition),
        *_sends(lab, partition),
        *reads,
    ]
    history.sort(key=lambda operation: operation.at_us)
    history.append(final)
    found = judge(history)
    readers = {OBSERVER, *(each.reader for each in reads if isinstance(each, RecordsRead))}
    lab.checks.report.reads_judged[partition] = len(readers)
    others = [each for each in found if each.kind not in BY_PAYLOAD]
    return LabVerdict(
        lost=_payloads(found, LOST),
        read_then_lost=_payloads(found, READ_THEN_LOST),
        duplicated=_payloads(found, DUPLICATED),
        reordered=_payloads(found, REORDERED),
        others=tuple(
            f"{each.name}: {each.text}" for each in sorted(others, key=lambda each: each.name)
        ),
    )


def _payloads(found: list[Anomaly], kind: AnomalyKind) -> tuple[str, ...]:
    """The records that such anomalies are about, each once, in order."""
    payloads = (str(each.evidence["payload"]) for each in found if each.kind == kind)
    return tuple(dict.fromkeys(payloads))


def _writes(lab: Lab, partition: str) -> list[Operation]:
    return [
        wrote
        for batch in lab.batches
        if f"{batch.topic.name}-{batch.index}" == partition
        for wrote in _answers_to(batch, partition)
    ]


def _answers_to(batch: WrittenBatch, partition: str) -> list[Operation]:
    """The write by its best answer; an ok answer with another offset is one more promise."""
    wrote = _wrote(batch, partition)
    answers = [answer for answer in map(write_answer, batch.tries) if answer is not None]
    others = {answer.offset for answer in answers if answer.is_ok} - {wrote.base_offset}
    return [
        wrote,
        *(
            replace(wrote, base_offset=offset)
            for offset in sorted(each for each in others if each is not None)
        ),
    ]


def _wrote(batch: WrittenBatch, partition: str) -> Wrote:
    answers = [(each, write_answer(each)) for each in batch.tries]
    ok = [(each, answer) for each, answer in answers if answer is not None and answer.is_ok]
    outcome = CallOutcome.UNKNOWN
    if ok or batch.acks == 0:
        outcome = CallOutcome.OK
    elif answers and all(
        answer is not None and answer.error is not None and answer.error not in PERHAPS_STORED
        for _, answer in answers
    ):
        outcome = CallOutcome.REFUSED
    ended_us = [each.answered_us for each, _ in (ok or answers) if each.answered_us is not None]
    return Wrote(
        at_us=min(ended_us, default=batch.sent_us[-1]),
        invoked_us=batch.sent_us[0],
        partition=partition,
        payloads=batch.payloads,
        outcome=outcome,
        base_offset=ok[0][1].offset if ok else None,
        writer=batch.writer,
        acks=ACKS[batch.acks],
    )


def _sends(lab: Lab, partition: str) -> list[Operation]:
    return [
        sent.as_operation(partition, producer)
        for producer in lab.producers_made
        for sent in producer.sent
        if f"{lab.topic.name}-{sent.index}" == partition
    ]


def _consumed(consumers: Iterable[LabConsumer | LabMember], partition: str) -> list[Operation]:
    """What consumers were given; the high watermark of each answer is the client's secret."""
    return [
        RecordsRead(
            at_us=got.at_us,
            invoked_us=got.at_us,
            partition=partition,
            start_offset=got.offset,
            records=(Seen(got.offset, (got.value or b"").decode(), leader_epoch=got.leader_epoch),),
            high_watermark=got.offset + 1,
            log_start_offset=0,
            reader=reader,
        )
        for consumer in consumers
        for reader, got in consumer.reads()
        if f"{got.topic}-{got.index}" == partition
    ]


def _fetched(lab: Lab, partition: str) -> list[Operation]:
    """What the story was given when it looked: each answer is a reader of its own."""
    history: list[Operation] = []
    given = [each for each in lab.evidence.consumer_fetches() if each.partition == partition]
    for number, each in enumerate(given):
        found = [_seen(entry) for entry in entries(each.answer.records)]
        records = tuple(record for record in found if record.offset >= each.offset)
        reader = f"fetch {number} from {each.node}"
        if records:
            history.append(
                RecordsRead(
                    at_us=each.at_us,
                    invoked_us=each.invoked_us,
                    partition=partition,
                    start_offset=records[0].offset,
                    records=records,
                    high_watermark=each.answer.high_watermark,
                    log_start_offset=max(each.answer.log_start_offset, 0),
                    reader=reader,
                )
            )
    return history


def _read_through(lab: Lab, index: int, final: FinalLog) -> LabConsumer:
    """A consumer that reads the whole partition, as any client would."""
    reader = LabConsumer(lab, OBSERVER, {}, index=index)
    reader.read_to(final.end_offset)
    return reader


def final_log(lab: Lab, partition: str, index: int) -> FinalLog:
    """All that can be read of a partition, from its leader of now."""
    leader = lab.leader(index)
    assert leader is not None, "an audit needs a leader to read from"
    lab.until(
        f"{leader} knows what is committed",
        lambda: lab.latest(leader, index)[0] is ErrorCode.NONE,
    )
    start = lab.log_start(leader, index)
    records = tuple(map(_seen, lab.read_entries(leader, index=index, offset=start)))
    return FinalLog(
        at_us=lab.now_us,
        partition=partition,
        log_start_offset=start,
        end_offset=records[-1].offset + 1 if records else start,
        records=records,
    )


def _seen(entry: LogEntry) -> Seen:
    numbered = None
    if entry.producer_id is not None and entry.sequence is not None:
        numbered = Sequence32(entry.producer_id, entry.producer_epoch or 0, entry.sequence)
    return Seen(entry.offset, entry.payload, numbered, entry.leader_epoch)
