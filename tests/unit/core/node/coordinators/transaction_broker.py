"""A lone broker and words for what transactional producers of both protocols ask it."""

from __future__ import annotations

from typing import Any

from tests.unit.core.node.coordinators.lone_broker import LoneBroker
from tidelog.client.partition_requests import fetch_answer, fetch_request
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tidelog.core.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tidelog.core.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest
from tidelog.core.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tidelog.core.wire.records import NewRecord, build

ID = "tx"
TOPIC = "orders"
FEW = {"transaction.state.log.num.partitions": "2"}
TRANSACTION_KEY = 1
READ_COMMITTED = 1


class TransactionBroker(LoneBroker):
    """Has a topic `orders` of two partitions, and the coordinators are there."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        super().__init__({**FEW, **(settings or {})})
        self.create_topic(TOPIC)
        self.find_coordinator()
        self.ask(FindCoordinatorRequest(key=ID, key_type=TRANSACTION_KEY), 3)

    def init(
        self,
        transactional_id: str = ID,
        *,
        expected: ProducerIdAndEpoch | None = None,
        timeout_ms: int = 60_000,
        version: int = 5,
    ) -> Any:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        if expected is not None:
            request.producer_id, request.producer_epoch = expected
        return self.ask(request, version)

    def producer(self, transactional_id: str = ID) -> ProducerIdAndEpoch:
        """A new one, which fences the one before."""
        answer = self.init(transactional_id)
        assert answer.error_code == 0
        return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)

    def add(self, producer: ProducerIdAndEpoch, *indexes: int, version: int = 3) -> list[int]:
        """Partitions of `orders`; their error codes."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(indexes))],
        )
        answer = self.ask(request, version)
        (topic,) = answer.results_by_topic_v3_and_below
        return [each.partition_error_code for each in topic.results_by_partition]

    def produce_request(
        self, producer: ProducerIdAndEpoch, index: int, sequence: int, value: bytes, *, version: int
    ) -> ProduceRequest:
        batch = build(
            [NewRecord(value)],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=index, records=bytes(batch))
        topic = TopicProduceData(name=TOPIC, topic_id=self.topic_id(TOPIC), partition_data=[data])
        return ProduceRequest(transactional_id=ID, acks=-1, timeout_ms=1_000, topic_data=[topic])

    def produce(
        self,
        producer: ProducerIdAndEpoch,
        index: int = 0,
        sequence: int = 0,
        value: bytes = b"x",
        *,
        version: int = 11,
    ) -> int:
        """One record; the error code."""
        request = self.produce_request(producer, index, sequence, value, version=version)
        answer = self.ask(request, version)
        code: int = answer.responses[0].partition_responses[0].error_code
        return code

    def end(self, producer: ProducerIdAndEpoch, *, commit: bool = True, version: int = 4) -> Any:
        request = EndTxnRequest(
            transactional_id=ID,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=commit,
        )
        return self.ask(request, version)

    def add_offsets(self, producer: ProducerIdAndEpoch, group_id: str = "g") -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=ID,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group_id,
        )
        code: int = self.ask(request, 3).error_code
        return code

    def commit_offset(
        self,
        producer: ProducerIdAndEpoch,
        offset: int,
        *,
        topic: str = TOPIC,
        generation_id: int = -1,
        member_id: str = "",
        metadata: str = "",
        version: int = 3,
    ) -> int:
        """Of partition 0 for the group `g`, in the transaction."""
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id="g",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            generation_id=generation_id,
            member_id=member_id,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        code: int = self.ask(request, version).topics[0].partitions[0].error_code
        return code

    def fetch_offset(self, *, require_stable: bool = False) -> tuple[int, int]:
        """The committed offset of partition 0 and the error code."""
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id="g", topics=[topic])
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
        found = self.ask(request, 8).groups[0].topics[0].partitions[0]
        return found.committed_offset, found.error_code

    def fetch(self, index: int = 0) -> Any:
        """What a read_committed consumer is answered."""
        request = fetch_request(TOPIC, index, 0)
        request.isolation_level = READ_COMMITTED
        return fetch_answer(self.ask(request, 11))

    def last_stable_offset(self, index: int = 0) -> int:
        partition = self.node.partition(TOPIC, index)
        assert partition is not None
        return partition.log.last_stable_offset
