"""Classification: each pair belongs to exactly one class; some classes are findings.

| told | in the topic | class |
|---|---|---|
| ok | where it was said to be | kept |
| ok | elsewhere | **misplaced** |
| ok | no | **lost**; or expired, compacted, uncommitted, untraceable |
| ok | its transaction was aborted | aborted |
| anything | its transaction is not decided | open |
| aborted | readers get it, do not | **aborted but read**, aborted |
| unknown | yes, no | unknown, kept; unknown, absent |
| refused | yes, no | **refused but present**, refused |
| once | again | **duplicated**; or identical |
| nobody | yes | unexpected, a **finding** only if every writer keeps a journal |
| anybody | committed, but readers skip it | **hidden** |

What is kept may be **reordered** besides.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidelog.judge.anomalies import DUPLICATED, UNEXPECTED
from tidelog.spark.audit.findings import found
from tidelog.spark.audit.rules import ANOMALIES, Rule, reordered
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
ABORTED_AS_EXPECTED = "aborted"
STILL_OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
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


def classified(pairs: DataFrame, strictness: Strictness) -> DataFrame:
    """The pairs with their class as `verdict`; anomalies come before what would excuse a pair."""
    classes = [(rule.name, rule.condition()) for rule in _rules(strictness)] + _innocent()
    name, condition = classes[0]
    verdict = f.when(condition, name)
    for name, condition in classes[1:]:
        verdict = verdict.when(condition, name)
    return pairs.withColumn("verdict", verdict)


def findings(judged: DataFrame, strictness: Strictness) -> DataFrame:
    """Every finding among classified pairs, one row each."""
    rules = _rules(strictness)
    evidence = f.when(f.lit(False), "")
    for rule in rules:
        evidence = evidence.when(f.col("verdict") == rule.name, rule.evidence())
    guilty = judged.where(f.col("verdict").isin([rule.name for rule in rules]))
    kept = judged.where(f.col("verdict") == KEPT)
    return found(guilty, f.col("verdict"), evidence).unionByName(reordered(kept))


def counts(judged: DataFrame) -> dict[tuple[str, str | None], int]:
    """(class, acks) → how many pairs; None: in no journal."""
    rows = judged.groupBy("verdict", "acks").count().collect()
    counted = {(row["verdict"], row["acks"]): int(row["count"]) for row in rows}
    assert all(verdict is not None for verdict, _ in counted), "a pair without a class"
    return counted


def _rules(strictness: Strictness) -> list[Rule]:
    """The rules that may condemn here."""
    excluded = set()
    if not strictness.is_every_copy_a_duplicate:
        excluded.add(DUPLICATED)
    if not strictness.condemns_unexpected:
        excluded.add(UNEXPECTED)
    return [rule for rule in ANOMALIES if rule.kind not in excluded]


def _innocent() -> list[tuple[str, Column]]:
    """Everything that is no finding, most of it first."""
    outcome, offset = f.col("outcome"), f.col("answered_offset")
    has_outcome = f.col("run").isNotNull() & ~f.col("is_copy")
    is_ok = has_outcome & (outcome == "ok")
    is_there = f.coalesce(f.col("state") == COMMITTED, f.lit(False))
    is_absent = f.col("offset").isNull()
    return [
        (KEPT, is_ok & is_there),
        (UNKNOWN_KEPT, has_outcome & (outcome == "unknown") & is_there),
        (STILL_OPEN, f.coalesce(f.col("state") == OPEN, f.lit(False))),
        (UNKNOWN_ABSENT, has_outcome & (outcome == "unknown")),
        (REFUSED, has_outcome & (outcome == "refused")),
        (ABORTED_AS_EXPECTED, f.coalesce(f.col("state") == ABORTED, f.lit(False))),
        (ABORTED_AS_EXPECTED, has_outcome & (outcome == "aborted")),
        (COMPACTED, is_ok & is_absent & f.col("is_superseded")),
        (EXPIRED, is_ok & is_absent & (offset < f.col("log_start_offset"))),
        (UNCOMMITTED, is_ok & is_absent & (offset >= f.col("end_offset"))),
        (UNTRACEABLE, is_ok & is_absent & offset.isNull()),
        (IDENTICAL, f.col("is_copy")),
        (UNEXPECTED.name, f.col("run").isNull()),
    ]
