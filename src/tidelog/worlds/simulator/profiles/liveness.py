"""The end of a run: what a healed cluster must come to, and its final logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.core.storage.log import Log
from tidelog.core.wire.record_batch import batches, crc_is_valid
from tidelog.judge.anomalies import CORRUPTION_SPREAD
from tidelog.judge.cluster.log_copies import LogCopy
from tidelog.judge.history import FinalLog, Seen
from tidelog.worlds.simulator.log_watch import LogWatch
from tidelog.worlds.simulator.payloads import read_answer
from tidelog.worlds.simulator.profiles.consumers import ConsumerReader
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.readers import WireReader
from tidelog.worlds.simulator.profiles.writers import ProducerWriter


class LivenessCheck:
    """Liveness as a list of what is missing; an empty one is the end."""

    def __init__(
        self,
        context: RunContext,
        writers: Sequence[ProducerWriter],
        readers: Sequence[WireReader | ConsumerReader],
    ) -> None:
        self._context = context
        self._writers = writers
        self._readers = readers

    def is_reached(self) -> bool:
        return next(self._missing(), None) is None

    def missing(self) -> str:
        return "; ".join(self._missing()) or "nothing"

    def check_for_copied_damage(self) -> None:
        """The damage on one replica was repaired; no other replica may have copied it (X-33)."""
        for node_id, node in self._context.cluster.running.items():
            for partition in node.partitions:
                data = LogWatch(partition.log).new_bytes()
                for position, header in batches(data):
                    if not crc_is_valid(data, position, header):
                        self._context.report_anomaly(
                            CORRUPTION_SPREAD,
                            str(partition.topic_partition),
                            node=node_id,
                            offset=header.base_offset,
                        )

    def record_final_logs(self) -> None:
        """The whole log of every partition, as its leader has it."""
        for partition in sorted(self._context.checker.model.partitions):
            leader = self._context.leader_of(partition)
            if leader is None:
                continue
            log = self._log_of(leader, partition)
            if log is not None:
                self._context.record(
                    FinalLog(
                        at_us=self._context.world.now_us,
                        partition=partition,
                        log_start_offset=log.log_start_offset,
                        end_offset=log.log_end_offset,
                        records=_records(log),
                    )
                )

    def _log_of(self, node_id: int, partition: str) -> Log | None:
        """None if there is none, or if a client that was not told of its topic's deletion created
        the topic again: the history does not tell its records apart."""
        metadata = self._context.observation.metadata
        for known in self._context.cluster.node(node_id).partitions:
            topic, index = known.topic_partition.topic, known.topic_partition.index
            if metadata.name(topic, known.topic_id, index) == partition:
                is_first = str(known.topic_partition) == partition
                return known.log if is_first or self._context.knows(partition) else None
        return None

    def _missing(self) -> Iterator[str]:
        context = self._context
        for node_id, process in context.cluster.processes.items():
            if not process.is_up:
                yield f"node {node_id} is down: {process.halt_reason}"
        if context.active_controller() is None:
            yield "there is no active controller"
        for broker_id, broker in sorted(context.checker.model.brokers.items()):
            if broker.is_fenced:
                yield f"broker {broker_id} is fenced"
        for partition in sorted(context.checker.model.partitions):
            yield from self._missing_of(partition)
        yield from self._left_behind()
        yield from self._waiting()
        for writer in self._writers:
            if not writer.is_idle:
                yield f"{writer.name} has {writer.producer.pending} records without an outcome"
        for reader in self._readers:
            yield from reader.missing()

    def _missing_of(self, partition: str) -> Iterator[str]:
        model = self._context.checker.model
        known = model.partitions[partition]
        if known.leader is None:
            yield f"{partition} is not led"
            return
        if known.is_moving:
            yield f"{partition} is still on its way: {known.replicas}"
        if known.isr != frozenset(known.replicas):
            yield f"{partition} has only {sorted(known.isr)} of {known.replicas} in sync"
        log_copies = model.log_copies.get(partition, {})
        leader = log_copies.get(known.leader)
        if leader is None:
            yield f"{partition} has no log on its leader"
            return
        for node_id in known.replicas:
            replica = model.replicas.get((partition, node_id))
            log_copy = log_copies.get(node_id)
            if replica is None or log_copy is None:
                yield f"{partition} is not open on {node_id}"
            elif _differ(log_copy, leader):
                yield f"{partition} on {node_id} ends at {log_copy.end_offset}, not as the leader's"
            elif replica.high_watermark != leader.end_offset:
                yield f"{partition} on {node_id} has high watermark {replica.high_watermark}"

    def _left_behind(self) -> Iterator[str]:
        """Whoever is not among a partition's replicas keeps no file of it."""
        for node_id, node in self._context.cluster.running.items():
            hosted = {str(partition.topic_partition) for partition in node.partitions}
            for directory in node.replica_manager.directories:
                if directory.offline is not None:
                    continue
                for name in directory.disk.list_names(directory.path):
                    known = self._context.checker.model.partitions.get(name)
                    if known is not None and node_id not in known.replicas:
                        yield f"{name} moved away and is still on {node_id}"
                    elif name not in hosted and known is not None:
                        yield f"{name} has files on {node_id}, which does not host it"

    def _waiting(self) -> Iterator[str]:
        """Parked produce requests; fetches may wait for ever."""
        for node_id, node in self._context.cluster.running.items():
            for partition in node.partitions:
                if len(partition.purgatory):
                    yield f"node {node_id}: writes to {partition.topic_partition} are parked"


def _differ(one: LogCopy, other: LogCopy) -> bool:
    """From where both begin: a deleted head may be back on a replica that was not synced."""
    start_offset = max(one.start_offset, other.start_offset)
    tails = [
        [batch for batch in log_copy.batches.values() if batch.end_offset > start_offset]
        for log_copy in (one, other)
    ]
    return one.end_offset != other.end_offset or tails[0] != tails[1]


def _records(log: Log) -> tuple[Seen, ...]:
    """All records, with checksums checked."""
    start_offset = log.log_start_offset
    seen, corrupt_offset = read_answer(LogWatch(log).new_bytes(), next_offset=start_offset)
    assert corrupt_offset is None, f"corrupt at {corrupt_offset}"
    return tuple(record for record in seen if record.offset >= start_offset)
