"""A topic through its brokers, as DataFrames: ranges of offsets, each fetched by one task."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from tidelog.spark.audit.batches import SPARK_ROWS
from tidelog.spark.audit.broker_facts import BrokerFacts
from tidelog.spark.audit.broker_reading import Range, read_range, records, sources
from tidelog.spark.audit.published_rows import SPARK_PUBLISHED
from tidelog.spark.audit.tasks import per_item

RANGE_OFFSETS = 250_000


def held_frame(spark: SparkSession, settings: Mapping[str, str], told: BrokerFacts) -> DataFrame:
    """What the topic holds."""
    return per_item(spark, ranges(settings, told), partial(read_range, records), SPARK_ROWS)


def published_frame(
    spark: SparkSession, settings: Mapping[str, str], told: BrokerFacts
) -> DataFrame:
    """Of what the records of this topic were made, as readers of commits see them."""
    stable = [each for each in ranges(settings, told) if each.is_stable]
    return per_item(spark, stable, partial(read_range, sources), SPARK_PUBLISHED)


def ranges(
    settings: Mapping[str, str], told: BrokerFacts, *, range_offsets: int = RANGE_OFFSETS
) -> list[Range]:
    """The topic in parts, none across its last stable offset."""
    found = []
    for index, facts in sorted(told.topic.partitions.items()):
        stable = max(told.last_stable_offsets[index], facts.log_start_offset)
        for start, end, is_stable in (
            (facts.log_start_offset, stable, True),
            (stable, facts.end_offset, False),
        ):
            found += [
                Range(
                    settings=dict(settings),
                    topic=told.topic.topic,
                    partition=index,
                    start_offset=at,
                    end_offset=min(at + range_offsets, end),
                    is_stable=is_stable,
                )
                for at in range(start, end, range_offsets)
            ]
    return found
