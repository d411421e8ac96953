"""The observer of a cluster whose topics are compacted: segments that change are read again.

What invariants of replication compare, batch by batch, compaction changes. So of the topics only
what compaction promises is judged here (judge/compaction); metadata and quorum are observed as in
every cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidelog.core.node.node import Node
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.log import Log
from tidelog.core.storage.segment import Segment
from tidelog.core.wire.record_batch import batches
from tidelog.core.wire.records import iterate
from tidelog.judge.anomalies import HEAD_MISSING, Anomaly
from tidelog.judge.compaction.compacted_log import CompactedLog, CompactionRules, KeyedRecord
from tidelog.worlds.simulator.cluster import SimCluster
from tidelog.worlds.simulator.log_watch import LogWatch
from tidelog.worlds.simulator.observation import NodeView, Observation
from tidelog.worlds.simulator.payloads import from_value

NAME_HEADER = "payload"
"""The record header with the payload's name, since a tombstone has no value to hold it."""


@dataclass(slots=True)
class CompactedView:
    """What was read of one log of a running process."""

    watch: LogWatch
    segments: list[Segment]


class CompactionObservation(Observation):
    """Attached to a cluster before its nodes start; `rules` of each topic by its name."""

    def __init__(
        self,
        cluster: SimCluster,
        *,
        rules: Callable[[str], CompactionRules],
        keeps_head: Callable[[str], bool],
    ) -> None:
        super().__init__(cluster)
        self._rules = rules
        self._keeps_head = keeps_head
        self.logs: dict[tuple[str, int], CompactedLog] = {}
        self.anomalies: list[Anomaly] = []
        self.rewrites = 0
        self._compacted: dict[tuple[str, int], CompactedView] = {}

    def _look_at_logs(self, node_id: int, view: NodeView, node: Node) -> None:
        for partition in node.partitions:
            self._look_at_partition(node_id, view, partition, node)

    def _look_at_partition(
        self, node_id: int, view: NodeView, partition: Partition, node: Node
    ) -> None:
        log = partition.log
        if log.failed is not None:
            return
        name, topic = str(partition.topic_partition), partition.topic_partition.topic
        known = self.logs.get((name, node_id))
        if known is None:
            known = self.logs[(name, node_id)] = CompactedLog(name, node_id, self._rules(topic))
        # First: what is committed in this tick may be what made it clean.
        known.fence = max(known.fence, min(log.high_watermark, log.last_stable_offset))
        self._read_compacted(known, log)
        known.advance(
            start_offset=log.log_start_offset,
            fence=min(log.high_watermark, log.last_stable_offset),
            synced_end_offset=log.recovery_point,
        )
        if self._keeps_head(topic) and log.log_start_offset > 0 and known.start_offset >= 0:
            self.anomalies.append(
                HEAD_MISSING.found(
                    at_us=self.cluster.world.now_us,
                    partition=name,
                    log_start_offset=log.log_start_offset,
                    deleted_below=0,
                )
            )

    def _read_compacted(self, known: CompactedLog, log: Log) -> None:
        key = (known.partition, known.node)
        seen = self._compacted.get(key)
        segments = log.files.segments
        is_same = seen is not None and seen.watch.log is log
        if seen is not None and is_same and seen.segments == segments[: len(seen.segments)]:
            if known.end_offset != log.log_end_offset:
                records = keyed_records(seen.watch.new_bytes())
                known.append(records, end_offset=log.log_end_offset)
        else:
            self._read_again(known, log)
            watch = LogWatch(log, log.log_end_offset)
            seen = self._compacted[key] = CompactedView(watch, [])
        seen.segments = list(segments)

    def _read_again(self, known: CompactedLog, log: Log) -> None:
        self.rewrites += 1
        world = self.cluster.world
        start_offset = log.log_start_offset
        found = {
            record.offset: record
            for record in keyed_records(LogWatch(log).new_bytes())
            if record.offset >= start_offset
        }
        self.anomalies += known.rewrite(
            found,
            start_offset=start_offset,
            end_offset=log.log_end_offset,
            at_us=world.now_us,
            wall_ms=self.cluster.process(known.node).wall_ms(world.now_ms),
        )

    def _note_cut(self, source: str, storage_name: str, end_offset: int) -> None:
        super()._note_cut(source, storage_name, end_offset)
        node_id = self._node_of(source)
        known = None if node_id is None else self.logs.get((storage_name, node_id))
        if node_id is None or known is None:
            return
        known.cut(end_offset)
        seen = self._compacted.get((storage_name, node_id))
        if seen is not None:
            seen.watch.rewind(end_offset)


def keyed_records(data: bytes | memoryview) -> Iterator[KeyedRecord]:
    """The records of these whole batches; a garbled one gets a name that nobody wrote."""
    for position, header in batches(data):
        for record in iterate(data, position):
            name = dict(record.headers).get(NAME_HEADER)
            payload = "(nameless)" if name is None else name.decode(errors="replace")
            if record.value is not None and from_value(record.value) != payload:
                payload = f"(garbled {payload})"
            yield KeyedRecord(
                record.offset,
                "(none)" if record.key is None else record.key.decode(errors="replace"),
                payload,
                record.value is None,
                record.timestamp_ms,
                header.leader_epoch,
                header.delete_horizon_ms,
            )
