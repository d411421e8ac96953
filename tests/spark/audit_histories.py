"""Histories for the audit's checks: what was sent, what is held, and what must be found.

Each history has a partition to itself, so that one run of Spark judges them all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from tidelog.spark.audit.acknowledged import SPARK_OUTCOMES, run_frame
from tidelog.spark.audit.audited_topic import AuditedPartition, AuditedTopic
from tidelog.spark.audit.batches import SPARK_ROWS
from tidelog.spark.audit.classification import Strictness, classified, counts, findings
from tidelog.spark.audit.journal_index import JournalRun
from tidelog.spark.audit.pairs import pair
from tidelog.spark.audit.tasks import own_session, size_for
from tidelog.spark.audit.transactions import COMMITTED

START_MS = 1_767_225_600_000


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One outcome; offset and value are the number's unless said otherwise."""

    number: int
    offset: int | None = None
    value: str | None = ""
    key: bytes | None = b"k"
    outcome: str = "ok"
    run: int = 0
    is_committed: bool = False
    is_placed: bool = True
    sent_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class Held:
    """One record of the log."""

    offset: int
    value: str | None = ""
    key: bytes | None = b"k"
    state: int = COMMITTED
    is_visible: bool = True
    leader_epoch: int = 0
    sent_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class History:
    """What must be found, by name and offset, and how the pairs are classed."""

    name: str
    sent: list[Sent]
    held: list[Held]
    finds: list[tuple[str, int | None]] = field(default_factory=list)
    classes: dict[str, int] = field(default_factory=dict)
    start: int = 0
    end: int | None = None
    log_end: int | None = None


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the audit said of one history."""

    finds: list[tuple[str, int | None]]
    classes: dict[str, int]
    rows: list[dict[str, Any]]


def ok(number: int, offset: int, value: str | None = None, **more: Any) -> Sent:
    return Sent(number=number, offset=offset, value=value or f"v{number}", **more)


def held(offset: int, value: str, **more: Any) -> Held:
    return Held(offset=offset, value=value, **more)


def run(index: int, **more: Any) -> JournalRun:
    given: dict[str, Any] = {
        "acks": "all",
        "is_idempotent": True,
        "cut": None,
        "is_transactional": False,
        **more,
    }
    return JournalRun(
        index=index,
        path="acks.jsonl",
        line=1,
        name=f"r{index}",
        topic="orders",
        topic_id=None,
        began_ms=START_MS,
        began_us=0,
        **given,
    )


def judge(
    spark: SparkSession,
    histories: list[History],
    *,
    runs: list[JournalRun] | None = None,
    is_compacted: bool = False,
    **rules: bool,
) -> dict[str, Judged]:
    """All of them in one go, by name."""
    spark = own_session(spark)
    size_for(spark, 0)
    outcome_rows = [
        _outcome_row(index, each) for index, one in enumerate(histories) for each in one.sent
    ]
    held_rows = [_held_row(index, each) for index, one in enumerate(histories) for each in one.held]
    sent = spark.createDataFrame(outcome_rows, SPARK_OUTCOMES)
    held_frame = spark.createDataFrame(held_rows, SPARK_ROWS)
    facts = AuditedTopic(
        topic="orders",
        topic_id=None,
        is_compacted=is_compacted,
        partitions={index: _facts(index, one) for index, one in enumerate(histories)},
    )
    pairs = pair(sent, held_frame, run_frame(spark, runs or [run(0), run(1)]), facts)
    given = Strictness(uses_timestamps=pairs.uses_timestamps, **rules)
    judged = classified(pairs.rows, given)
    wrong = [row.asDict() for row in findings(judged, given).collect()]
    by_partition = judged.groupBy("partition", "verdict").count().collect()
    assert sum(counts(judged).values()) >= len(outcome_rows)
    for frame in pairs.kept:
        frame.unpersist()
    return {
        one.name: Judged(
            finds=sorted(
                ((row["finding"], row["offset"]) for row in wrong if row["partition"] == index),
                key=str,
            ),
            classes={
                row["verdict"]: row["count"] for row in by_partition if row["partition"] == index
            },
            rows=[row for row in wrong if row["partition"] == index],
        )
        for index, one in enumerate(histories)
    }


def differences(histories: list[History], judged: dict[str, Judged]) -> dict[str, Any]:
    """Where the audit said something else than what must be said."""
    found = {}
    for one in histories:
        verdict = judged[one.name]
        wanted = Counter(one.finds)
        if Counter(verdict.finds) != wanted or (one.classes and verdict.classes != one.classes):
            found[one.name] = (verdict.finds, verdict.classes)
    return found


def _outcome_row(partition: int, each: Sent) -> tuple[object, ...]:
    return (
        each.run,
        each.number + 2,
        each.number,
        each.key,
        _digest(each.value),
        partition if each.is_placed else None,
        each.offset,
        each.outcome,
        each.is_committed,
        None if each.outcome == "ok" else "SOME_ERROR",
        None,
        _sent_ms(each.value, each.sent_ms),
        each.number * 1_000,
        each.number * 1_000 + 500,
    )


def _held_row(partition: int, each: Held) -> tuple[object, ...]:
    return (
        partition,
        each.offset,
        each.leader_epoch,
        each.key,
        _digest(each.value),
        None if each.sent_ms == -1 else _sent_ms(each.value, each.sent_ms),
        each.state,
        each.is_visible,
    )


def _sent_ms(value: str | None, sent_ms: int | None) -> int:
    """Records of the same value were sent at the same time, unless somebody says otherwise."""
    return START_MS + sum((value or "").encode()) if sent_ms is None else sent_ms


def _digest(value: str | None) -> bytearray | None:
    return None if value is None else bytearray(hashlib.sha256(value.encode()).digest())


def _facts(index: int, one: History) -> AuditedPartition:
    ends = [each.offset + 1 for each in one.held] or [one.start]
    end = max(ends) if one.end is None else one.end
    return AuditedPartition(
        partition=index,
        log_start_offset=one.start,
        end_offset=end,
        log_end_offset=end if one.log_end is None else one.log_end,
        high_watermark=end,
        read_from="a test",
    )
