"""Questions about transactions: whom they go to, and what becomes of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.admin.test_admin import Given
from tests.unit.client.fake_cluster import PORT, once
from tidelog.client.admin.admin import Failed
from tidelog.client.admin.question import AdminOutcome, LeaderOf, TheBroker
from tidelog.client.admin.transactions import (
    OpenTransaction,
    OpenTransactions,
    TransactionDescription,
    TransactionList,
    TransactionListing,
    abort_transaction,
    describe_transaction,
    find_transaction_coordinators,
    hanging_transactions,
    list_transactions,
    older_than,
    open_transactions,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages import api_27_write_txn_markers as markers
from tidelog.core.wire.messages import api_61_describe_producers as producers
from tidelog.core.wire.messages import api_65_describe_transactions as description
from tidelog.core.wire.messages import api_66_list_transactions as listing
from tidelog.core.wire.messages.api_10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
NONE = ErrorCode.NONE


class GivenTransactions(Given):
    """The coordinator of every transactional id is broker 2, until a test moves it."""

    def __init__(self) -> None:
        super().__init__()
        self.coordinator = 2
        for key in (10, 27, 61, 65, 66):
            versions = MESSAGES[key][0].versions
            self.cluster.api_versions[key] = (versions[0], versions[-1])
        self.cluster.rules.append(self._find)

    def _find(self, broker_id: int, request: Any) -> Any:
        if not isinstance(request, FindCoordinatorRequest):
            return None
        assert request.key_type == 1, "not the coordinator of a group"
        node = self.coordinator
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=node, host=f"b{node}", port=PORT)
                for key in request.coordinator_keys
            ]
        )

    def seen(self, api: Any) -> list[int]:
        return [each.broker_id for each in self.cluster.requests(api)]


def described(error: ErrorCode = NONE, **fields: Any) -> description.DescribeTransactionsResponse:
    state = description.TransactionState(transactional_id="t", error_code=error, **fields)
    return description.DescribeTransactionsResponse(transaction_states=[state])


def marked(error: ErrorCode) -> markers.WriteTxnMarkersResponse:
    partition = markers.WritableTxnMarkerPartitionResult(partition_index=0, error_code=error)
    topic = markers.WritableTxnMarkerTopicResult(name="orders", partitions=[partition])
    result = markers.WritableTxnMarkerResult(producer_id=7, topics=[topic])
    return markers.WriteTxnMarkersResponse(markers=[result])


# List


def test_every_broker_lists_its_own() -> None:
    given = GivenTransactions()
    listed = listing.ListedTransaction(
        transactional_id="t", producer_id=7, transaction_state="Ongoing"
    )
    given.says(
        listing.ListTransactionsResponse(transaction_states=[listed], unknown_state_filters=["x"])
    )
    question = list_transactions(
        broker_id=3, states=["Ongoing", "x"], producer_ids=[7], longer_than_ms=5, id_pattern="t.*"
    )

    transaction = TransactionListing("t", 7, "Ongoing")
    assert given.ask(question) == TransactionList(NONE, (transaction,), ("x",))
    [seen] = given.cluster.requests(listing.ListTransactionsRequest)
    assert (seen.broker_id, seen.version) == (3, 2)
    assert seen.request == listing.ListTransactionsRequest(
        state_filters=["Ongoing", "x"],
        producer_id_filters=[7],
        duration_filter=5,
        transactional_id_pattern="t.*",
    )


def test_a_coordinator_that_loads_is_asked_again_and_a_refusal_is_the_answer() -> None:
    given = GivenTransactions()
    loading = listing.ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    given.cluster.rules.append(once(lambda _, request: loading if request.api_key == 66 else None))
    refusal = ErrorCode.INVALID_REGULAR_EXPRESSION
    given.says(listing.ListTransactionsResponse(error_code=refusal))

    assert given.ask(list_transactions(broker_id=1)) == TransactionList(refusal, ())
    assert given.seen(listing.ListTransactionsRequest) == [1, 1]


@pytest.mark.parametrize(("newest", "longer_than_ms", "id_pattern"), [(0, 5, None), (1, None, "t")])
def test_an_old_broker_cannot_filter(
    newest: int, longer_than_ms: int | None, id_pattern: str | None
) -> None:
    given = GivenTransactions()
    given.cluster.api_versions[66] = (0, newest)
    given.says(listing.ListTransactionsResponse())

    assert given.ask(list_transactions(broker_id=1)) == TransactionList(NONE, ())
    question = list_transactions(broker_id=1, longer_than_ms=longer_than_ms, id_pattern=id_pattern)
    assert given.ask(question).is_unsupported


# Describe


def test_the_coordinator_describes() -> None:
    given = GivenTransactions()
    given.says(
        described(
            transaction_state="Ongoing",
            transaction_timeout_ms=60_000,
            transaction_start_time_ms=1_000,
            producer_id=7,
            producer_epoch=3,
            topics=[description.TopicData(topic="orders", partitions=[1, 0])],
        )
    )

    assert given.ask(describe_transaction("t")) == TransactionDescription(
        NONE, "t", "Ongoing", 7, 3, 60_000, 1_000, (P0, P1)
    )
    assert given.seen(description.DescribeTransactionsRequest) == [2]


def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    given = GivenTransactions()

    def answer(broker_id: int, request: Any) -> Any:
        if request.api_key != 65:
            return None
        given.coordinator = 3
        missing = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return described(missing if broker_id == 3 else ErrorCode.NOT_COORDINATOR)

    given.cluster.rules.append(answer)
    found = given.ask(describe_transaction("t"))
    assert found.error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert given.seen(description.DescribeTransactionsRequest) == [2, 3]


def test_a_transactional_id_without_a_start_has_none() -> None:
    given = GivenTransactions()
    given.says(described(transaction_state="Empty", transaction_start_time_ms=-1))

    assert given.ask(describe_transaction("t")).start_ms is None


def test_a_refused_lookup_ends_the_question() -> None:
    given = GivenTransactions()
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    refusal = FindCoordinatorResponse(
        coordinators=[Coordinator(key="t", node_id=-1, error_code=denied)]
    )
    given.cluster.rules.insert(0, lambda _, request: refusal if request.api_key == 10 else None)

    found = given.ask(describe_transaction("t"))
    assert found == Failed(f"transactional id t has no coordinator: {denied.name}")
    assert given.ask(find_transaction_coordinators(["t"])) == {"t": denied}


def test_coordinators_are_found_many_at_once_and_again_while_there_are_none() -> None:
    given = GivenTransactions()
    busy = FindCoordinatorResponse(
        coordinators=[
            Coordinator(key="t", node_id=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        ]
    )
    given.cluster.rules.insert(0, once(lambda _, request: busy if request.api_key == 10 else None))

    assert given.ask(find_transaction_coordinators(["t", "u"])) == {"t": 2, "u": 2}
    assert len(given.seen(FindCoordinatorRequest)) == 2


# Open transactions


def producer(producer_id: int, **fields: Any) -> producers.ProducerState:
    usual = {"producer_epoch": 3, "last_timestamp": 1_000, "coordinator_epoch": 5}
    return producers.ProducerState(producer_id=producer_id, **{**usual, **fields})


def test_open_transactions_are_told_apart_from_producers_that_have_none() -> None:
    given = GivenTransactions()
    active = [
        producer(7, current_txn_start_offset=17),
        producer(8, current_txn_start_offset=0, coordinator_epoch=-1),
        producer(9),
    ]
    partitions = [
        producers.PartitionResponse(partition_index=0, active_producers=active),
        producers.PartitionResponse(partition_index=1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ]
    topic = producers.TopicResponse(name="orders", partitions=partitions)
    given.says(producers.DescribeProducersResponse(topics=[topic]))

    found = given.ask(open_transactions([P0, P1], target=TheBroker(3)))
    assert found == OpenTransactions(
        (OpenTransaction(P0, 7, 3, 5, 17, 1_000), OpenTransaction(P0, 8, 3, None, 0, 1_000)),
        {P1: ErrorCode.NOT_LEADER_OR_FOLLOWER},
    )
    [seen] = given.cluster.requests(producers.DescribeProducersRequest)
    assert seen.broker_id == 3
    assert seen.request.topics == [producers.TopicRequest(name="orders", partition_indexes=[0, 1])]


def test_a_leader_that_has_moved_is_asked_for_again() -> None:
    given = GivenTransactions()
    moved = producers.PartitionResponse(
        partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    here = producers.PartitionResponse(partition_index=0)
    answers = [
        producers.DescribeProducersResponse(
            topics=[producers.TopicResponse(name="orders", partitions=[each])]
        )
        for each in (moved, here)
    ]
    given.cluster.rules.append(
        once(lambda _, request: answers[0] if request.api_key == 61 else None)
    )
    given.says(answers[1])

    assert given.ask(open_transactions([P0], target=LeaderOf(P0))) == OpenTransactions((), {})
    assert given.seen(producers.DescribeProducersRequest) == [2, 2]


def test_only_what_was_left_alone_for_longer_is_old() -> None:
    transactions = [OpenTransaction(P0, each, 0, None, 0, each) for each in (100, 101, 200)]
    assert older_than(transactions, 900, wall_ms=1_001) == transactions[:1]


def test_a_transaction_hangs_unless_its_coordinator_still_has_to_end_it() -> None:
    unknown, gone, elsewhere, expected = (
        OpenTransaction(P0, each, 0, None, 0, 0) for each in (1, 2, 3, 4)
    )
    found = hanging_transactions(
        [unknown, gone, elsewhere, expected],
        ids_by_producer={2: "gone", 3: "elsewhere", 4: "expected"},
        described={
            "elsewhere": TransactionDescription(NONE, "elsewhere", "Ongoing", 3, 0, 1, 1, (P1,)),
            "expected": TransactionDescription(NONE, "expected", "PrepareAbort", 4, 0, 1, 1, (P0,)),
        },
    )
    assert found == [unknown, gone, elsewhere]


# Abort


@pytest.mark.parametrize(("coordinator_epoch", "sent"), [(5, 5), (None, 0)])
def test_the_leader_gets_the_marker(coordinator_epoch: int | None, sent: int) -> None:
    """Without a marker before there is no coordinator epoch: then the least is right."""
    given = GivenTransactions()
    given.says(marked(NONE))
    question = abort_transaction(
        P0, producer_id=7, producer_epoch=3, coordinator_epoch=coordinator_epoch
    )

    assert given.ask(question) == AdminOutcome(NONE)
    [seen] = given.cluster.requests(markers.WriteTxnMarkersRequest)
    assert seen.broker_id == 2
    topic = markers.WritableTxnMarkerTopic(name="orders", partition_indexes=[0])
    assert seen.request.markers == [
        markers.WritableTxnMarker(
            producer_id=7,
            producer_epoch=3,
            transaction_result=False,
            topics=[topic],
            coordinator_epoch=sent,
        )
    ]


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
)
def test_a_refused_marker_is_not_sent_again(error: ErrorCode) -> None:
    given = GivenTransactions()
    given.cluster.rules.append(
        once(
            lambda _, request: (
                marked(ErrorCode.NOT_LEADER_OR_FOLLOWER) if request.api_key == 27 else None
            )
        )
    )
    given.says(marked(error))
    question = abort_transaction(P0, producer_id=7, producer_epoch=3, coordinator_epoch=5)

    assert given.ask(question) == AdminOutcome(error)
    assert given.seen(markers.WriteTxnMarkersRequest) == [2, 2]
