"""A node's metadata log on a simulated disk: one run follows the other on one store."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import cast

from tests.unit.core.metadata.given import topic_id
from tests.unit.core.node.lone_links import Wires
from tidelog.core.metadata.changes import Change
from tidelog.core.metadata.cluster import PartitionState, partition_record
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import MetadataRecord, TopicRecord
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import ListTrace
from tidelog.core.node.connections.liveness_probes import LivenessProbes
from tidelog.core.node.connections.request_timeouts import RequestTimeouts
from tidelog.core.node.metadata.metadata_log import MetadataLog
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.node.settings import NodeSettings
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.disk import File
from tidelog.core.storage.log import Log
from tidelog.core.wire.links import Links
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.durable_store import DurableStore, FileNode
from tidelog.worlds.simulator.world import SimWorld

DIRECTORY_ID = b"d" * 16
SEGMENT = "data/__cluster_metadata-0/00000000000000000000.log"
WALL_MS = 1_800_000_000_000


class Directory:
    """What the metadata log needs of a log directory."""

    def __init__(self, disk: SimDisk, trace: ListTrace) -> None:
        self._disk = disk
        self._trace = trace
        disk.make_directory("data")
        disk.sync_directory_now("")

    def open_log(
        self,
        topic_partition: TopicPartition,
        *,
        topic_id: TopicId,
        config: LogConfig,
        wall_ms: int,
    ) -> Log:
        return Log.open(
            disk=self._disk,
            directory=f"data/{topic_partition}",
            topic_partition=topic_partition,
            topic_id=topic_id,
            config=config,
            trace=self._trace,
            wall_ms=wall_ms,
            clean=False,
        )


class Run:
    """One life of a node, as far as its metadata goes."""

    def __init__(
        self, machine: Machine, directory: type[Directory], settings: dict[str, str]
    ) -> None:
        self.disk = SimDisk(
            world=machine.world,
            store=machine.store,
            name="node",
            random=machine.world.random_for("sync"),
            on_synced=self._on_synced,
            on_sync_failed=lambda file, reason: self.failures.append(reason),
        )
        self.image = ClusterImage()
        texts = {"node.id": "1", "log.dirs": "data", "listeners": "PLAINTEXT://here:9092"}
        self.settings = NodeSettings.of(texts | settings)
        self.trace = ListTrace()
        self.random = Random(machine.lives)
        self.changes: list[Change] = []
        self.failures: list[str] = []
        self.directory = directory(self.disk, self.trace)
        self.metadata = MetadataLog(self._port())
        self.quorum = self.metadata.quorum
        self.metadata.claim_directories()
        self.metadata.start(0)
        self.metadata.finish_start(0)
        self.metadata.announce_partitions(0)
        self.metadata.check()
        self.quorum.check()

    def _port(self) -> MetadataPort:
        alarms = Alarms()
        links = Links(Wires(), client_id="node-1")
        return MetadataPort(
            settings=self.settings,
            image=self.image,
            disk=self.disk,
            log_directory=lambda: cast("LogDirectory", self.directory),
            links=links,
            probes=LivenessProbes(alarms=alarms, links=links),
            alarms=alarms,
            timeouts=RequestTimeouts(),
            trace=self.trace,
            random=self.random,
            wall_ms=lambda now_ms: WALL_MS + now_ms,
            on_change=lambda change, now_ms: self.changes.append(change),
            on_data=lambda parked: None,
            on_log_failed=lambda log: self.failures.append(str(log.failed)),
            on_disk_error=lambda error: self.failures.append(error.reason),
            halt=self.failures.append,
        )

    def propose(self, records: Sequence[MetadataRecord], done: list[str], word: str) -> None:
        self.metadata.propose(records, lambda: done.append(word), now_ms=5)

    def _on_synced(self, file: File, size_bytes: int) -> None:
        if file.owner is not None:
            file.owner.on_synced(file, size_bytes)
            self.metadata.on_synced(0)
            self.metadata.check()


class Machine:
    """A store on which one run follows the other."""

    def __init__(self, seed: int = 1) -> None:
        self.world = SimWorld(seed=seed)
        self.store = DurableStore(self.world.random_for("platter"), page_bytes=64)
        self.lives = 0

    def start(
        self, directory: type[Directory] = Directory, settings: dict[str, str] | None = None
    ) -> Run:
        self.lives += 1
        return Run(self, directory, settings or {})

    def settle(self) -> None:
        while self.world.step():
            pass

    def bytes_of(self, path: str) -> bytearray:
        node = self.store.find(path)
        assert isinstance(node, FileNode)
        return node.data


def new_topic(number: int, *, partitions: int = 2) -> list[MetadataRecord]:
    state = PartitionState(
        replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0,
        directories=(DIRECTORY_ID,),
    )  # fmt: skip
    return [
        TopicRecord(name=f"t{number}", topic_id=topic_id(number)),
        *(partition_record(topic_id(number), index, state) for index in range(partitions)),
    ]
