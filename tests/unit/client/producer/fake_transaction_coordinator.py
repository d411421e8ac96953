"""A transaction coordinator for the fake cluster that speaks both protocols.

One transactional id, one group. Transactions are decided and completed at once, so that only the
answers that a test scripts say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.client import fake_answers
from tests.unit.client.fake_cluster import PORT, FakeCluster
from tidelog.core.model.errors import ErrorCode as E
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages import api_00_produce as produce
from tidelog.core.wire.messages import api_18_api_versions as api_versions
from tidelog.core.wire.messages import api_24_add_partitions_to_txn as add_partitions
from tidelog.core.wire.messages import api_28_txn_offset_commit as txn_offset_commit
from tidelog.core.wire.messages.api_10_find_coordinator import Coordinator, FindCoordinatorResponse
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnResponse
from tidelog.core.wire.messages.api_26_end_txn import EndTxnResponse
from tidelog.core.wire.record_batch import read_header
from tidelog.core.wire.records import iterate
from tidelog.core.wire.schema import Message

TRANSACTION_APIS = (10, 22, 24, 25, 26, 28)


class TransactionCoordinatorStub:
    """Answers what a transactional producer asks; the cluster has it as a rule."""

    def __init__(self, cluster: FakeCluster, *, level: int | None) -> None:
        self.cluster = cluster
        self.level = level
        """Of `transaction.version`; None: the cluster has no such feature."""
        self.features_epoch = 1
        self.nodes = {0: 2, 1: 1}
        """By key type: where the group and the transactional id are coordinated."""
        self.identity = ProducerIdAndEpoch(4_000, -1)
        self.former: ProducerIdAndEpoch | None = None
        self.partitions: set[TopicPartition] = set()
        self.groups: set[str] = set()
        self.pending_offsets: dict[TopicPartition, int] = {}
        self.offsets: dict[TopicPartition, int] = {}
        self.written: list[str] = []
        self.committed: list[str] = []
        self.ends: list[bool] = []
        """Every transaction that was decided: whether it was committed."""
        for key in TRANSACTION_APIS:
            versions = MESSAGES[key][0].versions
            cluster.api_versions[key] = (versions[0], versions[-1])
        cluster.rules.append(self.answer)

    @property
    def is_ongoing(self) -> bool:
        return bool(self.partitions or self.groups)

    def answer(self, broker_id: int, request: Any) -> Message | None:
        known = {
            0: self._produce,
            10: self._find_coordinator,
            18: self._api_versions,
            22: self._init_producer_id,
            24: self._add_partitions,
            25: self._add_offsets,
            26: self._end,
            28: self._commit_offsets,
        }
        handle: Callable[[int, Any], Message | None] | None = known.get(request.api_key)
        return None if handle is None else handle(broker_id, request)

    def take_over(self) -> None:
        """Another producer calls init_transactions."""
        self._decide(commit=False)
        self.former = None
        self.identity = ProducerIdAndEpoch(
            self.identity.producer_id, self.identity.producer_epoch + 1
        )

    def _api_versions(self, broker_id: int, request: Any) -> Message:
        broker = self.cluster.brokers[broker_id]
        answer = fake_answers.api_versions(self.cluster, broker, request)
        assert isinstance(answer, api_versions.ApiVersionsResponse)
        answer.finalized_features_epoch = self.features_epoch
        if self.level is not None:
            answer.finalized_features = [
                api_versions.FinalizedFeatureKey(
                    name="transaction.version", max_version_level=self.level, min_version_level=0
                )
            ]
        return answer

    def _find_coordinator(self, broker_id: int, request: Any) -> Message:
        node = self.cluster.brokers[self.nodes[request.key_type]]
        (key,) = request.coordinator_keys
        found = Coordinator(key=key, node_id=node.id, host=node.host, port=PORT)
        return FindCoordinatorResponse(coordinators=[found])

    def _version(self) -> int:
        return self.cluster.seen[-1].version

    def _check(self, broker_id: int, producer_id: int, producer_epoch: int) -> E:
        if self.nodes[1] != broker_id:
            return E.NOT_COORDINATOR
        if (producer_id, producer_epoch) != self.identity:
            return E.PRODUCER_FENCED
        return E.NONE

    def _init_producer_id(self, broker_id: int, request: Any) -> Message:
        claimed = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        if self.nodes[1] != broker_id:
            return refused(request, E.NOT_COORDINATOR)
        if claimed.producer_id >= 0 and claimed not in (self.identity, self.former):
            return refused(request, E.PRODUCER_FENCED)
        if claimed.producer_id < 0 or claimed == self.identity:
            self._decide(commit=False)
            self.former = self.identity
            self._next_epoch()
        return InitProducerIdResponse(
            producer_id=self.identity.producer_id, producer_epoch=self.identity.producer_epoch
        )

    def _next_epoch(self) -> None:
        self.identity = self.identity._replace(producer_epoch=self.identity.producer_epoch + 1)

    def _add_partitions(self, broker_id: int, request: Any) -> Message:
        error = self._check(
            broker_id, request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        )
        if error == E.NONE:
            for topic in request.v3_and_below_topics:
                self.partitions |= {TopicPartition(topic.name, each) for each in topic.partitions}
        return refused(request, error)

    def _add_offsets(self, broker_id: int, request: Any) -> Message:
        error = self._check(broker_id, request.producer_id, request.producer_epoch)
        if error == E.NONE:
            self.groups.add(request.group_id)
        return refused(request, error)

    def _commit_offsets(self, broker_id: int, request: Any) -> Message:
        error = E.NONE
        if self.nodes[0] != broker_id:
            error = E.NOT_COORDINATOR
        elif (request.producer_id, request.producer_epoch) != self.identity:
            error = E.INVALID_PRODUCER_EPOCH
        elif request.group_id not in self.groups and self._version() < 5:
            error = E.INVALID_TXN_STATE
        if error == E.NONE:
            self.groups.add(request.group_id)
            for topic in request.topics:
                for each in topic.partitions:
                    name = TopicPartition(topic.name, each.partition_index)
                    self.pending_offsets[name] = each.committed_offset
        return refused(request, error)

    def _end(self, broker_id: int, request: Any) -> Message:
        claimed = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        is_version_2 = self._version() >= 5
        if self.nodes[1] != broker_id:
            return refused(request, E.NOT_COORDINATOR)
        is_repeated = claimed == (self.former if is_version_2 else self.identity)
        if is_repeated and not self.is_ongoing and self.ends[-1:] == [request.committed]:
            pass
        elif claimed != self.identity:
            return refused(request, E.PRODUCER_FENCED)
        elif not self.is_ongoing and not (is_version_2 and not request.committed):
            return refused(request, E.INVALID_TXN_STATE)
        else:
            self._decide(commit=request.committed)
            if is_version_2:
                self.former = self.identity
                self._next_epoch()
        answer = EndTxnResponse()
        if is_version_2:
            answer.producer_id, answer.producer_epoch = self.identity
        return answer

    def _decide(self, *, commit: bool) -> None:
        if self.is_ongoing:
            self.ends.append(commit)
        if commit:
            self.committed += self.written
            self.offsets.update(self.pending_offsets)
        self.written.clear()
        self.pending_offsets.clear()
        self.partitions.clear()
        self.groups.clear()

    def _produce(self, broker_id: int, request: Any) -> Message | None:
        assert request.transactional_id == "payments"
        topic_ids = {id_: name for name, id_ in self.cluster.topics.items()}
        for topic in request.topic_data:
            name = topic_ids.get(bytes(topic.topic_id), topic.name)
            for each in topic.partition_data:
                partition = TopicPartition(name, each.index)
                header = read_header(each.records)
                assert header.is_transactional
                if (header.producer_id, header.producer_epoch) != self.identity:
                    return refused(request, E.INVALID_PRODUCER_EPOCH)
                if self._version() >= 12:
                    self.partitions.add(partition)
                elif partition not in self.partitions:
                    return refused(request, E.INVALID_TXN_STATE)
        answer = fake_answers.produce(self.cluster, self.cluster.brokers[broker_id], request)
        assert isinstance(answer, produce.ProduceResponse)
        if all(p.error_code == E.NONE for t in answer.responses for p in t.partition_responses):
            for topic in request.topic_data:
                for each in topic.partition_data:
                    values = [(record.value or b"").decode() for record in iterate(each.records)]
                    self.written += [value for value in values if value not in self.written]
        return answer


def refused(request: Any, error: E) -> Message:
    """The answer to a request that carries this code everywhere."""
    return _REFUSALS[request.api_key](request, error)


def _produce(request: Any, error: E) -> Message:
    topics = []
    for topic in request.topic_data:
        answers = [
            produce.PartitionProduceResponse(
                index=each.index, error_code=error, base_offset=-1, log_start_offset=0
            )
            for each in topic.partition_data
        ]
        topics.append(
            produce.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=answers
            )
        )
    return produce.ProduceResponse(responses=topics)


def _find_coordinator(request: Any, error: E) -> Message:
    (key,) = request.coordinator_keys
    found = Coordinator(key=key, error_code=error, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(coordinators=[found])


def _init_producer_id(request: Any, error: E) -> Message:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


def _add_partitions(request: Any, error: E) -> Message:
    topics = []
    for topic in request.v3_and_below_topics:
        answers = [
            add_partitions.AddPartitionsToTxnPartitionResult(
                partition_index=each, partition_error_code=error
            )
            for each in topic.partitions
        ]
        topics.append(
            add_partitions.AddPartitionsToTxnTopicResult(
                name=topic.name, results_by_partition=answers
            )
        )
    return add_partitions.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)


def _commit_offsets(request: Any, error: E) -> Message:
    topics = []
    for topic in request.topics:
        answers = [
            txn_offset_commit.TxnOffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=error
            )
            for each in topic.partitions
        ]
        topics.append(
            txn_offset_commit.TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers)
        )
    return txn_offset_commit.TxnOffsetCommitResponse(topics=topics)


_REFUSALS: dict[int, Callable[[Any, E], Message]] = {
    0: _produce,
    10: _find_coordinator,
    22: _init_producer_id,
    24: _add_partitions,
    25: lambda _, error: AddOffsetsToTxnResponse(error_code=error),
    26: lambda _, error: EndTxnResponse(error_code=error),
    28: _commit_offsets,
}
