"""A case's conversation with a cluster: requests say which node they go to.

A place is a node's id, `(id, anything)` for one more connection to it, or `controller(id)`. What a
preparation asks without a place goes to the first node.

A case that is a generator has three acts: all nodes are there; after its first `yield` the node
`LEAVING` is stopped; after the second it is back. All such cases go through the acts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tests.golden.batches import batch
from tests.golden.broker import Connection
from tests.golden.cluster import FIRST_NODE, Cluster
from tests.golden.talk import Place, PreparationFailed, Talk, Topic, produce_fields
from tidelog.core.metadata.records import RegisterBrokerRecord, decode_record
from tidelog.core.wire.record_batch import batches
from tidelog.core.wire.records import iterate
from tidelog.core.wire.schema import Message

R = TypeVar("R", bound=Message)

NODES = (1, 2, 3)
LEAVING = 3
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"
MEBIBYTE = 1024 * 1024


def controller(node_id: int) -> Place:
    """A node in its office as a controller."""
    return ("controller", node_id)


class ClusterTalk(Talk):
    """A talk that knows its way between nodes."""

    def __init__(self, cluster: Cluster, case_name: str) -> None:
        super().__init__(cluster, case_name)
        self._cluster = cluster
        self._names.learn_topic_id(METADATA_TOPIC_ID, METADATA_TOPIC)

    # Preparations: not recorded, but they must work.

    def placed_topic(
        self, *placements: Sequence[int], short: str = "t", configs: dict[str, str] | None = None
    ) -> Topic:
        """A topic with these replicas for its partitions, in use everywhere when this returns."""
        name = self.name(short)
        assignments = [
            {"partition_index": index, "broker_ids": list(replicas)}
            for index, replicas in enumerate(placements)
        ]
        wish = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": assignments,
            "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
        }
        answer = self.quietly("CreateTopics", 7, topics=[wish], timeout_ms=60_000)
        made = answer["topics"][0]
        if made["error_code"] != 0:
            raise PreparationFailed(f"{name}: {made}")
        self._names.learn_topic_id(made["topic_id"], name)
        for index, replicas in enumerate(placements):
            self.wait_for_partition(name, index, leader=replicas[0], isr=replicas)
        return Topic(name, made["topic_id"])

    def fill_at(self, leader: int, topic: Topic, *values: str, partition: int = 0) -> None:
        """Append a batch for each value, and wait until every replica has it."""
        for value in values:
            fields = produce_fields(topic.name, batch(value), partition)
            answer = self.quietly("Produce", 9, on=(leader, "quiet"), **fields)
            code = answer["responses"][0]["partition_responses"][0]["error_code"]
            if code != 0:
                raise PreparationFailed(f"filling {topic.name}: error {code}")

    def wait_for_partition(
        self,
        name: str,
        partition: int,
        *,
        leader: int,
        isr: Sequence[int],
        nodes: Sequence[int] = NODES,
    ) -> None:
        """Until these nodes say so, and the leader serves."""

        def is_so() -> bool:
            return all(
                self._partition(name, partition, node) == (leader, sorted(isr)) for node in nodes
            ) and (leader < 0 or self._serves(name, partition, leader))

        self.wait_for(is_so, f"{name}-{partition} led by {leader} with {isr}")

    def wait_for_readers_at(self, node: int, topic: Topic, end_offset: int) -> None:
        """Until a replica lets readers see everything up to here."""
        asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": MEBIBYTE}
        fields = {"max_wait_ms": 0, "min_bytes": 0}
        topics = [{"topic": topic.name, "partitions": [asked]}]

        def sees() -> bool:
            answer = self.quietly("Fetch", 12, on=(node, "quiet"), topics=topics, **fields)
            found = answer["responses"][0]["partitions"][0]
            return bool(found["error_code"] == 0 and found["high_watermark"] >= end_offset)

        self.wait_for(sees, f"{topic.name} readable up to {end_offset} at {node}")

    def active_controller(self) -> int:
        """The node that leads the quorum."""
        partition = self._quorum()
        leader: int = partition["leader_id"]
        return leader

    def standby_controller(self) -> int:
        """A voter that does not lead."""
        leader = self.active_controller()
        return next(node for node in NODES if node != leader)

    def quorum_epoch(self) -> int:
        leader_epoch: int = self._quorum()["leader_epoch"]
        return leader_epoch

    def cluster_id(self) -> str:
        cluster_id: str = self.quietly("Metadata", 9, topics=[])["cluster_id"]
        return cluster_id

    def broker_epoch(self, node: int) -> int:
        """The epoch of a node's last registration."""
        return self.registration(node).broker_epoch

    def registration(self, node: int) -> RegisterBrokerRecord:
        """A node's last registration, read from the metadata log itself."""
        found = [
            each for each in self.metadata_records(RegisterBrokerRecord) if each.broker_id == node
        ]
        if not found:
            raise PreparationFailed(f"node {node} is not in the metadata log")
        return found[-1]

    def metadata_records(self, kind: type[R]) -> list[R]:
        """All records of one kind in the metadata log, as its leader has it."""
        asked = {
            "partition": 0,
            "current_leader_epoch": self.quorum_epoch(),
            "fetch_offset": 0,
            "last_fetched_epoch": 0,
            "partition_max_bytes": 8 * MEBIBYTE,
        }
        topics = [{"topic_id": METADATA_TOPIC_ID, "partitions": [asked]}]
        answer = self.quietly(
            "Fetch", 17, on=controller(self.active_controller()), topics=topics, max_wait_ms=0
        )
        log = answer["responses"][0]["partitions"][0]["records"]
        found: list[R] = []
        for position, header in batches(log):
            for record in () if header.is_control else iterate(log, position):
                if record.value and record.value[1] == kind.api_key:
                    decoded = decode_record(record.value)
                    assert isinstance(decoded, kind)
                    found.append(decoded)
        return found

    def wait_for_brokers(self, *brokers: int) -> None:
        """Until these, and only these, say that these are there."""

        def is_so() -> bool:
            lists = [
                self.quietly("Metadata", 9, on=(node, "quiet"), topics=[])["brokers"]
                for node in brokers
            ]
            return all({b["node_id"] for b in found} == set(brokers) for found in lists)

        self.wait_for(is_so, f"the brokers {brokers}")

    def wait_until_forgotten(self, broker: int, *, nodes: Sequence[int]) -> None:
        """Until these do not list it any more, not even among the fenced ones."""
        fields = {"include_fenced_brokers": True}

        def is_so() -> bool:
            lists = [
                self.quietly("DescribeCluster", 2, on=(node, "quiet"), **fields)["brokers"]
                for node in nodes
            ]
            return all(broker not in {b["broker_id"] for b in found} for found in lists)

        self.wait_for(is_so, f"broker {broker} to be forgotten")

    def stop_node(self, node: int) -> None:
        """Gracefully; the others know it when this returns."""
        for place in [p for p in self._connections if _node_of(p)[0] == node]:
            self._connections.pop(place).close()
        self._cluster.stop(node)
        self.wait_for_brokers(*(other for other in NODES if other != node))

    def start_node(self, node: int) -> None:
        """Start it again; everybody knows it when this returns."""
        self._cluster.start(node)
        self.wait_for_brokers(*NODES)

    # Below here: how.

    def _quorum(self) -> Any:
        topics = [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]
        answer = self.quietly("DescribeQuorum", 0, topics=topics)
        return answer["topics"][0]["partitions"][0]

    def _partition(self, name: str, partition: int, node: int) -> tuple[int, list[int]] | None:
        asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        topic = self.quietly("Metadata", 9, on=(node, "quiet"), **asked)["topics"][0]
        for found in topic["partitions"]:
            if found["partition_index"] == partition:
                return found["leader_id"], sorted(found["isr_nodes"])
        return None

    def _serves(self, name: str, partition: int, leader: int) -> bool:
        asked = [{"partition_index": partition, "timestamp": -1}]
        topics = [{"name": name, "partitions": asked}]
        fields = {"replica_id": -1, "topics": topics}
        answer = self.quietly("ListOffsets", 7, on=(leader, "quiet"), **fields)
        return bool(answer["topics"][0]["partitions"][0]["error_code"] == 0)

    def _connect(self, on: Place) -> Connection:
        node, as_controller = _node_of(on)
        return self._cluster.connect_to(node or FIRST_NODE, as_controller=as_controller)


def _node_of(place: Place) -> tuple[int, bool]:
    match place:
        case ("controller", int(node)):
            return node, True
        case (int(node), _):
            return node, False
        case int(node):
            return node, False
    raise AssertionError(f"{place!r} is no place in a cluster")
