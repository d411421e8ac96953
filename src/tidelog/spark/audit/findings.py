"""A finding: one record about which something is wrong, with all the evidence, as a row.

Every rule says which pairs it condemns and in which words; what the row holds besides is the same
for all of them. The columns are the structured evidence, `evidence` is the sentence for people.
"""

from __future__ import annotations

from string import Formatter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

SPARK_FINDINGS = (
    "finding string, partition int, offset bigint, leader_epoch int, replicas array<int>, "
    "key binary, value_sha256 string, answered string, answered_offset bigint, acks string, "
    "idempotence boolean, error string, run string, journal string, line bigint, number bigint, "
    "sent_us bigint, answered_us bigint, answered_at timestamp, evidence string"
)
"""`offset` is where the record stands, or where it was said to be; `answered_at` is the wall clock
of `answered_us`, where the journal allows to know it. What does not apply is null."""
COLUMNS = tuple(each.split(" ")[0] for each in SPARK_FINDINGS.split(", "))


def found(pairs: DataFrame, name: str | Column, evidence: Column) -> DataFrame:
    """These pairs as findings of that name."""
    answered_at = f.timestamp_millis(
        f.col("began_ms") + ((f.col("answered_us") - f.col("began_us")) / 1_000).cast("bigint")
    )
    return pairs.select(
        (f.lit(name) if isinstance(name, str) else name).alias("finding"),
        "partition",
        f.coalesce("offset", "answered_offset").alias("offset"),
        "leader_epoch",
        f.lit(None).cast("array<int>").alias("replicas"),
        "key",
        f.lower(f.hex("digest")).alias("value_sha256"),
        f.col("outcome").alias("answered"),
        "answered_offset",
        "acks",
        f.col("is_idempotent").alias("idempotence"),
        "error",
        f.col("name").alias("run"),
        "journal",
        "line",
        "number",
        "sent_us",
        "answered_us",
        answered_at.alias("answered_at"),
        evidence.alias("evidence"),
    )


def sentence(text: str, **columns: Column | str) -> Column:
    """The text with a column for each name in braces: a given one, or the pair's own column of this
    name. A null shows as `?`."""
    parts: list[Column] = []
    for words, name, _, _ in Formatter().parse(text):
        if words:
            parts.append(f.lit(words))
        if name is not None:
            value = columns.get(name, f.col(name))
            column = f.lit(value) if isinstance(value, str) else value
            parts.append(f.coalesce(column.cast("string"), f.lit("?")))
    return f.concat(*parts)


def bare_finding(frame: DataFrame, name: str, evidence: Column) -> DataFrame:
    """A finding about a record that no journal is asked about: partition, offset, leader epoch and
    replicas come from the frame, if it has them."""
    given = {"finding": f.lit(name), "evidence": evidence}
    kinds = dict(each.split(" ") for each in SPARK_FINDINGS.split(", "))
    for column in ("partition", "offset", "leader_epoch", "replicas", "key", "value_sha256"):
        if column in frame.columns:
            given[column] = f.col(column)
    return frame.select(
        *(given.get(column, f.lit(None)).cast(kinds[column]).alias(column) for column in COLUMNS)
    )
