"""Clients of a compaction run: writers of keys and tombstones, and readers of whole partitions."""

from __future__ import annotations

from functools import partial
from random import Random

from tidelog.client.partition_requests import fetch_answer
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tidelog.core.wire.record_batch import batches
from tidelog.judge.compaction.compacted_log import CompactionRules, KeyedRecord
from tidelog.judge.compaction.scans import KeyedWrite, LogScanned
from tidelog.judge.history import CallOutcome, Wrote
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.compaction_observation import (
    NAME_HEADER,
    CompactionObservation,
    keyed_records,
)
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.observation import Observation
from tidelog.worlds.simulator.payloads import to_value
from tidelog.worlds.simulator.process import WALL_START_MS
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.plan import RunPlan, WriterPlan
from tidelog.worlds.simulator.profiles.readers import FETCH_VERSION
from tidelog.worlds.simulator.profiles.wire_clients import KnownLeader, LeaderTracker
from tidelog.worlds.simulator.profiles.writers import ProducerWriter

KEYS = 90
HOT_KEYS = 4
TOMBSTONE_CHANCE = 0.2
GIVE_UP_MS = 6_000
"""A way through a partition that takes longer begins anew."""


class CompactionContext(RunContext):
    """The cluster, its observer, and what keyed writers and scanning readers were answered."""

    def __init__(self, plan: RunPlan, *, disk_type: type[SimDisk]) -> None:
        super().__init__(plan, disk_type=disk_type)
        assert isinstance(self.observation, CompactionObservation)
        self.compaction = self.observation
        self.scans: list[LogScanned] = []
        self.keys: dict[str, tuple[str, bool]] = {}
        """Of each payload: its key, and whether it is a tombstone."""

    def _observe(self) -> Observation:
        configs = {topic.name: topic.configs for topic in self.plan.topics}
        return CompactionObservation(
            self.cluster,
            rules=lambda topic: CompactionRules(
                lag_min_ms=int(configs[topic].get("min.compaction.lag.ms", "0")),
                delete_retention_ms=int(configs[topic]["delete.retention.ms"]),
            ),
            keeps_head=lambda topic: "delete" not in configs[topic]["cleanup.policy"],
        )

    def log_start(self, partition: str) -> int:
        leader = self.leader_of(partition)
        known = None if leader is None else self.compaction.logs.get((partition, leader))
        return 0 if known is None else known.start_offset

    def log_end(self, partition: str) -> int | None:
        leader = self.leader_of(partition)
        known = None if leader is None else self.compaction.logs.get((partition, leader))
        return None if known is None else known.end_offset

    def record_scan(self, scan: LogScanned) -> None:
        self.scans.append(scan)
        self.world.trace.emit("history", scan)
        self.operations += len(scan.records)

    def keyed_writes(self) -> list[KeyedWrite]:
        retrying = {writer.name for writer in self.plan.writers if writer.retries}
        return [
            KeyedWrite(
                write.partition,
                *(self.keys[payload][0], payload, self.keys[payload][1]),
                write.invoked_us,
                write.at_us,
                write.outcome,
                write.base_offset,
                write.writer in retrying,
            )
            for write in self.history
            if isinstance(write, Wrote)
            for payload in write.payloads
        ]


class KeyedWriter(ProducerWriter):
    """Writes few keys often and many seldom, and deletes some of them."""

    def __init__(self, context: CompactionContext, plan: WriterPlan) -> None:
        super().__init__(context, plan)
        self._keyed = context
        self._order = 0

    def _write(self, now_ms: int) -> None:
        random = self.random
        topic_partition = random.choice(self.context.topic_partitions)
        for _ in range(random.randint(1, self.plan.records_max)):
            payload = self.context.new_payload(self.name)
            key, is_tombstone = _key(random), random.random() < TOMBSTONE_CHANCE
            self._keyed.keys[payload] = (key, is_tombstone)
            self._order += 1
            self.context.begin_write(
                Wrote(
                    at_us=self.context.world.now_us,
                    invoked_us=self.context.world.now_us,
                    partition=self.context.name_of(topic_partition),
                    payloads=(payload,),
                    outcome=CallOutcome.UNKNOWN,
                    writer=self.name,
                    acks=self.plan.acks,
                )
            )
            self.producer.send(
                topic_partition.topic,
                None if is_tombstone else to_value(payload, 20 if self._order % 7 else 200),
                key=key.encode(),
                headers=[(NAME_HEADER, payload.encode())],
                partition=topic_partition.index,
                timestamp_ms=WALL_START_MS + now_ms,
                now_ms=now_ms,
                then=partial(self._on_sent, payload),
            )


def _key(random: Random) -> str:
    return f"key-{random.randrange(HOT_KEYS if random.random() < 0.6 else KEYS)}"


class LogScanner(LeaderTracker):
    """Reads one partition from its start, or from the middle, to its end; then another one."""

    def __init__(self, context: CompactionContext, name: str, *, from_start: bool) -> None:
        super().__init__(context, name)
        self._keyed = context
        self._from_start = from_start
        self._serial = 0
        """Answers to what was given up are not for the scan under way."""
        self.finished: set[TopicPartition] = set()
        """Read to the end since this was emptied."""

    def start(self) -> None:
        self._serial += 1
        self.context.later(self.random, 5, 40, self._begin)

    def _begin(self) -> None:
        self.refresh()
        partitions = self.context.topic_partitions
        if not partitions:
            self.start()
            return
        left = [each for each in partitions if each not in self.finished]
        partition = self.random.choice(left if left and self.context.is_over else partitions)
        name = self.context.name_of(partition)
        start_offset = self._keyed.log_start(name)
        if not self._from_start:
            start_offset = self.random.randint(
                start_offset, max(start_offset, self.context.log_end(name) or 0)
            )
        _Scan(self, partition, start_offset, self._serial).go_on()

    def is_current(self, serial: int) -> bool:
        return serial == self._serial

    def record(self, scan: LogScanned) -> None:
        self._keyed.record_scan(scan)


class _Scan:
    """One way through one partition."""

    def __init__(
        self, reader: LogScanner, partition: TopicPartition, start_offset: int, serial: int
    ) -> None:
        self._reader = reader
        self._partition = partition
        self._start_offset = self._position = start_offset
        self._serial = serial
        self._began_us = reader.context.world.now_us
        self._records: list[KeyedRecord] = []
        self._leaders: set[KnownLeader] = set()
        self._bytes_max = reader.random.choice((1, 400, 1 << 18))

    def go_on(self) -> None:
        world = self._reader.context.world
        if not self._reader.is_current(self._serial):
            return
        if world.now_us - self._began_us > GIVE_UP_MS * 1_000:
            self._reader.start()
            return
        led = self._reader.known.get(str(self._partition))
        if led is None:
            self._wait()
            return
        request = FetchRequest(
            max_wait_ms=20,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[
                FetchTopic(
                    topic=self._partition.topic,
                    partitions=[
                        FetchPartition(
                            partition=self._partition.index,
                            current_leader_epoch=led.leader_epoch,
                            fetch_offset=self._position,
                            partition_max_bytes=self._bytes_max,
                        )
                    ],
                )
            ],
        )
        self._reader.ask(
            request,
            FETCH_VERSION,
            partial(self._on_answer, led),
            broker=led.leader,
            timeout_ms=1_000,
        )

    def _wait(self) -> None:
        self._reader.refresh()
        self._reader.context.later(self._reader.random, 20, 60, self.go_on)

    def _on_answer(self, led: KnownLeader, answer: Reply) -> None:
        if not isinstance(answer, FetchResponse):
            self._wait()
            return
        result = fetch_answer(answer)
        if result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reader.start()  # its head was deleted on the way
            return
        if result.error_code != ErrorCode.NONE:
            self._wait()
            return
        self._leaders.add(led)
        data = memoryview(result.records or b"")
        for _, header in batches(data):
            self._position = header.end_offset
        self._records += [
            record for record in keyed_records(data) if record.offset >= self._start_offset
        ]
        if self._position < result.high_watermark:
            self._reader.context.world.after(0, self.go_on)
            return
        self._reader.record(
            LogScanned(
                at_us=self._reader.context.world.now_us,
                began_us=self._began_us,
                reader=self._reader.name,
                partition=self._reader.context.name_of(self._partition),
                start_offset=self._start_offset,
                end_offset=self._position,
                log_start_offset=max(result.log_start_offset, 0),
                records=tuple(self._records),
                leader_epoch=next(iter(self._leaders)).leader_epoch
                if len(self._leaders) == 1
                else None,
            )
        )
        self._reader.finished.add(self._partition)
        self._reader.start()
