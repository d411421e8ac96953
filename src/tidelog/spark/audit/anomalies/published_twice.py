"""Published twice: a sink made more than one record of one source record."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import bare_finding, sentence

NAME = "published twice"
_PLACES_SHOWN = 4


def published_twice(published: DataFrame) -> DataFrame:
    """`published` has partition, offset and place; one row for each source record at fault."""
    often = (
        published.groupBy("partition", "offset")
        .agg(f.count("*").alias("times"), f.sort_array(f.collect_list("place")).alias("places"))
        .where("times > 1")
    )
    shown = f.array_join(f.slice("places", 1, _PLACES_SHOWN), ", ")
    text = sentence("published ", f.col("times"), " times: ", shown)
    return bare_finding(often, NAME, text)
