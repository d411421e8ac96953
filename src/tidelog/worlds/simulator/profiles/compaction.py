"""Profile `compaction`: compacted topics, keyed writers, and crashes while segments are exchanged.

In the first phase writers set and delete keys, readers go through whole partitions, the cleaner of
every broker works, and the steps of the plan strike. Then everything is healed: within a bounded
time nothing is left that `max.compaction.lag.ms` does not allow, every replica has the same newest
values, and readers get them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tidelog.core.storage.log import Log
from tidelog.judge.anomalies import NOT_RECOVERED, UNEXPECTED, Anomaly
from tidelog.judge.compaction.compacted_log import differing_replicas
from tidelog.judge.compaction.scans import judge_scans
from tidelog.judge.history import RecordsRead
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.cluster_run import LIVENESS_MS, ClusterRun
from tidelog.worlds.simulator.profiles.compaction_clients import (
    CompactionContext,
    KeyedWriter,
    LogScanner,
)
from tidelog.worlds.simulator.profiles.compaction_plan import make_compaction_plan
from tidelog.worlds.simulator.profiles.consumers import ConsumerReader, watch_positions
from tidelog.worlds.simulator.profiles.liveness import LivenessCheck
from tidelog.worlds.simulator.steps import ChosenStep

COMPACTED_MS_MAX = 8_000
"""How long it may take at rest until all is compacted: `max.compaction.lag.ms`, a roll of the
active segment, and a pass of the cleaner over every log, one after the other."""
COMPACTED_LOOK_MS = 1_000
NULL = "(null)"
"""What a consumer of values sees of a tombstone."""


class CompactionLiveness(LivenessCheck):
    """At rest: replicas complete and in sync, and nothing left that should have been compacted."""

    def __init__(
        self,
        context: CompactionContext,
        writers: Sequence[KeyedWriter],
        readers: Sequence[ConsumerReader],
    ) -> None:
        super().__init__(context, writers, readers)
        self._compaction = context

    def _missing_of(self, partition: str) -> Iterator[str]:
        context = self._compaction
        known = context.checker.model.partitions[partition]
        if known.leader is None:
            yield f"{partition} is not led"
            return
        if known.isr != frozenset(known.replicas):
            yield f"{partition} has only {sorted(known.isr)} of {known.replicas} in sync"
        end_offset = context.log_end(partition)
        for node_id in known.replicas:
            log = self._log_of(node_id, partition)
            if log is None or log.failed is not None:
                yield f"{partition} is not open on {node_id}"
            elif not log.high_watermark == log.log_end_offset == end_offset:
                yield f"{partition} on {node_id} ends at {log.log_end_offset}, not {end_offset}"

    def overdue(self) -> str | None:
        """A record that should be gone, once nobody writes any more."""
        context = self._compaction
        for partition, known in sorted(context.checker.model.partitions.items()):
            for node_id in known.replicas:
                log = self._log_of(node_id, partition)
                if log is not None:
                    for found in self._overdue(partition, node_id, log):
                        return found
        return None

    def _overdue(self, partition: str, node_id: int, log: Log) -> Iterator[str]:
        """Replaced records of inactive segments, older than max.compaction.lag.ms."""
        context = self._compaction
        known = context.compaction.logs[(partition, node_id)]
        active = log.files.active
        sealed_end = 0 if active is None else active.base_offset
        wall_ms = context.cluster.process(node_id).wall_ms(context.world.now_ms)
        oldest_ms = wall_ms - log.config.compaction_lag_max_ms
        newest: dict[str, int] = {}
        for record in sorted(known.records.values()):
            if record.offset < sealed_end and record.timestamp_ms < oldest_ms:
                if record.key in newest:
                    yield f"{partition} on {node_id}: {newest[record.key]} is replaced, and there"
                    return
                newest[record.key] = record.offset


class CompactionRun(ClusterRun):
    """One seed, with all steps of its plan or only some of them."""

    def __init__(
        self,
        seed: int,
        *,
        disk_type: type[SimDisk] = SimDisk,
        only: Sequence[ChosenStep] | None = None,
    ) -> None:
        self.plan = make_compaction_plan(seed)
        self.compaction = CompactionContext(self.plan, disk_type=disk_type)
        super().__init__(self.compaction, only=only)
        self.writers = [KeyedWriter(self.compaction, each) for each in self.plan.writers]
        self.readers = [ConsumerReader(self.compaction, each) for each in self.plan.readers]
        self.scanners = [
            LogScanner(self.compaction, "scanner-1", from_start=True),
            LogScanner(self.compaction, "scanner-2", from_start=True),
            LogScanner(self.compaction, "scanner-3", from_start=False),
        ]
        self.liveness: CompactionLiveness = CompactionLiveness(
            self.compaction, self.writers, self.readers
        )

    def _set_up(self) -> None:
        watch_positions(self.context, self.readers)
        self._form()
        for writer in self.writers:
            writer.start()
        for reader in self.readers:
            reader.start()
        for scanner in self.scanners:
            scanner.start()

    def _liveness_phase(self) -> None:
        context = self.context
        context.is_over = context.is_healed = True
        self.faults.heal_everything()
        self._until(self.liveness.is_reached, LIVENESS_MS)
        overdue: str | None = None
        for _ in range(COMPACTED_MS_MAX // COMPACTED_LOOK_MS):
            self.world.run_for(COMPACTED_LOOK_MS)
            overdue = self.liveness.overdue()
            if overdue is None:
                break
        if overdue is not None:
            context.report_anomaly(NOT_RECOVERED, "-", reason="not compacted", missing=overdue)
        # What is there at rest is read once more, whole.
        for scanner in self.scanners[:2]:
            scanner.disconnect()
            scanner.finished.clear()
            scanner.start()
        self._until(
            lambda: all(
                set(context.topic_partitions) <= scanner.finished for scanner in self.scanners[:2]
            ),
            LIVENESS_MS,
        )
        context.observation.check_all()
        for partition in sorted(context.checker.model.partitions):
            replicas = context.checker.model.partitions[partition].replicas
            logs = [self.compaction.compaction.logs[(partition, node_id)] for node_id in replicas]
            context.anomalies += differing_replicas(logs, at_us=self.world.now_us)

    def _judge(self) -> list[Anomaly]:
        retention = {
            topic.name: int(topic.configs["delete.retention.ms"]) for topic in self.plan.topics
        }
        names = [self.context.name_of(each) for each in self.context.topic_partitions]
        found = judge_scans(
            self.compaction.scans,
            self.compaction.keyed_writes(),
            delete_retention_ms={name: retention[name.rpartition("-")[0]] for name in names},
        )
        return [*self.compaction.compaction.anomalies, *found, *self._consumed()]

    def _consumed(self) -> Iterator[Anomaly]:
        """A consumer of the client room gets what was written, and gets it in order."""
        for read in self.context.history:
            if isinstance(read, RecordsRead):
                offsets = [seen.offset for seen in read.records]
                in_order = all(one < other for one, other in pairwise(offsets))
                for seen in read.records:
                    is_known = seen.payload == NULL or seen.payload in self.compaction.keys
                    if not (is_known and in_order):
                        yield UNEXPECTED.found(
                            at_us=read.at_us,
                            partition=read.partition,
                            payload=seen.payload,
                            offset=seen.offset,
                        )
