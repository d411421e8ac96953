"""Clusters that cannot carry a sink: every way into it refuses them in one line.

Batch writes are in test_sink_format.py, pipelines in test_pipeline_topic.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidelog
from tests.process.waiting import PATIENCE_S
from tests.spark.sink_streams import Stream
from tests.spark.topics import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long
REFUSED = r"transaction\.partition\.verification\.enable is not true on every broker[^\n]*"


def test_a_stream_through_foreach_batch(
    spark: SparkSession, unfit: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    from tidelog.spark import exactly_once

    topic = new_topic(unfit, replicas=1)
    stream = Stream(spark, tmp_path)
    stream.add("a", "b")
    with pytest.raises(Exception, match=REFUSED):
        stream.run(exactly_once(unfit.bootstrap_servers, topic, topic=topic))


def test_a_stream_into_the_format(
    spark: SparkSession, unfit: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic(unfit, replicas=1)
    stream = Stream(spark, tmp_path)
    stream.add("a", "b")
    lines = spark.readStream.format("text").load(str(stream.files))
    query = (
        lines.coalesce(1)
        .writeStream.format("tidelog")
        .option("kafka.bootstrap.servers", unfit.bootstrap_servers)
        .option("topic", topic)
        .option("sinkId", topic)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        with pytest.raises(Exception, match=REFUSED):
            query.awaitTermination(int(PATIENCE_S))
    finally:
        query.stop()
