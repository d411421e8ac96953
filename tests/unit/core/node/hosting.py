"""A broker that hosts partitions for tests: real logs on a memory disk, led or followed at will."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.memory_disk import MemoryDisk
from tests.unit.core.metadata.given import broker, state, topic, topic_id
from tests.unit.core.node.given import NODE_ID, Broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import NullTrace
from tidelog.core.replication.partition import Assignment, Partition
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.log import Log
from tidelog.core.wire.records import NewRecord, build

TOPIC = "orders"
ELSEWHERE = "elsewhere"
"""A topic of the cluster whose only replica is on another broker."""
OTHER_NODE = 2


class HostingBroker(Broker):
    """Leads one partition of one topic in leader epoch 3, with nothing written yet."""

    def __init__(self, topic_name: str = TOPIC, config: LogConfig | None = None) -> None:
        super().__init__(
            broker(NODE_ID),
            broker(OTHER_NODE),
            *topic(topic_name, 1, state(NODE_ID)),
            *topic(ELSEWHERE, 2, state(OTHER_NODE)),
        )
        self.disk = MemoryDisk()
        self.topic_name = topic_name
        self.failed: list[Log] = []
        self.log = Log.open(
            disk=self.disk,
            directory=f"data/{topic_name}-0",
            topic_partition=TopicPartition(topic_name, 0),
            topic_id=topic_id(1),
            config=config or LogConfig(),
            trace=NullTrace(),
            wall_ms=0,
            clean=True,
        )
        self.hosted = Partition(
            topic_partition=TopicPartition(topic_name, 0),
            topic_id=topic_id(1),
            log=self.log,
            node_id=NODE_ID,
            waits_for_sync=False,
            isr_min=1,
            lag_ms_max=30_000,
            cluster=self,
            trace=NullTrace(),
        )
        self.lead(leader_epoch=3)

    def lead(self, *, leader_epoch: int, replicas: tuple[int, ...] = (NODE_ID,)) -> None:
        assigned = Assignment(NODE_ID, leader_epoch, leader_epoch, replicas, replicas)
        self.hosted.lead(assigned, now_ms=0)

    def stop_leading(self) -> None:
        """Another broker leads, without a new leader epoch being known here."""
        before = self.hosted
        replicas = (NODE_ID, OTHER_NODE)
        assigned = Assignment(
            OTHER_NODE, before.leader_epoch, before.partition_epoch + 1, replicas, replicas
        )
        before.follow(assigned)

    def may_join(self, broker_id: int, broker_epoch: int | None) -> bool:
        return True

    def is_alive(self, broker_id: int) -> bool:
        return True

    def find_partition(self, topic_name: str, index: int) -> Partition | None:
        return self.partition(topic_name, index)

    def partition(self, topic_name: str, index: int) -> Partition | None:
        return self.hosted if (topic_name, index) == (self.topic_name, 0) else None

    def on_log_failed(self, log: Log) -> None:
        self.failed.append(log)

    def append(
        self,
        *timestamps_ms: int,
        committed: bool = True,
        producer_id: int = -1,
        sequence: int = -1,
        transactional: bool = False,
    ) -> None:
        """One batch with a record for each timestamp; committed unless told otherwise."""
        batch = build(
            [NewRecord(b"v", timestamp_ms=timestamp_ms) for timestamp_ms in timestamps_ms],
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=sequence,
            transactional=transactional,
        )
        appended = self.log.append_as_leader(
            memoryview(batch), leader_epoch=self.hosted.leader_epoch, wall_ms=max(timestamps_ms)
        )
        assert appended.error == ErrorCode.NONE, appended
        if committed:
            self.log.advance_high_watermark(self.log.log_end_offset)

    def reconfigure(self, **changes: object) -> None:
        self.log.update_config(replace(self.log.config, **changes))  # type: ignore[arg-type]
