"""The verdict: each pair belongs to exactly one class; some classes are findings.

| told | in the topic | class |
|---|---|---|
| ok | where it was said to be | kept |
| ok | elsewhere | **misplaced** |
| ok | no | **lost**; or expired, compacted, uncommitted, untraceable |
| ok | its transaction was aborted | aborted |
| anything | its transaction is not decided | open |
| aborted | readers get it, do not | **aborted but read**, aborted |
| unknown | yes, no | unknown, kept; unknown, absent |
| refused | yes, no | **ghost**, refused |
| once | again | **duplicated**; or identical |
| nobody | yes | unexpected, a **finding** only if every writer keeps a journal |
| anybody | committed, but readers skip it | **hidden** |

What is kept may be **reordered** besides.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidelog.spark.audit.anomalies import (
    aborted_read,
    duplicated,
    ghost,
    hidden,
    lost,
    misplaced,
    unexpected,
)
from tidelog.spark.audit.anomalies.reordered import reordered
from tidelog.spark.audit.findings import found
from tidelog.spark.audit.transactions import ABORTED, COMMITTED, OPEN

KEPT = "kept"
EXPIRED = "expired"
COMPACTED = "compacted"
UNCOMMITTED = "uncommitted"
UNTRACEABLE = "untraceable"
UNKNOWN_KEPT = "unknown, kept"
UNKNOWN_ABSENT = "unknown, absent"
REFUSED = "refused"
IDENTICAL = "identical"
UNEXPECTED = unexpected.NAME
ABORTED_AS_TOLD = "aborted"
STILL_OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What may be concluded from what is not there."""

    is_strict: bool = False
    """Every writer keeps a journal, and it is given."""
    is_any_cut: bool = False
    """A journal ends before its run did: more of it may be in the topic."""
    uses_timestamps: bool = True
    """Equal records of different writers differ in their timestamps."""

    @property
    def is_every_copy_a_duplicate(self) -> bool:
        return self.uses_timestamps or (self.is_strict and not self.is_any_cut)

    @property
    def condemns_unexpected(self) -> bool:
        return self.is_strict and not self.is_any_cut


@dataclass(frozen=True, slots=True)
class _Anomaly:
    name: str
    condition: Column
    evidence: Column


def classified(pairs: DataFrame, rules: Rules) -> DataFrame:
    """The pairs with their class as `verdict`; anomalies come before what would excuse a pair."""
    classes = [(each.name, each.condition) for each in _anomalies(rules)] + _innocent()
    name, condition = classes[0]
    verdict = f.when(condition, name)
    for name, condition in classes[1:]:
        verdict = verdict.when(condition, name)
    return pairs.withColumn("verdict", verdict)


def findings(judged: DataFrame, rules: Rules) -> DataFrame:
    """Every finding among classified pairs, one row each."""
    anomalies = _anomalies(rules)
    evidence = f.when(f.lit(False), "")
    for each in anomalies:
        evidence = evidence.when(f.col("verdict") == each.name, each.evidence)
    guilty = judged.where(f.col("verdict").isin([each.name for each in anomalies]))
    kept = judged.where(f.col("verdict") == KEPT)
    return found(guilty, f.col("verdict"), evidence).unionByName(reordered(kept))


def counts(judged: DataFrame) -> dict[tuple[str, str | None], int]:
    """(class, acks) → how many pairs; None: nobody was told of them."""
    rows = judged.groupBy("verdict", "acks").count().collect()
    counted = {(row["verdict"], row["acks"]): int(row["count"]) for row in rows}
    assert all(verdict is not None for verdict, _ in counted), "a pair without a class"
    return counted


def _anomalies(rules: Rules) -> list[_Anomaly]:
    is_certain = rules.is_every_copy_a_duplicate
    found = [
        _Anomaly(aborted_read.NAME, aborted_read.condition(), aborted_read.evidence()),
        _Anomaly(hidden.NAME, hidden.condition(), hidden.evidence()),
        _Anomaly(lost.NAME, lost.condition(), lost.evidence()),
        _Anomaly(misplaced.NAME, misplaced.condition(), misplaced.evidence()),
        _Anomaly(ghost.NAME, ghost.condition(), ghost.evidence()),
        _Anomaly(
            duplicated.NAME, duplicated.condition(is_certain=is_certain), duplicated.evidence()
        ),
    ]
    if rules.condemns_unexpected:
        found.append(_Anomaly(unexpected.NAME, unexpected.condition(), unexpected.evidence()))
    return found


def _innocent() -> list[tuple[str, Column]]:
    """Everything that is no finding, most of it first."""
    outcome, offset = f.col("outcome"), f.col("told_offset")
    is_told = f.col("run").isNotNull() & ~f.col("is_copy")
    is_ok = is_told & (outcome == "ok")
    is_there = f.coalesce(f.col("state") == COMMITTED, f.lit(False))
    is_absent = f.col("offset").isNull()
    return [
        (KEPT, is_ok & is_there),
        (UNKNOWN_KEPT, is_told & (outcome == "unknown") & is_there),
        (STILL_OPEN, f.coalesce(f.col("state") == OPEN, f.lit(False))),
        (UNKNOWN_ABSENT, is_told & (outcome == "unknown")),
        (REFUSED, is_told & (outcome == "refused")),
        (ABORTED_AS_TOLD, f.coalesce(f.col("state") == ABORTED, f.lit(False))),
        (ABORTED_AS_TOLD, is_told & (outcome == "aborted")),
        (COMPACTED, is_ok & is_absent & f.col("is_superseded")),
        (EXPIRED, is_ok & is_absent & (offset < f.col("log_start_offset"))),
        (UNCOMMITTED, is_ok & is_absent & (offset >= f.col("end_offset"))),
        (UNTRACEABLE, is_ok & is_absent & offset.isNull()),
        (IDENTICAL, f.col("is_copy")),
        (UNEXPECTED, f.col("run").isNull()),
    ]
