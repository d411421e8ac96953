"""Open transactions in a cluster's status, and the partitions whose readers they hold back.

Every broker lists the transactions that it coordinates, and each leader tells its last stable
offsets. The second question finds hanging transactions too, which no coordinator lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tidelog.client.admin.descriptions import last_stable_offsets
from tidelog.client.admin.offsets import ListedOffset
from tidelog.client.admin.question import Question
from tidelog.client.admin.transactions import (
    TransactionDescription,
    TransactionList,
    TransactionListing,
    describe_transaction,
    list_transactions,
)
from tidelog.cluster.admin_fanout import AdminFanout
from tidelog.cluster.status import OpenTransactionStatus, PartitionStatus
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition

TRANSACTIONS_MAX = 20
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")
"""A decided transaction is open until its markers are written."""
Answer = TransactionList | dict[TopicPartition, ListedOffset] | None


def transaction_statuses(
    fanout: AdminFanout,
    brokers: Iterable[int],
    partitions: Sequence[PartitionStatus],
    *,
    timeout_s: float,
) -> tuple[tuple[OpenTransactionStatus, ...], tuple[PartitionStatus, ...]]:
    """The first open transactions by name, and the partitions with their last stable offsets.

    High watermarks are known already: a last stable offset that is asked for earlier would seem to
    be behind wherever somebody writes. No broker is asked again, and what it cannot tell is
    unknown.
    """
    answers = _ask_brokers(fanout, set(brokers), partitions, timeout_s)
    found: dict[str, tuple[TransactionListing, int]] = {}
    stable: dict[int, Mapping[TopicPartition, ListedOffset]] = {}
    for (node, _), answer in sorted(answers.items()):
        if isinstance(answer, TransactionList):
            found |= {each.transactional_id: (each, node) for each in answer.transactions}
        elif answer is not None:
            stable[node] = answer
    shown = dict(sorted(found.items())[:TRANSACTIONS_MAX])
    questions = {
        name: (node, describe_transaction(name).at_once()) for name, (_, node) in shown.items()
    }
    described = fanout.ask_each(questions, timeout_s=timeout_s) if questions else {}
    statuses = (
        _status(listing, node, described.get(name)) for name, (listing, node) in shown.items()
    )
    return (
        tuple(each for each in statuses if each.state in OPEN_STATES),
        tuple(_with_last_stable_offset(each, stable) for each in partitions),
    )


def _ask_brokers(
    fanout: AdminFanout,
    brokers: set[int],
    partitions: Iterable[PartitionStatus],
    timeout_s: float,
) -> dict[tuple[int, str], Answer]:
    led: dict[int, list[TopicPartition]] = {}
    for each in partitions:
        if each.leader in brokers:
            led.setdefault(each.leader, []).append(TopicPartition(each.topic, each.partition))
    questions: dict[tuple[int, str], tuple[int, Question[Answer]]] = {}
    for node in sorted(brokers):
        listing = list_transactions(broker_id=node, states=OPEN_STATES).at_once()
        questions[node, "transactions"] = (node, listing)  # type: ignore[assignment]
    for node, names in led.items():
        offsets = last_stable_offsets(names, broker_id=node)
        questions[node, "offsets"] = (node, offsets)  # type: ignore[assignment]
    return fanout.ask_each(questions, timeout_s=timeout_s) if questions else {}


def _status(
    listing: TransactionListing, coordinator: int, description: TransactionDescription | None
) -> OpenTransactionStatus:
    """As it was described; it may have ended since it was listed."""
    if description is not None and description.error != ErrorCode.NONE:
        description = None
    return OpenTransactionStatus(
        transactional_id=listing.transactional_id,
        coordinator=coordinator,
        producer_id=listing.producer_id,
        state=listing.state if description is None else description.state,
        start_ms=None if description is None else description.start_ms,
        partitions=None if description is None else description.partitions,
    )


def _with_last_stable_offset(
    partition: PartitionStatus, stable: Mapping[int, Mapping[TopicPartition, ListedOffset]]
) -> PartitionStatus:
    offsets = {} if partition.leader is None else stable.get(partition.leader, {})
    found = offsets.get(TopicPartition(partition.topic, partition.partition))
    if found is None or found.error != ErrorCode.NONE:
        return partition
    return replace(partition, last_stable_offset=found.offset)
