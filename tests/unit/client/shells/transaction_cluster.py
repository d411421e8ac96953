"""An admin over two brokers and their transactions, which answers by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from tidelog.client.admin.admin import Failed
from tidelog.client.admin.question import (
    AnyNode,
    LeaderOf,
    Question,
    RetryLater,
    TheBroker,
    TransactionCoordinatorOf,
)
from tidelog.client.shells.blocking_clients import RequestFailed
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import api_03_metadata as metadata
from tidelog.core.wire.messages import api_10_find_coordinator as lookup
from tidelog.core.wire.messages import api_27_write_txn_markers as marking
from tidelog.core.wire.messages import api_60_describe_cluster as members
from tidelog.core.wire.messages import api_61_describe_producers as activity
from tidelog.core.wire.messages import api_65_describe_transactions as description
from tidelog.core.wire.messages import api_66_list_transactions as listing

BROKERS = (1, 2)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
LEADERS = {P0: 1, P1: 2}


@dataclass
class TransactionCluster:
    """Topic `orders` has two partitions, led by brokers 1 and 2 and replicated on both."""

    coordinators: dict[str, int] = field(default_factory=dict)
    states: dict[str, description.TransactionState] = field(default_factory=dict)
    producers: dict[TopicPartition, list[activity.ProducerState]] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    list_error: ErrorCode = ErrorCode.NONE
    unknown_states: list[str] = field(default_factory=list)
    marker_error: ErrorCode = ErrorCode.NONE
    markers: list[marking.WritableTxnMarker] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)

    def begin(
        self, name: str, producer_id: int, *partitions: TopicPartition, coordinator: int = 1
    ) -> None:
        """The coordinator knows an open transaction with these partitions."""
        self.coordinators[name] = coordinator
        self.states[name] = description.TransactionState(
            transactional_id=name,
            transaction_state="Ongoing",
            transaction_timeout_ms=60_000,
            transaction_start_time_ms=1_000,
            producer_id=producer_id,
            producer_epoch=3,
            topics=[
                description.TopicData(topic=each.topic, partitions=[each.index])
                for each in partitions
            ],
        )

    def write(
        self, partition: TopicPartition, producer_id: int, *, start_offset: int, at_ms: int
    ) -> None:
        """The partition has records of an open transaction of this producer."""
        state = activity.ProducerState(
            producer_id=producer_id,
            producer_epoch=3,
            last_timestamp=at_ms,
            coordinator_epoch=-1,
            current_txn_start_offset=start_offset,
        )
        self.producers.setdefault(partition, []).append(state)

    # As an admin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def ask(self, question: Question[Any], *, timeout_s: float) -> Any:
        result = self.ask_each({None: question}, timeout_s=timeout_s)[None]
        if isinstance(result, Failed):
            raise RequestFailed(result.reason)
        return result

    def ask_each(
        self, questions: Mapping[Any, Question[Any]], *, timeout_s: float
    ) -> dict[Any, Any]:
        return {key: self._ask(each) for key, each in questions.items()}

    def _ask(self, question: Question[Any]) -> Any:
        target = question.target
        if isinstance(target, LeaderOf):
            broker_id = LEADERS[target.partition]
        elif isinstance(target, TransactionCoordinatorOf):
            broker_id = self.coordinators.get(target.transactional_id, 1)
        else:
            broker_id = 1 if target == AnyNode() else cast(TheBroker, target).broker_id
        if broker_id in self.silent:
            return Failed("silent")
        self.requests.append(question.request)
        result = question.read(self._answer(question.request, broker_id))
        assert not isinstance(result, RetryLater)
        return result

    def _answer(self, request: Any, broker_id: int) -> Any:
        match request:
            case members.DescribeClusterRequest():
                brokers = [members.DescribeClusterBroker(broker_id=each) for each in BROKERS]
                return members.DescribeClusterResponse(brokers=brokers)
            case metadata.MetadataRequest():
                return _metadata(request)
            case lookup.FindCoordinatorRequest():
                return lookup.FindCoordinatorResponse(
                    coordinators=[
                        lookup.Coordinator(key=key, node_id=self.coordinators.get(key, 1))
                        for key in request.coordinator_keys
                    ]
                )
            case listing.ListTransactionsRequest():
                return self._list(request, broker_id)
            case description.DescribeTransactionsRequest():
                return self._describe(request.transactional_ids[0])
            case activity.DescribeProducersRequest():
                return self._producers(request)
        assert isinstance(request, marking.WriteTxnMarkersRequest)
        return self._mark(request)

    def _list(self, request: listing.ListTransactionsRequest, broker_id: int) -> Any:
        return listing.ListTransactionsResponse(
            error_code=self.list_error,
            unknown_state_filters=self.unknown_states,
            transaction_states=[
                listing.ListedTransaction(
                    transactional_id=name,
                    producer_id=state.producer_id,
                    transaction_state=state.transaction_state,
                )
                for name, state in self.states.items()
                if self.coordinators[name] == broker_id
                and (
                    not request.producer_id_filters
                    or state.producer_id in request.producer_id_filters
                )
            ],
        )

    def _describe(self, name: str) -> description.DescribeTransactionsResponse:
        missing = description.TransactionState(
            transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )
        state = self.states.get(name, missing)
        return description.DescribeTransactionsResponse(transaction_states=[state])

    def _producers(self, request: activity.DescribeProducersRequest) -> Any:
        topics = [
            activity.TopicResponse(
                name=topic.name,
                partitions=[
                    activity.PartitionResponse(
                        partition_index=index,
                        active_producers=self.producers.get(TopicPartition(topic.name, index), []),
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
        return activity.DescribeProducersResponse(topics=topics)

    def _mark(self, request: marking.WriteTxnMarkersRequest) -> Any:
        [marker] = request.markers
        [topic] = marker.topics
        self.markers.append(marker)
        partition = marking.WritableTxnMarkerPartitionResult(
            partition_index=topic.partition_indexes[0], error_code=self.marker_error
        )
        result = marking.WritableTxnMarkerTopicResult(name=topic.name, partitions=[partition])
        return marking.WriteTxnMarkersResponse(
            markers=[
                marking.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[result])
            ]
        )


def _metadata(request: metadata.MetadataRequest) -> metadata.MetadataResponse:
    names = ["orders"] if request.topics is None else [str(each.name) for each in request.topics]
    orders = [
        metadata.MetadataResponsePartition(
            partition_index=name.index,
            leader_id=leader,
            replica_nodes=[*BROKERS],
            isr_nodes=[*BROKERS],
        )
        for name, leader in LEADERS.items()
    ]
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return metadata.MetadataResponse(
        brokers=[metadata.MetadataResponseBroker(node_id=1, host="b1", port=1)],
        topics=[
            metadata.MetadataResponseTopic(name=name, partitions=orders)
            if name == "orders"
            else metadata.MetadataResponseTopic(name=name, error_code=missing)
            for name in names
        ],
    )
