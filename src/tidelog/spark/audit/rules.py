"""What can be wrong with a single record: one rule for each anomaly, as columns of a pair.

A pair has what its producer was answered and what the topic holds. A rule says which pairs it
condemns (`condition`), and in which words (`evidence`); classification.py applies all of them in
one pass. What shows only in many rows at once is in replica_rules.py and published.py, and
`reordered` at the end of this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from tidelog.judge import anomalies
from tidelog.judge.anomalies import AnomalyKind
from tidelog.spark.audit.findings import found, sentence
from tidelog.spark.audit.record_pairing import BY_CONTENT
from tidelog.spark.audit.transactions import ABORTED, COMMITTED

PIECE_OFFSETS = 2**18


@dataclass(frozen=True, slots=True)
class Rule:
    """Which pairs show an anomaly, and the sentence that says so."""

    kind: AnomalyKind
    condition: Callable[[], Column]
    evidence: Callable[[], Column]

    @property
    def name(self) -> str:
        return self.kind.name


def _aborted_but_read() -> Column:
    """Its producer was answered that it is aborted, and the log commits it; or the log's own marker
    aborts it and the brokers do not tell their readers."""
    is_aborted = f.coalesce(f.col("outcome") == "aborted", f.lit(False)) & ~f.col("is_copy")
    is_kept = _is_committed() & f.col("is_visible")
    is_shown = f.coalesce((f.col("state") == ABORTED) & f.col("is_visible"), f.lit(False))
    return (is_aborted & f.coalesce(is_kept, f.lit(False))) | is_shown


def _aborted_but_read_evidence() -> Column:
    why = f.when(f.col("state") == ABORTED, "the log has an abort marker behind it").otherwise(
        "its producer was answered that the transaction is aborted"
    )
    return sentence("{why}, but readers are given it at {offset}", why=why)


def _hidden() -> Column:
    return f.coalesce((f.col("state") == COMMITTED) & ~f.col("is_visible"), f.lit(False))


def _hidden_evidence() -> Column:
    return sentence("its transaction is committed, but brokers tell readers to skip it at {offset}")


def _lost() -> Column:
    """Not where it was said to be, nor elsewhere, and nothing explains it.

    What explains it: retention took the head of the log (offset below the log's start, or no
    offset is known and the head is gone), compaction replaced it, or it is on the leader and cannot
    be read yet. Also lost is what a log aborts although its producer was answered that it is
    committed.
    """
    offset = f.col("answered_offset")
    may_be_gone = f.coalesce(
        f.when(offset.isNotNull(), offset < f.col("log_start_offset")).otherwise(
            f.col("log_start_offset") > 0
        ),
        f.lit(False),
    )
    is_waiting = f.coalesce(
        (offset >= f.col("end_offset")) & (offset < f.col("log_end_offset")), f.lit(False)
    )
    is_absent = f.col("offset").isNull() & ~may_be_gone & ~is_waiting & ~f.col("is_superseded")
    is_undone = f.col("is_committed") & (f.col("state") == ABORTED)
    return _has_outcome("ok") & (is_absent | f.coalesce(is_undone, f.lit(False)))


def _lost_evidence() -> Column:
    where = f.when(f.col("answered_offset").isNull(), "without an offset").otherwise(
        sentence("at offset {answered_offset}")
    )
    now = (
        f.when(f.col("state") == ABORTED, "the log says that its transaction was aborted")
        .when(f.col("end_offset").isNull(), sentence("there is no partition {partition}"))
        .when(
            f.col("standing_epoch").isNotNull(),
            sentence("another record of leader epoch {standing_epoch} stands there"),
        )
        .when(
            f.col("answered_offset") >= f.col("end_offset"),
            sentence("the log ends at {end_offset}"),
        )
        .otherwise("the log does not hold it")
    )
    return sentence("acknowledged {where} (acks={acks}), but {now}", where=where, now=now)


def _misplaced() -> Column:
    """A log never moves a record. So the one that was acknowledged is gone, and this is another
    copy: of an earlier or later attempt, or brought back by an unclean leader."""
    return (
        _has_outcome("ok")
        & f.col("answered_offset").isNotNull()
        & f.coalesce(f.col("matched_by") == BY_CONTENT, f.lit(False))
        & f.coalesce(f.col("state") != ABORTED, f.lit(False))
    )


def _misplaced_evidence() -> Column:
    return sentence(
        "acknowledged at offset {answered_offset} (acks={acks}), but it stands at {offset}"
    )


def _refused_but_present() -> Column:
    return _has_outcome("refused") & _is_committed()


def _refused_but_present_evidence() -> Column:
    return sentence("refused ({error}), but it stands at {offset}")


def _duplicated() -> Column:
    """A copy with the same key, value and producer's timestamp as an acknowledged record, beyond as
    many as were sent.

    Where the broker sets timestamps, another writer's equal record looks the same: then it is
    certain only if all writers keep journals.
    """
    return f.col("is_copy") & (f.col("state") == COMMITTED)


def _duplicated_evidence() -> Column:
    first = f.when(f.col("answered_offset").isNull(), "").otherwise(
        sentence(" at offset {answered_offset}")
    )
    producer = f.when(f.col("is_idempotent"), "an idempotent").otherwise("a non-idempotent")
    return sentence(
        "stands at {offset}, too: record {number} of {producer} producer was sent once "
        "({outcome}{first})",
        producer=producer,
        first=first,
    )


def _unexpected() -> Column:
    """Only a finding when somebody vouches for the journals: others may write, too."""
    return f.col("run").isNull() & _is_committed()


def _unexpected_evidence() -> Column:
    return sentence("stands at {offset}, and no journal knows of it")


ANOMALIES = (
    Rule(anomalies.ABORTED_BUT_READ, _aborted_but_read, _aborted_but_read_evidence),
    Rule(anomalies.HIDDEN, _hidden, _hidden_evidence),
    Rule(anomalies.LOST, _lost, _lost_evidence),
    Rule(anomalies.MISPLACED, _misplaced, _misplaced_evidence),
    Rule(anomalies.REFUSED_BUT_PRESENT, _refused_but_present, _refused_but_present_evidence),
    Rule(anomalies.DUPLICATED, _duplicated, _duplicated_evidence),
    Rule(anomalies.UNEXPECTED, _unexpected, _unexpected_evidence),
)
"""In this order: the first that condemns a pair is its class."""


def _has_outcome(outcome: str) -> Column:
    """Its producer was answered so; not so a copy, of which nobody was answered anything."""
    return f.col("run").isNotNull() & ~f.col("is_copy") & (f.col("outcome") == outcome)


def _is_committed() -> Column:
    return f.coalesce(f.col("state") == COMMITTED, f.lit(False))


def reordered(kept: DataFrame, *, piece_offsets: int = PIECE_OFFSETS) -> DataFrame:
    """Among pairs that are kept; a run whose journal two producers wrote has no order.

    Long partitions are cut into pieces by offset, so that no task gets a whole one: within a piece
    the records are looked at in order, and for each piece it is known what the pieces before it
    hold.
    """
    numbered = kept.where("not is_mixed").withColumn(
        "piece", f.floor(f.col("offset") / piece_offsets)
    )
    within = Window.partitionBy("run", "partition", "piece").orderBy("offset")
    before = within.rowsBetween(Window.unboundedPreceding, -1)
    pieces = Window.partitionBy("run", "partition").orderBy("piece")
    earlier = (
        numbered.groupBy("run", "partition", "piece")
        .agg(f.max("number").alias("newest"))
        .withColumn(
            "newest_before",
            f.max("newest").over(pieces.rowsBetween(Window.unboundedPreceding, -1)),
        )
        .drop("newest")
    )
    ahead = f.greatest("newest_here", "newest_before")
    late = (
        numbered.withColumn("newest_here", f.max("number").over(before))
        .join(f.broadcast(earlier), ["run", "partition", "piece"])
        .withColumn("ahead", ahead)
        .where(f.col("number") < f.col("ahead"))
    )
    evidence = sentence(
        "record {number} stands at {offset}, behind record {ahead} of the same producer, which "
        "was sent later"
    )
    return found(late, anomalies.REORDERED.name, evidence)
