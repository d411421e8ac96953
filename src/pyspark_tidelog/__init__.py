"""By this name Spark finds `format("tidelog")` without being told of it."""

from __future__ import annotations

from tidelog.spark.source.data_source import TopicSource


class DefaultSource(TopicSource):
    """What Spark looks for in every installed module whose name begins with `pyspark_`."""
