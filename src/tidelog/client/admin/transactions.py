"""Questions about transactions: list and describe them, find open ones, and abort one that hangs.

Each transactional id is described by its coordinator, and every broker lists those that it
coordinates. What a transaction has left open in a partition is known to its replicas: a transaction
*hangs* if its coordinator will never write the marker that they wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.client.admin.question import (
    AdminOutcome,
    LeaderOf,
    Question,
    RetryLater,
    TheBroker,
    TransactionCoordinatorOf,
    needs_another_try,
)
from tidelog.client.group.coordinator_channel import COORDINATOR_ERRORS, TRANSACTION_KEY_TYPE
from tidelog.core.model.errors import RETRIABLE, ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from tidelog.core.wire.messages.api_65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from tidelog.core.wire.messages.api_66_list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tidelog.core.wire.schema import Message

FIRST_COORDINATOR_EPOCH = 0
"""For a producer that no marker was written for yet: no coordinator has a smaller epoch."""
_DURATION_FROM = 1
_PATTERN_FROM = 2
_BATCHED_LOOKUP_FROM = 4
_ABORT_AGAIN = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class TransactionListing(NamedTuple):
    """A transactional id as a list shows it."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionList(NamedTuple):
    """Those of one broker, or why not; states of the filter that it does not know."""

    error: ErrorCode
    transactions: tuple[TransactionListing, ...]
    unknown_states: tuple[str, ...] = ()


class TransactionDescription(NamedTuple):
    """A transactional id, or why it cannot be described."""

    error: ErrorCode
    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    """When its latest transaction began, on the coordinator's clock."""
    partitions: tuple[TopicPartition, ...]
    """Those that still wait for the end of the transaction."""


class OpenTransaction(NamedTuple):
    """What a producer has written to a partition since the last marker."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    """Of the producer's last marker here; None: it never had one."""
    start_offset: int
    last_timestamp_ms: int


class OpenTransactions(NamedTuple):
    """Those of several partitions, and the partitions of which nothing was learnt."""

    transactions: tuple[OpenTransaction, ...]
    refused: dict[TopicPartition, ErrorCode]


def list_transactions(
    *,
    broker_id: int,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int | None = None,
    id_pattern: str | None = None,
) -> Question[TransactionList]:
    """Those that this broker coordinates and that pass all filters."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        transactional_id_pattern=id_pattern,
    )
    if longer_than_ms is not None:
        request.duration_filter = longer_than_ms

    def read(answer: Message) -> TransactionList | RetryLater:
        assert isinstance(answer, ListTransactionsResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if error in COORDINATOR_ERRORS:
            return RetryLater(error)
        listed = tuple(
            TransactionListing(each.transactional_id, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        )
        return TransactionList(error, listed, tuple(answer.unknown_state_filters))

    version_min = None if longer_than_ms is None else _DURATION_FROM
    if id_pattern is not None:
        version_min = _PATTERN_FROM
    return Question(
        request=request, read=read, target=TheBroker(broker_id), version_min=version_min
    )


def describe_transaction(transactional_id: str) -> Question[TransactionDescription]:
    """By its coordinator."""

    def read(answer: Message) -> TransactionDescription | RetryLater:
        assert isinstance(answer, DescribeTransactionsResponse)
        state = answer.transaction_states[0]
        error = ErrorCode.from_wire(state.error_code)
        if error in COORDINATOR_ERRORS:
            return RetryLater(error)
        partitions = sorted(
            TopicPartition(topic.topic, index)
            for topic in state.topics
            for index in topic.partitions
        )
        return TransactionDescription(
            error,
            state.transactional_id,
            state.transaction_state,
            state.producer_id,
            state.producer_epoch,
            state.transaction_timeout_ms,
            _known(state.transaction_start_time_ms),
            tuple(partitions),
        )

    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    target = TransactionCoordinatorOf(transactional_id)
    return Question(request=request, read=read, target=target)


def find_transaction_coordinators(
    transactional_ids: Iterable[str],
) -> Question[dict[str, int | ErrorCode]]:
    """The broker that coordinates each of them, or why there is none."""
    keys = list(transactional_ids)

    def read(answer: Message) -> dict[str, int | ErrorCode] | RetryLater:
        assert isinstance(answer, FindCoordinatorResponse)
        found: dict[str, int | ErrorCode] = {}
        for each in answer.coordinators:
            error = ErrorCode.from_wire(each.error_code)
            if error in RETRIABLE:
                return RetryLater(error)
            found[each.key] = each.node_id if error == ErrorCode.NONE else error
        return found

    request = FindCoordinatorRequest(key_type=TRANSACTION_KEY_TYPE, coordinator_keys=keys)
    return Question(request=request, read=read, version_min=_BATCHED_LOOKUP_FROM)


def open_transactions(
    partitions: Iterable[TopicPartition], *, target: LeaderOf | TheBroker
) -> Question[OpenTransactions]:
    """As this replica of the partitions knows them."""
    topics: dict[str, TopicRequest] = {}
    for each in partitions:
        topic = topics.setdefault(each.topic, TopicRequest(name=each.topic))
        topic.partition_indexes.append(each.index)
    is_leader = isinstance(target, LeaderOf)

    def read(answer: Message) -> OpenTransactions | RetryLater:
        assert isinstance(answer, DescribeProducersResponse)
        found: list[OpenTransaction] = []
        refused: dict[TopicPartition, ErrorCode] = {}
        for topic in answer.topics:
            for entry in topic.partitions:
                name = TopicPartition(topic.name, entry.partition_index)
                error = ErrorCode.from_wire(entry.error_code)
                if needs_another_try(error, of_leader=is_leader):
                    return RetryLater(error)
                if error != ErrorCode.NONE:
                    refused[name] = error
                found += [
                    OpenTransaction(
                        name,
                        each.producer_id,
                        each.producer_epoch,
                        _known(each.coordinator_epoch),
                        each.current_txn_start_offset,
                        each.last_timestamp,
                    )
                    for each in entry.active_producers
                    if each.current_txn_start_offset >= 0
                ]
        return OpenTransactions(tuple(found), refused)

    request = DescribeProducersRequest(topics=list(topics.values()))
    return Question(request=request, read=read, target=target)


def abort_transaction(
    partition: TopicPartition,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int | None,
) -> Question[AdminOutcome]:
    """Write the abort marker to this partition, whatever the coordinator thinks."""
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.index])],
        coordinator_epoch=max(FIRST_COORDINATOR_EPOCH, coordinator_epoch or 0),
    )

    def read(answer: Message) -> AdminOutcome | RetryLater:
        assert isinstance(answer, WriteTxnMarkersResponse)
        error = ErrorCode.from_wire(answer.markers[0].topics[0].partitions[0].error_code)
        return RetryLater(error) if error in _ABORT_AGAIN else AdminOutcome(error)

    request = WriteTxnMarkersRequest(markers=[marker])
    return Question(request=request, read=read, target=LeaderOf(partition))


def older_than(
    transactions: Iterable[OpenTransaction], timeout_ms: int, *, wall_ms: int
) -> list[OpenTransaction]:
    """Those whose producer has written nothing for longer than this."""
    return [each for each in transactions if wall_ms - each.last_timestamp_ms > timeout_ms]


def hanging_transactions(
    transactions: Iterable[OpenTransaction],
    *,
    ids_by_producer: Mapping[int, str],
    described: Mapping[str, TransactionDescription],
) -> list[OpenTransaction]:
    """Those for which no coordinator will write a marker.

    Either no transactional id has this producer, or the partition is none of those that its
    coordinator still has to write to.
    """

    def is_expected(each: OpenTransaction) -> bool:
        transactional_id = ids_by_producer.get(each.producer_id)
        description = None if transactional_id is None else described.get(transactional_id)
        return description is not None and each.partition in description.partitions

    return [each for each in transactions if not is_expected(each)]


def _known(number: int) -> int | None:
    return None if number < 0 else number
