"""A transaction coordinator and a group coordinator for the fake cluster, in the classic protocol.

One transactional id, one group. What Kafka decides asynchronously (the markers of a transaction) is
decided at once here, unless `delay` says how often somebody has to ask before it is.
"""

from __future__ import annotations

from typing import Any

from tests.unit.client.fake_cluster import PORT, FakeCluster
from tests.unit.client.fake_log import FakePartition, ProducerMemory
from tidelog.core.model.errors import ErrorCode as E
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages import api_09_offset_fetch as offset_fetch
from tidelog.core.wire.messages import api_24_add_partitions_to_txn as add_partitions
from tidelog.core.wire.messages import api_28_txn_offset_commit as txn_offset_commit
from tidelog.core.wire.messages import api_32_describe_configs as describe_configs
from tidelog.core.wire.messages import api_61_describe_producers as describe_producers
from tidelog.core.wire.messages import api_65_describe_transactions as describe_transactions
from tidelog.core.wire.messages.api_00_produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tidelog.core.wire.messages.api_10_find_coordinator import (
    Coordinator,
    FindCoordinatorResponse,
)
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnResponse
from tidelog.core.wire.messages.api_26_end_txn import EndTxnResponse
from tidelog.core.wire.record_batch import CONTROL_BIT, read_header, rebase
from tidelog.core.wire.records import NewRecord, build, iterate
from tidelog.core.wire.schema import Message

OFFSETS = TopicPartition("__consumer_offsets", 7)
COMMIT_KEY, ABORT_KEY = bytes((0, 0, 0, 1)), bytes((0, 0, 0, 0))
SETTINGS = {
    "transaction.partition.verification.enable": "true",
    "transaction.max.timeout.ms": "900000",
    "offsets.retention.minutes": "10080",
}


class FakeCoordinator:
    """Answers what the sink asks; `FakeCluster.rules` has it as a rule."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.nodes = {0: 2, 1: 1}
        """By kind: where the group and the transactional id are coordinated."""
        self.settings = dict(SETTINGS)
        self.producer_id = 4_000
        self.producer_epoch = -1
        self.former_epoch = -1
        self.state = "Empty"
        self.partitions: set[TopicPartition] = set()
        self.marker: tuple[TopicPartition, int, str] | None = None
        self.pending_marker: tuple[TopicPartition, int, str] | None = None
        self.delay = 0
        self._to_wait = 0
        self._decided: bool | None = None
        for key in (9, 10, 24, 25, 26, 28, 32, 61, 65):
            versions = MESSAGES[key][0].versions
            cluster.api_versions[key] = (versions[0], versions[-1])
        cluster.rules.append(self.answer)

    def answer(self, broker_id: int, request: Any) -> Message | None:
        known = {
            0: self._produce,
            9: self._offset_fetch,
            10: self._find_coordinator,
            22: self._init_producer_id,
            24: self._add_partitions,
            25: self._add_offsets,
            26: self._end,
            28: self._txn_offset_commit,
            32: self._describe_configs,
            61: self._describe_producers,
            65: self._describe_transactions,
        }
        handle = known.get(request.api_key)
        return None if handle is None else handle(broker_id, request)

    # What a reader sees

    def committed(self, name: str) -> list[str]:
        """The values of a partition that a reader of committed data gets."""
        topic, _, index = name.rpartition("-")
        partition = self.cluster.partitions[TopicPartition(topic, int(index))]
        open_batches: dict[int, list[list[str]]] = {}
        seen: list[str] = []
        for batch in partition.log:
            header = read_header(batch)
            if header.attributes & CONTROL_BIT:
                (record,) = iterate(batch)
                ended = open_batches.pop(header.producer_id, [])
                if record.key == COMMIT_KEY:
                    seen.extend(value for values in ended for value in values)
                continue
            values = [(record.value or b"").decode() for record in iterate(batch)]
            open_batches.setdefault(header.producer_id, []).append(values)
        return seen

    # Coordinators

    def _find_coordinator(self, broker_id: int, request: Any) -> Message:
        node = self.cluster.brokers[self.nodes[request.key_type]]
        found = Coordinator(
            key=request.coordinator_keys[0], node_id=node.id, host=node.host, port=PORT
        )
        return FindCoordinatorResponse(coordinators=[found])

    def _is_elsewhere(self, kind: int, broker_id: int) -> bool:
        return self.nodes[kind] != broker_id

    def _is_busy(self) -> bool:
        """The markers of a decided transaction are being written."""
        if self._decided is None:
            return False
        self._to_wait -= 1
        if self._to_wait >= 0:
            return True
        self._complete()
        return False

    # Transactions

    def _init_producer_id(self, broker_id: int, request: Any) -> Message:
        error = self._identify(broker_id, request)
        if error != E.NONE:
            return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
        return InitProducerIdResponse(
            producer_id=self.producer_id, producer_epoch=self.producer_epoch
        )

    def _identify(self, broker_id: int, request: Any) -> E:
        if self._is_elsewhere(1, broker_id):
            return E.NOT_COORDINATOR
        if request.transaction_timeout_ms > int(self.settings["transaction.max.timeout.ms"]):
            return E.INVALID_TRANSACTION_TIMEOUT
        if self._is_busy():
            return E.CONCURRENT_TRANSACTIONS
        if request.producer_id not in (-1, self.producer_id):
            return E.PRODUCER_FENCED
        if self.state == "Ongoing":
            # Whatever epoch is claimed: Kafka looks at that only when nothing is open.
            self.fence()
            return E.CONCURRENT_TRANSACTIONS
        if request.producer_epoch == -1:
            self.former_epoch = -1
        elif request.producer_epoch == self.producer_epoch:
            self.former_epoch = self.producer_epoch
        elif request.producer_epoch == self.former_epoch:
            return E.NONE
        else:
            return E.PRODUCER_FENCED
        self.producer_epoch += 1
        self.state = "Empty"
        return E.NONE

    def fence(self) -> None:
        """Abort what is open under a newer epoch, as a takeover or a timeout does."""
        self.producer_epoch += 1
        self.former_epoch = -1
        self._decide(commit=False)

    def _check(self, broker_id: int, producer_id: int, producer_epoch: int) -> E:
        if self._is_elsewhere(1, broker_id):
            return E.NOT_COORDINATOR
        if producer_id != self.producer_id:
            return E.INVALID_PRODUCER_ID_MAPPING
        if producer_epoch != self.producer_epoch:
            return E.PRODUCER_FENCED
        return E.CONCURRENT_TRANSACTIONS if self._is_busy() else E.NONE

    def _add_partitions(self, broker_id: int, request: Any) -> Message:
        error = self._check(
            broker_id, request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        )
        results = []
        for topic in request.v3_and_below_topics:
            answers = []
            for index in topic.partitions:
                answers.append(
                    add_partitions.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=error
                    )
                )
                if error == E.NONE:
                    self.state = "Ongoing"
                    self.partitions.add(TopicPartition(topic.name, index))
            results.append(
                add_partitions.AddPartitionsToTxnTopicResult(
                    name=topic.name, results_by_partition=answers
                )
            )
        return add_partitions.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)

    def _add_offsets(self, broker_id: int, request: Any) -> Message:
        error = self._check(broker_id, request.producer_id, request.producer_epoch)
        if error == E.NONE:
            self.state = "Ongoing"
            self.partitions.add(OFFSETS)
        return AddOffsetsToTxnResponse(error_code=error)

    def _end(self, broker_id: int, request: Any) -> Message:
        error = self._check(broker_id, request.producer_id, request.producer_epoch)
        if error == E.NONE:
            wanted = "CompleteCommit" if request.committed else "CompleteAbort"
            if self.state == "Ongoing":
                self._decide(commit=request.committed)
            elif self.state != wanted:
                error = E.INVALID_TXN_STATE
        return EndTxnResponse(error_code=error)

    def _decide(self, *, commit: bool) -> None:
        self._decided = commit
        self._to_wait = self.delay
        if self.delay == 0:
            self._complete()

    def _complete(self) -> None:
        commit, self._decided = self._decided, None
        for each in sorted(self.partitions - {OFFSETS}):
            self._mark(self.cluster.partitions[each], commit=bool(commit))
        if self.pending_marker is not None and commit:
            self.marker = self.pending_marker
        self.pending_marker = None
        self.partitions.clear()
        self.state = "CompleteCommit" if commit else "CompleteAbort"

    def _mark(self, partition: FakePartition, *, commit: bool) -> None:
        record = NewRecord(b"\0\0\0\0\0\0", key=COMMIT_KEY if commit else ABORT_KEY)
        batch = build(
            [record],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transactional=True,
            control=True,
        )
        rebase(batch, 0, base_offset=partition.end_offset, leader_epoch=partition.leader_epoch)
        partition.log.append(batch)
        memory = partition.producers.get(self.producer_id)
        if memory is None or memory.producer_epoch < self.producer_epoch:
            partition.producers[self.producer_id] = ProducerMemory(self.producer_epoch)

    def _describe_transactions(self, broker_id: int, request: Any) -> Message:
        state = describe_transactions.TransactionState(
            transactional_id=request.transactional_ids[0],
            transaction_state=self.state,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
        )
        state.error_code = E.NOT_COORDINATOR if self._is_elsewhere(1, broker_id) else E.NONE
        for each in sorted(self.partitions):
            state.topics.append(
                describe_transactions.TopicData(topic=each.topic, partitions=[each.index])
            )
        return describe_transactions.DescribeTransactionsResponse(transaction_states=[state])

    # The group

    def _txn_offset_commit(self, broker_id: int, request: Any) -> Message:
        error = E.NONE
        if self._is_elsewhere(0, broker_id):
            error = E.NOT_COORDINATOR
        elif request.producer_epoch < self.producer_epoch:
            error = E.INVALID_PRODUCER_EPOCH
        elif OFFSETS not in self.partitions:
            error = E.INVALID_TXN_STATE
        (topic,) = request.topics
        (asked,) = topic.partitions
        if error == E.NONE:
            partition = TopicPartition(topic.name, asked.partition_index)
            self.pending_marker = (partition, asked.committed_offset, asked.committed_metadata)
        entry = txn_offset_commit.TxnOffsetCommitResponsePartition(
            partition_index=asked.partition_index, error_code=error
        )
        answer = txn_offset_commit.TxnOffsetCommitResponseTopic(name=topic.name, partitions=[entry])
        return txn_offset_commit.TxnOffsetCommitResponse(topics=[answer])

    def _offset_fetch(self, broker_id: int, request: Any) -> Message:
        group = offset_fetch.OffsetFetchResponseGroup(group_id=request.groups[0].group_id)
        if self._is_elsewhere(0, broker_id):
            group.error_code = E.NOT_COORDINATOR
        elif self.marker is not None or (
            # Whoever asks for all offsets hears nothing of a first one that is not decided yet.
            self.pending_marker is not None and request.groups[0].topics is not None
        ):
            group.topics = [self._stored_marker(request.require_stable)]
        return offset_fetch.OffsetFetchResponse(groups=[group])

    def _stored_marker(self, require_stable: bool) -> offset_fetch.OffsetFetchResponseTopics:
        known = self.marker or self.pending_marker
        assert known is not None
        partition, offset, text = known
        entry = offset_fetch.OffsetFetchResponsePartitions(
            partition_index=partition.index, committed_offset=offset, metadata=text
        )
        if self.pending_marker is not None:
            if require_stable:
                entry.error_code = E.UNSTABLE_OFFSET_COMMIT
                self._is_busy()
            if require_stable or self.marker is None:
                entry.committed_offset, entry.metadata = -1, ""
        return offset_fetch.OffsetFetchResponseTopics(name=partition.topic, partitions=[entry])

    # Partitions

    def _produce(self, broker_id: int, request: Any) -> Message | None:
        """As the fake cluster does, but only what belongs to the transaction."""
        topics = []
        for topic in request.topic_data:
            answers = []
            for each in topic.partition_data:
                partition = TopicPartition(topic.name, each.index)
                entry = PartitionProduceResponse(index=each.index, base_offset=-1)
                entry.error_code, entry.base_offset = self._append(
                    broker_id, partition, bytes(each.records)
                )
                answers.append(entry)
            topics.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
        return ProduceResponse(responses=topics)

    def _append(self, broker_id: int, name: TopicPartition, data: bytes) -> tuple[E, int]:
        partition = self.cluster.partitions[name]
        if partition.leader != broker_id:
            return E.NOT_LEADER_OR_FOLLOWER, -1
        header = read_header(data)
        assert header.is_transactional, "the sink writes nothing outside of transactions"
        memory = partition.producers.get(header.producer_id)
        if memory is not None and header.producer_epoch < memory.producer_epoch:
            return E.INVALID_PRODUCER_EPOCH, -1
        if header.producer_epoch != self.producer_epoch or name not in self.partitions:
            return E.INVALID_TXN_STATE, -1
        return partition.append(data)

    def _describe_producers(self, broker_id: int, request: Any) -> Message:
        (topic,) = request.topics
        (index,) = topic.partition_indexes
        partition = self.cluster.partitions[TopicPartition(topic.name, index)]
        entry = describe_producers.PartitionResponse(partition_index=index)
        if partition.leader != broker_id:
            entry.error_code = E.NOT_LEADER_OR_FOLLOWER
        for producer_id, memory in partition.producers.items():
            last = memory.written[-1] if memory.written else None
            entry.active_producers.append(
                describe_producers.ProducerState(
                    producer_id=producer_id,
                    producer_epoch=memory.producer_epoch,
                    last_sequence=-1 if last is None else last.first + last.records - 1,
                    current_txn_start_offset=_open_since(partition, producer_id),
                )
            )
        answer = describe_producers.TopicResponse(name=topic.name, partitions=[entry])
        return describe_producers.DescribeProducersResponse(topics=[answer])

    def _describe_configs(self, broker_id: int, request: Any) -> Message:
        (resource,) = request.resources
        entry = describe_configs.DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[
                describe_configs.DescribeConfigsResourceResult(name=name, value=value)
                for name, value in self.settings.items()
                if name in resource.configuration_keys
            ],
        )
        return describe_configs.DescribeConfigsResponse(results=[entry])


def _open_since(partition: FakePartition, producer_id: int) -> int:
    first = -1
    for batch in partition.log:
        header = read_header(batch)
        if header.producer_id == producer_id:
            if header.attributes & CONTROL_BIT:
                first = -1
            elif first < 0:
                first = header.base_offset
    return first
