"""The batches of all replicas on disk as a DataFrame, and the records of those that are asked for.

First the headers of every batch are walked, replica by replica. Of each partition one replica
*leads*: the one with the newest leader epoch, then the longest log. What it holds is what the topic
holds, so only its records are unpacked, and those of batches that another replica has otherwise.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from tidelog.spark.audit.audited_topic import AuditedPartition, AuditedTopic
from tidelog.spark.audit.batches import (
    ROWS,
    SPARK_ROWS,
    Judged,
    RowBuffer,
    Tail,
    Walked,
    rows,
    walk,
)
from tidelog.spark.audit.broker_metadata import BrokerTopic
from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.replicas import DiskReplica, SegmentFile
from tidelog.spark.audit.tasks import per_item
from tidelog.spark.audit.transactions import COMMITTED, Decisions, TransactionMarker

STRETCH_BYTES = 32 * 1024 * 1024
BATCHES = pa.schema(
    [
        ("node", pa.int32()),
        ("partition", pa.int32()),
        ("path", pa.string()),
        ("position", pa.int64()),
        ("size_bytes", pa.int64()),
        ("base_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("crc", pa.int64()),
        ("producer_id", pa.int64()),
        ("is_control", pa.bool_()),
        ("is_commit", pa.bool_()),
        ("trouble", pa.string()),
    ]
)
"""`is_commit` is null unless the batch ends a transaction. `trouble` says why a batch, or what lies
behind the last one of a file that is not the newest, cannot be read."""
SPARK_BATCHES = (
    "node int, partition int, path string, position bigint, size_bytes bigint, base_offset bigint, "
    "end_offset bigint, leader_epoch int, crc bigint, producer_id bigint, is_control boolean, "
    "is_commit boolean, trouble string"
)
REPLICA_ROWS = pa.schema([("node", pa.int32()), *ROWS])
SPARK_REPLICA_ROWS = f"node int, {SPARK_ROWS}"
WRONG_CHECKSUM = "wrong checksum"
SPARK_FLOORS = (
    "node int, partition int, leading_node int, log_start_offset bigint, log_end_offset bigint, "
    "committed_offset bigint, leading_start_offset bigint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """How far one replica reaches, in which leadership, and whether all of it can be read."""

    replica: DiskReplica
    end_offset: int
    leader_epoch: int
    is_sound: bool


def batch_frame(spark: SparkSession, replicas: Iterable[DiskReplica]) -> DataFrame:
    """Every batch of every replica."""
    scans = [
        SegmentScan(each.node_id, each.partition, segment)
        for each in replicas
        for segment in each.segments
        if segment.size_bytes
    ]
    return per_item(spark, scans, scan_file, SPARK_BATCHES)


def logs(batches: DataFrame, replicas: Iterable[DiskReplica]) -> list[ReplicaLog]:
    """Where each replica's log ends, by its sound batches."""
    by_replica = {
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
        row = by_replica.get((each.node_id, each.partition))
        found.append(
            ReplicaLog(
                replica=each,
                end_offset=max(each.log_start_offset, _number(row, "end_offset", 0)),
                leader_epoch=max(
                    -1 if each.leader_epoch is None else each.leader_epoch,
                    _number(row, "leader_epoch", -1),
                ),
                is_sound=_number(row, "troubles", 0) == 0,
            )
        )
    return found


def _number(row: Row | None, name: str, otherwise: int) -> int:
    return otherwise if row is None or row[name] is None else int(row[name])


def leading(logs: Iterable[ReplicaLog]) -> dict[int, ReplicaLog]:
    """Of each partition the replica that would lead: what another one has more, it must give up."""
    found: dict[int, ReplicaLog] = {}
    for log in sorted(logs, key=lambda each: each.replica.node_id):
        best = found.get(log.replica.partition)
        if best is None or _rank(log) > _rank(best):
            found[log.replica.partition] = log
    return found


def _rank(log: ReplicaLog) -> tuple[int, int]:
    return log.leader_epoch, log.end_offset


def stretches(
    batches: DataFrame, leaders: dict[int, ReplicaLog], *, stretch_bytes: int = STRETCH_BYTES
) -> list[SegmentStretch]:
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
    markers: dict[int, list[TransactionMarker]] = {}
    for row in leads.where("is_commit is not null").collect():
        markers.setdefault(row["partition"], []).append(
            TransactionMarker(row["base_offset"], row["producer_id"], row["is_commit"])
        )
    found: list[SegmentStretch] = []
    for partition in leaders:
        of_it = [row for row in parts if row["partition"] == partition]
        found += _with_markers(of_it, sorted(markers.get(partition, [])))
    return found


def _with_markers(parts: list[Row], markers: list[TransactionMarker]) -> Iterator[SegmentStretch]:
    """From the end on: those within a stretch, and the next one behind it of each producer."""
    behind: dict[int, TransactionMarker] = {}
    rest = list(markers)
    for part in sorted(parts, key=lambda row: row["base_offset"], reverse=True):
        while rest and rest[-1].offset >= part["end_offset"]:
            marker = rest.pop()
            behind[marker.producer_id] = marker
        within = []
        while rest and rest[-1].offset >= part["base_offset"]:
            within.append(rest.pop())
        yield SegmentStretch(
            part["node"],
            part["partition"],
            part["path"],
            part["start"],
            part["end"],
            (*within, *behind.values()),
        )
        for marker in within:
            behind[marker.producer_id] = marker


def record_frame(spark: SparkSession, parts: list[SegmentStretch]) -> DataFrame:
    """The records of these stretches."""
    return per_item(spark, parts, unpack_stretch, SPARK_ROWS)


def record_frame_of_batches(batches: DataFrame) -> DataFrame:
    """The records of single batches, wherever they lie, with the node that has them."""
    wanted = batches.where("trouble is null and not is_control").select(
        "node", "partition", "path", "position", "size_bytes"
    )
    in_order = wanted.repartition("path").sortWithinPartitions("path", "position")
    return in_order.mapInArrow(unpack_batches, SPARK_REPLICA_ROWS)


def _of(batches: DataFrame, leaders: dict[int, ReplicaLog]) -> DataFrame:
    """Only the batches of leading replicas."""
    wanted = f.lit(False)
    for partition, log in leaders.items():
        is_it = (f.col("partition") == partition) & (f.col("node") == log.replica.node_id)
        wanted = wanted | is_it
    return batches.where(wanted)


# The topic as its replicas have it.


def one_topic_id(replicas: Sequence[DiskReplica]) -> str | None:
    """The id that all these directories have; two topics of one name cannot be audited at once."""
    first = next((each for each in replicas if each.topic_id is not None), None)
    for each in replicas:
        if first is not None and each.topic_id not in (None, first.topic_id):
            raise AuditRefused(
                f"{each.directory} is of topic id {each.topic_id}, {first.directory} of "
                f"{first.topic_id}: one of them was deleted"
            )
    return None if first is None else first.topic_id


def facts_from_disks(
    topic: str, logs: Sequence[ReplicaLog], leaders: Mapping[int, ReplicaLog], *, is_compacted: bool
) -> AuditedTopic:
    """The topic as its leading replicas have it."""
    partitions = {}
    for index, lead in sorted(leaders.items()):
        replicas = [log.replica for log in logs if log.replica.partition == index]
        partitions[index] = AuditedPartition(
            partition=index,
            log_start_offset=lead.replica.log_start_offset,
            end_offset=lead.end_offset,
            log_end_offset=lead.end_offset,
            high_watermark=max(each.high_watermark or 0 for each in replicas),
            read_from=f"the disk of replica {lead.replica.node_id}, which has the newest leader "
            f"epoch ({lead.leader_epoch})",
            replicas=tuple(each.node_id for each in replicas),
        )
    topic_id = one_topic_id([log.replica for log in logs])
    return AuditedTopic(
        topic=topic, topic_id=topic_id, is_compacted=is_compacted, partitions=partitions
    )


def floor_frame(
    spark: SparkSession,
    logs: Iterable[ReplicaLog],
    leaders: Mapping[int, ReplicaLog],
    at_brokers: BrokerTopic | None,
) -> DataFrame:
    """For each replica how far it must agree with the leading one: as far as it knew everything to
    be committed, by its own checkpoint, or because brokers say that it is in sync."""
    rows = []
    for log in logs:
        replica = log.replica
        lead = leaders[replica.partition]
        committed = replica.high_watermark or 0
        if at_brokers is not None and replica.node_id in at_brokers.in_sync.get(
            replica.partition, ()
        ):
            committed = max(
                committed, at_brokers.topic.partitions[replica.partition].high_watermark
            )
        rows.append(
            (
                replica.node_id,
                replica.partition,
                lead.replica.node_id,
                replica.log_start_offset,
                log.end_offset,
                committed,
                lead.replica.log_start_offset,
            )
        )
    return spark.createDataFrame(rows, SPARK_FLOORS)


# In tasks.


class SegmentScan(NamedTuple):
    """One file to be walked."""

    node_id: int
    partition: int
    segment: SegmentFile


class SegmentStretch(NamedTuple):
    """Some batches of a file whose records are to be unpacked."""

    node_id: int
    partition: int
    path: str
    start_position: int
    end_position: int
    markers: tuple[TransactionMarker, ...]
    """Enough to decide every transaction of these batches that is decided."""


def scan_file(scan: SegmentScan) -> Iterator[pa.RecordBatch]:
    """A row for each batch of the file, and one if something behind them is none."""
    found = RowBuffer(BATCHES)
    tail = Tail()
    end_offset = scan.segment.base_offset
    view = mapped(scan.segment.path)
    for each in walk(view, tail):
        found.append(scan.node_id, scan.partition, scan.segment.path, *_batch(each))
        end_offset = each.header.end_offset
        if found.is_full:
            yield found.take()
    if tail.reason is not None and not scan.segment.is_newest:
        where = (scan.node_id, scan.partition, scan.segment.path, tail.position)
        what = (len(view) - tail.position, end_offset, end_offset, None, None, None, False)
        found.append(*where, *what, None, tail.reason)
    yield found.take()


def _batch(each: Walked) -> tuple[object, ...]:
    header = each.header
    return (
        each.position,
        header.size_bytes,
        header.base_offset,
        header.end_offset,
        header.leader_epoch,
        header.crc,
        header.producer_id,
        header.is_control,
        None if each.marker is None else each.marker.is_commit,
        None if each.is_sound else WRONG_CHECKSUM,
    )


def unpack_stretch(part: SegmentStretch) -> Iterator[pa.RecordBatch]:
    decisions = Decisions(part.markers)
    view = mapped(part.path)[part.start_position : part.end_position]
    judged = [
        _judged(each, decisions)
        for each in walk(view, Tail())
        if each.is_sound and not each.header.is_control
    ]
    yield from rows(view, judged, partition=part.partition)


def _judged(each: Walked, decisions: Decisions) -> Judged:
    state = COMMITTED
    if each.header.is_transactional:
        state = decisions.state(each.header.producer_id, each.header.base_offset)
    return Judged(each, state, state == COMMITTED)


def unpack_batches(wanted: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of node, partition, path, position and size; their records with the node before them."""
    for batch in wanted:
        for row in batch.to_pylist():
            with Path(row["path"]).open("rb") as file:
                file.seek(row["position"])
                view = memoryview(file.read(row["size_bytes"]))
            judged = [Judged(each, COMMITTED, True) for each in walk(view, Tail())]
            for found in rows(view, judged, partition=row["partition"]):
                node = pa.array([row["node"]] * found.num_rows, pa.int32())
                yield pa.RecordBatch.from_arrays([node, *found.columns], schema=REPLICA_ROWS)


def mapped(path: str) -> memoryview:
    """A file's bytes without reading them all; they stay as long as somebody has the view."""
    with Path(path).open("rb") as file:
        if file.seek(0, 2) == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
