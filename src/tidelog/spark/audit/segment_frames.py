"""The batches of all replicas as a DataFrame, and the records of those that are asked for.

First the headers of every batch are walked, replica by replica. Of each partition one replica
*leads*: the one with the newest leader epoch, then the longest log. What it holds is what the topic
holds, so only its records are unpacked, and those of batches that another replica has otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from tidelog.spark.audit.batches import SPARK_ROWS
from tidelog.spark.audit.replicas import Replica
from tidelog.spark.audit.segment_reading import (
    SPARK_BATCHES,
    SPARK_REPLICA_ROWS,
    Scan,
    Stretch,
    scan_file,
    unpack_batches,
    unpack_stretch,
)
from tidelog.spark.audit.tasks import per_item
from tidelog.spark.audit.transactions import Marker

STRETCH_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """How far one replica reaches, in which leadership, and whether all of it can be read."""

    replica: Replica
    end_offset: int
    leader_epoch: int
    is_sound: bool


def batch_frame(spark: SparkSession, replicas: Iterable[Replica]) -> DataFrame:
    """Every batch of every replica."""
    scans = [
        Scan(each.node_id, each.partition, segment)
        for each in replicas
        for segment in each.segments
        if segment.size_bytes
    ]
    return per_item(spark, scans, scan_file, SPARK_BATCHES)


def logs(batches: DataFrame, replicas: Iterable[Replica]) -> list[Log]:
    """Where each replica's log ends, by its sound batches."""
    told = {
        (row["node"], row["partition"]): row
        for row in batches.groupBy("node", "partition")
        .agg(
            f.max(f.when(f.col("trouble").isNull(), f.col("end_offset"))).alias("end_offset"),
            f.max("leader_epoch").alias("leader_epoch"),
            f.count("trouble").alias("troubles"),
        )
        .collect()
    }
    found = []
    for each in replicas:
        row = told.get((each.node_id, each.partition))
        found.append(
            Log(
                replica=each,
                end_offset=max(each.log_start_offset, _told(row, "end_offset", 0)),
                leader_epoch=max(
                    -1 if each.leader_epoch is None else each.leader_epoch,
                    _told(row, "leader_epoch", -1),
                ),
                is_sound=_told(row, "troubles", 0) == 0,
            )
        )
    return found


def _told(row: Row | None, name: str, otherwise: int) -> int:
    return otherwise if row is None or row[name] is None else int(row[name])


def leading(logs: Iterable[Log]) -> dict[int, Log]:
    """Of each partition the replica that would lead: what another one has more, it must give up."""
    found: dict[int, Log] = {}
    for log in sorted(logs, key=lambda each: each.replica.node_id):
        best = found.get(log.replica.partition)
        if best is None or _rank(log) > _rank(best):
            found[log.replica.partition] = log
    return found


def _rank(log: Log) -> tuple[int, int]:
    return log.leader_epoch, log.end_offset


def stretches(
    batches: DataFrame, leaders: dict[int, Log], *, stretch_bytes: int = STRETCH_BYTES
) -> list[Stretch]:
    """What the leading replicas hold, in parts of a size that a task likes."""
    leads = _of(batches, leaders)
    parts = (
        leads.where("trouble is null and not is_control")
        .groupBy("node", "partition", "path", f.floor(f.col("position") / stretch_bytes))
        .agg(
            f.min("position").alias("start"),
            f.max(f.col("position") + f.col("size_bytes")).alias("end"),
            f.min("base_offset").alias("base_offset"),
            f.max("end_offset").alias("end_offset"),
        )
        .collect()
    )
    markers: dict[int, list[Marker]] = {}
    for row in leads.where("is_commit is not null").collect():
        markers.setdefault(row["partition"], []).append(
            Marker(row["base_offset"], row["producer_id"], row["is_commit"])
        )
    found: list[Stretch] = []
    for partition in leaders:
        of_it = [row for row in parts if row["partition"] == partition]
        found += _with_markers(of_it, sorted(markers.get(partition, [])))
    return found


def _with_markers(parts: list[Row], markers: list[Marker]) -> Iterator[Stretch]:
    """From the end on: those within a stretch, and the next one behind it of each producer."""
    behind: dict[int, Marker] = {}
    rest = list(markers)
    for part in sorted(parts, key=lambda row: row["base_offset"], reverse=True):
        while rest and rest[-1].offset >= part["end_offset"]:
            marker = rest.pop()
            behind[marker.producer_id] = marker
        within = []
        while rest and rest[-1].offset >= part["base_offset"]:
            within.append(rest.pop())
        yield Stretch(
            part["node"],
            part["partition"],
            part["path"],
            part["start"],
            part["end"],
            (*within, *behind.values()),
        )
        for marker in within:
            behind[marker.producer_id] = marker


def record_frame(spark: SparkSession, parts: list[Stretch]) -> DataFrame:
    """The records of these stretches."""
    return per_item(spark, parts, unpack_stretch, SPARK_ROWS)


def record_frame_of_batches(batches: DataFrame) -> DataFrame:
    """The records of single batches, wherever they lie, with the node that has them."""
    wanted = batches.where("trouble is null and not is_control").select(
        "node", "partition", "path", "position", "size_bytes"
    )
    in_order = wanted.repartition("path").sortWithinPartitions("path", "position")
    return in_order.mapInArrow(unpack_batches, SPARK_REPLICA_ROWS)


def _of(batches: DataFrame, leaders: dict[int, Log]) -> DataFrame:
    """Only the batches of leading replicas."""
    wanted = f.lit(False)
    for partition, log in leaders.items():
        is_it = (f.col("partition") == partition) & (f.col("node") == log.replica.node_id)
        wanted = wanted | is_it
    return batches.where(wanted)
