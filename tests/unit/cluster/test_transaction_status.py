"""Open transactions in a status: what brokers tell is put together, what they do not is unknown."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from tidelog.client.admin.question import Question, RetryLater
from tidelog.cluster.admin_fanout import AdminFanout
from tidelog.cluster.status import OpenTransactionStatus, PartitionStatus
from tidelog.cluster.transaction_status import OPEN_STATES, TRANSACTIONS_MAX, transaction_statuses
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tidelog.core.wire.messages.api_65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from tidelog.core.wire.messages.api_66_list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tidelog.core.wire.schema import Message

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
ORDERS = PartitionStatus(
    topic="orders",
    partition=0,
    leader=1,
    leader_epoch=5,
    isr=(1, 2),
    replicas=(1, 2),
    high_watermark=100,
)


class ScriptedBrokers(AdminFanout):
    """Brokers 1 and 2: each gives the answer of its table to a kind of request, or none at all."""

    def __init__(self, *, answers: Mapping[tuple[int, type[Message]], Message]) -> None:
        self._answers = answers
        self.requests: list[tuple[int, Message]] = []

    def ask_each(
        self,
        questions: Mapping[K, tuple[int, Question[T]]],
        *,
        timeout_s: float = 0,
        quorum_timeout_s: float = 0,
        is_enough: Callable[[Mapping[K, T]], bool] | None = None,
    ) -> dict[K, T]:
        found: dict[K, T] = {}
        for key, (node, question) in questions.items():
            self.requests.append((node, question.request))
            answer = self._answers.get((node, type(question.request)))
            if answer is not None:
                result = question.read(answer)
                assert not isinstance(result, RetryLater), "nobody is waited for"
                found[key] = result
        return found


def listed(*names: str) -> ListTransactionsResponse:
    states = [
        ListedTransaction(transactional_id=each, producer_id=7, transaction_state="Ongoing")
        for each in names
    ]
    return ListTransactionsResponse(transaction_states=states)


def described(
    name: str, *, state: str = "Ongoing", error: ErrorCode = ErrorCode.NONE
) -> DescribeTransactionsResponse:
    found = TransactionState(
        error_code=error,
        transactional_id=name,
        transaction_state=state,
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=2_000,
        producer_id=7,
        producer_epoch=1,
        topics=[TopicData(topic="orders", partitions=[0])],
    )
    return DescribeTransactionsResponse(transaction_states=[found])


def stable(offset: int, *, error: ErrorCode = ErrorCode.NONE) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=error, offset=offset)
    topic = ListOffsetsTopicResponse(name="orders", partitions=[partition])
    return ListOffsetsResponse(topics=[topic])


def ask(
    brokers: ScriptedBrokers,
) -> tuple[tuple[OpenTransactionStatus, ...], tuple[PartitionStatus, ...]]:
    return transaction_statuses(brokers, [1, 2], [ORDERS], timeout_s=1)


def test_open_transactions_come_from_their_coordinators_and_offsets_from_leaders() -> None:
    brokers = ScriptedBrokers(
        answers={
            (1, ListTransactionsRequest): listed(),
            (2, ListTransactionsRequest): listed("copy-1"),
            (2, DescribeTransactionsRequest): described("copy-1"),
            (1, ListOffsetsRequest): stable(65),
        }
    )
    transactions, [partition] = ask(brokers)
    assert transactions == (
        OpenTransactionStatus(
            transactional_id="copy-1",
            coordinator=2,
            producer_id=7,
            state="Ongoing",
            start_ms=2_000,
            partitions=(TopicPartition("orders", 0),),
        ),
    )
    assert (partition.last_stable_offset, partition.held_back) == (65, 35)

    lists = [each for _, each in brokers.requests if isinstance(each, ListTransactionsRequest)]
    assert [each.state_filters for each in lists] == [list(OPEN_STATES)] * 2
    [(leader, offsets)] = [
        (node, each) for node, each in brokers.requests if isinstance(each, ListOffsetsRequest)
    ]
    assert (leader, offsets.isolation_level) == (1, 1)


def test_a_hanging_transaction_that_nobody_lists_still_holds_readers_back() -> None:
    answers: dict[tuple[int, type[Message]], Message] = {
        **{(each, ListTransactionsRequest): listed() for each in (1, 2)},
        (1, ListOffsetsRequest): stable(0),
    }
    transactions, [partition] = ask(ScriptedBrokers(answers=answers))
    assert transactions == () and partition.held_back == 100


def test_brokers_that_cannot_answer_leave_the_status_as_it_was() -> None:
    assert ask(ScriptedBrokers(answers={})) == ((), (ORDERS,))

    refusing = ScriptedBrokers(
        answers={
            (1, ListTransactionsRequest): ListTransactionsResponse(
                error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            ),
            (2, ListTransactionsRequest): ListTransactionsResponse(
                error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            ),
            (1, ListOffsetsRequest): stable(-1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        }
    )
    assert ask(refusing) == ((), (ORDERS,))


def test_without_brokers_nobody_is_asked() -> None:
    brokers = ScriptedBrokers(answers={})
    assert transaction_statuses(brokers, [], [ORDERS], timeout_s=1) == ((), (ORDERS,))
    assert brokers.requests == []


def test_what_has_ended_since_it_was_listed_is_not_shown() -> None:
    ended = ScriptedBrokers(
        answers={
            (2, ListTransactionsRequest): listed("copy-1"),
            (2, DescribeTransactionsRequest): described("copy-1", state="CompleteCommit"),
        }
    )
    assert ask(ended)[0] == ()


def test_what_cannot_be_described_is_shown_as_it_was_listed() -> None:
    for answer in (
        described("copy-1", state="", error=ErrorCode.NOT_COORDINATOR),
        described("copy-1", state="", error=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    ):
        silent = ScriptedBrokers(
            answers={
                (2, ListTransactionsRequest): listed("copy-1"),
                (2, DescribeTransactionsRequest): answer,
            }
        )
        [found] = ask(silent)[0]
        assert (found.state, found.start_ms, found.partitions) == ("Ongoing", None, None)


def test_of_very_many_the_first_are_shown() -> None:
    names = [f"copy-{number:03}" for number in range(3 * TRANSACTIONS_MAX)]
    brokers = ScriptedBrokers(answers={(1, ListTransactionsRequest): listed(*names)})
    found = [each.transactional_id for each in ask(brokers)[0]]
    assert found == names[:TRANSACTIONS_MAX]
