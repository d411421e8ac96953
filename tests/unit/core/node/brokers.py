"""Several brokers in one test: real nodes on memory disks, with links and a controller by hand.

Nothing is elected here: the test says who leads, by records that every broker applies. What the
brokers ask of the controller is answered as the test likes. Bytes travel in order, one event at a
time, and a direction can be held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from tests.golden.memory_disk import MemoryDisk
from tests.unit.core.metadata.given import DIRECTORY, broker, image, state, topic, topic_id
from tests.unit.core.node.broker_clients import Client, SentRequest
from tests.unit.core.node.broker_wiring import Channel, ControllerRequest, Outbox
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.image import partition_changed
from tidelog.core.metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import ListTrace
from tidelog.core.node.node import Node
from tidelog.core.node.settings import NodeSettings
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartition,
    AlterPartitionResponseTopic,
)
from tidelog.core.wire.record_batch import BatchHeader

TOPIC = "orders"
NUMBER = 7
PARTITION = TopicPartition(TOPIC, 0)
LAG_MS = 10_000


class Brokers:
    """Brokers 1 to n, one topic with one partition on all of them, led by the first."""

    def __init__(
        self,
        *broker_ids: int,
        settings: dict[str, str] | None = None,
        racks: dict[int, str] | None = None,
        partition: PartitionState | None = None,
        grants_proposals: bool = True,
    ) -> None:
        self.now_ms = 1_000
        self.nodes: dict[int, Node] = {}
        self.disks: dict[int, MemoryDisk] = {}
        self.outboxes: dict[int, Outbox] = {}
        self.traces: dict[int, ListTrace] = {}
        self.controller_requests: deque[ControllerRequest] = deque()
        self.grants_proposals = grants_proposals
        self.held: set[tuple[int, int]] = set()
        self.syncs: dict[int, bool] = {}
        self._settings = settings or {}
        self._racks = racks or {}
        self._mail: deque[tuple[int, int, str, tuple[Any, ...]]] = deque()
        self._connections = 0
        self.image = image()
        self.records: list[MetadataRecord] = []
        for broker_id in broker_ids:
            self.start(broker_id)
        for broker_id in broker_ids:
            self.apply(broker(broker_id, rack=self._racks.get(broker_id)))
        self.apply(*topic(TOPIC, NUMBER, partition or state(*broker_ids)))
        self.run()

    # Life of brokers

    def start(self, broker_id: int, *, broker_epoch: int | None = None) -> Node:
        """A process begins on the disk that is there; it is told what the cluster knows."""
        disk = self.disks.setdefault(broker_id, MemoryDisk())
        outbox = self.outboxes[broker_id] = Outbox(self, broker_id)
        trace = self.traces[broker_id] = ListTrace()
        texts = {
            "node.id": str(broker_id),
            "listeners": f"PLAINTEXT://host-{broker_id}:9092",
            "log.dirs": "data",
            "replica.lag.time.max.ms": str(LAG_MS),
            "tidelog.cluster.secret": "the secret of all brokers of a test",
            **({"broker.rack": self._racks[broker_id]} if broker_id in self._racks else {}),
            **self._settings,
        }
        node = Node(
            settings=NodeSettings.of(texts),
            disk=disk,
            outbox=outbox,
            trace=trace,
            random=Random(broker_id),
            wall_ms=lambda now_ms: 1_800_000_000_000 + now_ms,
        )
        identity = SimpleNamespace(directory_ids=(DIRECTORY,))
        node.metadata = cast("Any", SimpleNamespace(log=None, is_active=False, identity=identity))
        cast("Any", node.controller_channel).ask = Channel(self, broker_id).ask
        node.broker_lifecycle.broker_epoch = broker_id if broker_epoch is None else broker_epoch
        node.now_ms = self.now_ms
        node.replica_manager.open_directories(node.wall_ms(self.now_ms))
        node.log_maintenance.start(self.now_ms)
        node.isr_changes.start(self.now_ms)
        self.nodes[broker_id] = node
        self.syncs[broker_id] = True
        for record in self.records:
            self._tell(node, record)
        node.broker_lifecycle.is_caught_up = True
        for known in node.image.topics.values():
            for index in range(len(known.partitions)):
                node.on_change(partition_changed(known, index), self.now_ms)
        node.end_of_tick(self.now_ms)
        return node

    def kill(self, broker_id: int) -> None:
        """The process ends; its disk stays as it is, and its connections break."""
        del self.nodes[broker_id]
        outbox = self.outboxes.pop(broker_id)
        self.disks[broker_id].wishes.clear()
        self._mail = deque(
            each
            for each in self._mail
            if each[1] != broker_id and (each[0] != broker_id or each[2] == "closed")
        )
        for peer in outbox.peers.values():
            if isinstance(peer, tuple) and peer[0] in self.nodes:
                self.post(broker_id, peer[0], "closed", (peer[1], "reset"))
        for target, connection in outbox.links.values():
            if target in self.nodes:
                self._hand_over(self.nodes[target], target, "left", (connection,))

    def wipe(self, broker_id: int) -> None:
        self.disks[broker_id] = MemoryDisk()

    # The controller

    def apply(self, *records: MetadataRecord, to: Sequence[int] | None = None) -> None:
        """The metadata log grows; by default everyone hears of it at once."""
        for record in records:
            self.image.apply(record)
            self.records.append(record)
            for broker_id in sorted(self.nodes) if to is None else to:
                self._tell(self.nodes[broker_id], record)

    def tell(self, broker_id: int, record: MetadataRecord) -> None:
        """One that has not heard of it yet hears of it now."""
        self._tell(self.nodes[broker_id], record)

    def _tell(self, node: Node, record: MetadataRecord) -> None:
        node.now_ms = self.now_ms
        change = node.image.apply(record)
        if change is not None:
            node.on_change(change, self.now_ms)
        node.end_of_tick(self.now_ms)

    def elect(
        self, leader: int | None, isr: Sequence[int], *, to: Sequence[int] | None = None
    ) -> PartitionChangeRecord:
        """Another leader, in the next leader epoch."""
        record = PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id(NUMBER),
            leader=-1 if leader is None else leader,
            isr=list(isr),
        )
        self.apply(record, to=to)
        return record

    def set_isr(self, *isr: int, to: Sequence[int] | None = None) -> None:
        self.apply(
            PartitionChangeRecord(partition_id=0, topic_id=topic_id(NUMBER), isr=list(isr)), to=to
        )

    def configure(self, name: str, value: str | None) -> None:
        self.apply(ConfigRecord(resource_type=2, resource_name=TOPIC, name=name, value=value))

    def fence(self, broker_id: int, fenced: int = 1) -> None:
        known = self.image.brokers[broker_id]
        self.apply(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=known.broker_epoch, fenced=fenced
            )
        )

    def unfence(self, broker_id: int) -> None:
        self.fence(broker_id, -1)

    def register(self, broker_id: int, broker_epoch: int) -> None:
        record: RegisterBrokerRecord = broker(broker_id, rack=self._racks.get(broker_id))
        record.broker_epoch = broker_epoch
        self.apply(record)

    def answer_wish(
        self, code: ErrorCode | None = None, *, broken: bool = False
    ) -> ControllerRequest:
        """Grant the oldest request (and commit it), refuse it, or lose the answer."""
        request = self.controller_requests.popleft()
        node = self.nodes.get(request.asker)
        if node is None:
            return request
        node.now_ms = self.now_ms
        if broken:
            request.then(NoAnswer("lost"), self.now_ms)
        else:
            request.then(self._verdict(request.request, code), self.now_ms)
        node.end_of_tick(self.now_ms)
        return request

    def _verdict(
        self, request: AlterPartitionRequest, code: ErrorCode | None
    ) -> AlterPartitionResponse:
        topics = []
        for of_topic in request.topics:
            answers = []
            for partition in of_topic.partitions:
                if code is not None:
                    answers.append(
                        AlterPartitionResponsePartition(
                            partition_index=partition.partition_index, error_code=code
                        )
                    )
                    continue
                isr = [member.broker_id for member in partition.new_isr_with_epochs]
                self.set_isr(*isr, to=())
                after = self.image.topics[TOPIC].partitions[partition.partition_index]
                answers.append(
                    AlterPartitionResponsePartition(
                        partition_index=partition.partition_index,
                        leader_id=after.leader or -1,
                        leader_epoch=after.leader_epoch,
                        isr=isr,
                        partition_epoch=after.partition_epoch,
                    )
                )
            topics.append(
                AlterPartitionResponseTopic(topic_id=of_topic.topic_id, partitions=answers)
            )
        if code is None:  # the metadata follows the answer
            for broker_id in sorted(self.nodes):
                self._mail.append((0, broker_id, "metadata", (self.records[-1],)))
        return AlterPartitionResponse(topics=topics)

    # The network

    def post(self, source: int, target: int, kind: str, what: tuple[Any, ...]) -> None:
        self._mail.append((source, target, kind, what))

    def new_connection(self, target: int, peer: Client | tuple[int, int]) -> int:
        self._connections += 1
        self.outboxes[target].peers[self._connections] = peer
        self.nodes[target].on_connection_opened(self._connections, "test", self.now_ms)
        return self._connections

    def client(self, broker_id: int) -> Client:
        client = Client(self, broker_id)
        client.connection = self.new_connection(broker_id, client)
        return client

    def frame(self, client: Client, data: bytearray) -> None:
        node = self.nodes[client.broker_id]
        node.on_frame(client.connection, memoryview(data), self.now_ms)
        node.end_of_tick(self.now_ms)

    def run(self, *, steps_max: int = 10_000) -> None:
        """Until nothing is on its way any more. Time stands still."""
        for _ in range(steps_max):
            if not (self._deliver() or self._grant_sync() or self._grant_wish()):
                return
        raise AssertionError("the brokers never come to rest")

    def _deliver(self) -> bool:
        for at, (source, target, kind, what) in enumerate(self._mail):
            if (source, target) in self.held:
                continue
            del self._mail[at]
            if target in self.nodes:
                self._hand_over(self.nodes[target], target, kind, what)
            return True
        return False

    def _hand_over(self, node: Node, target: int, kind: str, what: tuple[Any, ...]) -> None:
        now_ms = self.now_ms
        if kind == "frame":
            node.on_frame(what[0], memoryview(bytearray(what[1])), now_ms)
        elif kind == "answer":
            node.on_answer(what[0], memoryview(bytearray(what[1])), now_ms)
        elif kind == "opened":
            node.on_link_opened(what[0], now_ms)
        elif kind == "closed":
            self.outboxes[target].links.pop(what[0], None)
            node.on_link_closed(what[0], what[1], now_ms)
        elif kind == "metadata":
            self._tell(node, what[0])
        else:
            assert kind == "left", kind
            self.outboxes[target].peers.pop(what[0], None)
            node.on_connection_closed(what[0], now_ms)
        node.end_of_tick(now_ms)
        for partition in node.partitions:
            partition.check()
        node.fetcher_links.check()

    def _grant_wish(self) -> bool:
        if not self.controller_requests or not self.grants_proposals:
            return False
        self.answer_wish()
        return True

    def _grant_sync(self) -> bool:
        for broker_id, node in sorted(self.nodes.items()):
            wishes = self.disks[broker_id].wishes
            if wishes and self.syncs[broker_id]:
                file = wishes.pop(0)
                node.on_synced(file, file.size_bytes, self.now_ms)
                node.end_of_tick(self.now_ms)
                return True
        return False

    def pass_time(self, duration_ms: int) -> None:
        """Everyone's timers ring when they are due, in order."""
        end_ms = self.now_ms + duration_ms
        self.run()
        while True:
            due = [
                (outbox.deadline_ms, broker_id)
                for broker_id, outbox in self.outboxes.items()
                if outbox.deadline_ms is not None and outbox.deadline_ms <= end_ms
            ]
            if not due:
                break
            deadline_ms, broker_id = min(due)
            self.now_ms = max(self.now_ms, deadline_ms)
            self.outboxes[broker_id].deadline_ms = None
            self.nodes[broker_id].on_timer(self.now_ms)
            self.nodes[broker_id].end_of_tick(self.now_ms)
            self.run()
        self.now_ms = end_ms

    # Evidence

    def partition(self, broker_id: int) -> Partition:
        found = self.nodes[broker_id].partition(TOPIC, 0)
        assert found is not None
        return found

    def end(self, broker_id: int) -> int:
        return self.partition(broker_id).log.log_end_offset

    def high_watermark(self, broker_id: int) -> int:
        return self.partition(broker_id).high_watermark

    def batches(self, broker_id: int) -> list[tuple[int, int]]:
        """(first offset, leader epoch) of every batch."""
        return [(h.base_offset, h.leader_epoch) for h in self.headers(broker_id)]

    def headers(self, broker_id: int) -> list[BatchHeader]:
        log = self.partition(broker_id).log
        return list(log.batch_headers()) if log.files.segments else []

    def data(self, broker_id: int) -> bytes:
        """Every byte of the log, in order."""
        log = self.partition(broker_id).log
        return b"".join(s.file.read(0, s.file.size_bytes) for s in log.files.segments)

    def epochs(self, broker_id: int) -> list[tuple[int, int]]:
        return self.partition(broker_id).log.epochs.entries

    def produce(self, broker_id: int, value: str, *, acks: int = -1, **more: Any) -> SentRequest:
        """Ask, and let everything run that can."""
        asked = self.client(broker_id).produce(value, acks=acks, **more)
        self.run()
        return asked
