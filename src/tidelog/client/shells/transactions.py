"""Transactions of a whole cluster: listed, described, and searched for those that hang."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidelog.client.admin.admin import Failed
from tidelog.client.admin.cluster import describe_cluster
from tidelog.client.admin.question import LeaderOf, TheBroker
from tidelog.client.admin.transactions import (
    OpenTransaction,
    TransactionDescription,
    TransactionListing,
    describe_transaction,
    find_transaction_coordinators,
    hanging_transactions,
    list_transactions,
    older_than,
    open_transactions,
)
from tidelog.client.shells.blocking_clients import Admin, RequestFailed
from tidelog.client.shells.topic_descriptions import SILENT_BROKER_S
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition

PARTITIONS_MAX = 500
"""In one question to one broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTransactions:
    """By transactional id with their coordinators; brokers that did not answer, and why."""

    transactions: dict[str, tuple[TransactionListing, int]]
    silent: dict[int, str]
    unknown_states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTransaction:
    """A transactional id as its coordinator knows it."""

    description: TransactionDescription
    coordinator: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingTransactions:
    """Those that were found, and the partitions that could not be searched."""

    transactions: tuple[OpenTransaction, ...]
    refused: dict[TopicPartition, str]


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def list_all_transactions(
    admin: Admin,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int | None = None,
    id_pattern: str | None = None,
    timeout_s: float,
) -> ListedTransactions:
    """Every broker is asked for those that it coordinates; RequestFailed if one refuses."""
    brokers = admin.ask(describe_cluster(), timeout_s=timeout_s).brokers
    questions = {
        each: list_transactions(
            broker_id=each,
            states=states,
            producer_ids=producer_ids,
            longer_than_ms=longer_than_ms,
            id_pattern=id_pattern,
        )
        for each in brokers
    }
    answers = admin.ask_each(questions, timeout_s=min(timeout_s, SILENT_BROKER_S))
    found: dict[str, tuple[TransactionListing, int]] = {}
    silent: dict[int, str] = {}
    unknown: dict[str, None] = {}
    for broker_id, answer in sorted(answers.items()):
        if isinstance(answer, Failed):
            silent[broker_id] = answer.reason
            continue
        if answer.error != ErrorCode.NONE:
            is_bad_pattern = answer.error == ErrorCode.INVALID_REGULAR_EXPRESSION
            what = f"{id_pattern!r}" if is_bad_pattern else f"broker {broker_id} lists none"
            raise RequestFailed(f"{answer.error.name}: {what}")
        unknown.update(dict.fromkeys(answer.unknown_states))
        for each in answer.transactions:
            found[each.transactional_id] = (each, broker_id)
    return ListedTransactions(
        transactions=dict(sorted(found.items())), silent=silent, unknown_states=tuple(unknown)
    )


def describe_transactions(
    admin: Admin, transactional_ids: Iterable[str], *, timeout_s: float
) -> dict[str, DescribedTransaction]:
    """Each by its coordinator; RequestFailed if one cannot be asked."""
    names = list(dict.fromkeys(transactional_ids))
    if not names:
        return {}
    questions = {each: describe_transaction(each) for each in names}
    answers = admin.ask_each(questions, timeout_s=timeout_s)
    coordinators = admin.ask(find_transaction_coordinators(names), timeout_s=timeout_s)
    described: dict[str, DescribedTransaction] = {}
    for name, answer in answers.items():
        if isinstance(answer, Failed):
            raise RequestFailed(answer.reason)
        coordinator = coordinators.get(name)
        described[name] = DescribedTransaction(
            description=answer,
            coordinator=None if isinstance(coordinator, ErrorCode) else coordinator,
        )
    return described


def open_transaction_at(
    admin: Admin, partition: TopicPartition, start_offset: int, *, timeout_s: float
) -> OpenTransaction | None:
    """The one that begins at this offset, as the leader knows it; RequestFailed if it refuses."""
    question = open_transactions([partition], target=LeaderOf(partition))
    found = admin.ask(question, timeout_s=timeout_s)
    for error in found.refused.values():
        raise RequestFailed(f"{error.name}: the producers of {partition} cannot be described")
    for each in found.transactions:
        if each.start_offset == start_offset:
            return each
    return None


def find_hanging(
    admin: Admin,
    partitions: Mapping[int, Sequence[TopicPartition]],
    *,
    transaction_timeout_ms: int,
    timeout_s: float,
) -> HangingTransactions:
    """Open transactions without a coordinator that would end them, in these partitions by broker.

    A list with holes would make every transaction of a silent coordinator look like one that
    hangs: then there is no result at all.
    """
    opened, refused = _open_by_broker(admin, partitions, timeout_s=timeout_s)
    candidates = older_than(opened, transaction_timeout_ms, wall_ms=wall_clock_ms())
    if not candidates:
        return HangingTransactions(transactions=(), refused=refused)
    producer_ids = sorted({each.producer_id for each in candidates})
    listed = list_all_transactions(admin, producer_ids=producer_ids, timeout_s=timeout_s)
    for broker_id, reason in listed.silent.items():
        raise RequestFailed(f"broker {broker_id} did not list its transactions: {reason}")
    described = describe_transactions(admin, listed.transactions, timeout_s=timeout_s)
    hanging = hanging_transactions(
        candidates,
        ids_by_producer={
            listing.producer_id: name for name, (listing, _) in listed.transactions.items()
        },
        described={
            name: each.description
            for name, each in described.items()
            if _exists(name, each.description.error)
        },
    )
    return HangingTransactions(transactions=tuple(sorted(hanging)), refused=refused)


def _exists(transactional_id: str, error: ErrorCode) -> bool:
    """False if it is gone since it was listed; RequestFailed if its coordinator tells nothing."""
    if error not in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
        raise RequestFailed(f"{error.name}: transactional id {transactional_id}")
    return error == ErrorCode.NONE


def _open_by_broker(
    admin: Admin, partitions: Mapping[int, Sequence[TopicPartition]], *, timeout_s: float
) -> tuple[list[OpenTransaction], dict[TopicPartition, str]]:
    """What each broker knows of its partitions, and those of which it tells nothing."""
    batches = {
        (broker_id, at): names[at : at + PARTITIONS_MAX]
        for broker_id, names in partitions.items()
        for at in range(0, len(names), PARTITIONS_MAX)
    }
    questions = {
        key: open_transactions(names, target=TheBroker(key[0])) for key, names in batches.items()
    }
    opened: list[OpenTransaction] = []
    refused: dict[TopicPartition, str] = {}
    for key, answer in admin.ask_each(questions, timeout_s=timeout_s).items():
        if isinstance(answer, Failed):
            refused.update(dict.fromkeys(batches[key], answer.reason))
        else:
            opened += answer.transactions
            refused.update((name, error.name) for name, error in answer.refused.items())
    return opened, refused
