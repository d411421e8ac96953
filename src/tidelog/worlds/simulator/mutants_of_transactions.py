"""Mutants of transactions: decisions told too early, markers and verifications left out, epochs
that nobody compares, readers who are told too much or too little."""

from __future__ import annotations

from typing import Any

from tidelog.core.coordinator.hosted_shard import HostedShard
from tidelog.core.coordinator.outcome import Outcome
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.storage.aborted import AbortedIndex
from tidelog.core.storage.log import Log
from tidelog.core.storage.producers import ProducerStates, RememberedBatch
from tidelog.core.storage.verification import NOT_REQUIRED, Verification
from tidelog.core.transactions import transaction_rules
from tidelog.core.transactions.transaction_metadata import TransactionMetadata
from tidelog.core.transactions.transaction_shard import TransactionShard
from tidelog.core.wire.control_records import EndTransactionMarker
from tidelog.core.wire.record_batch import BatchHeader
from tidelog.judge.anomalies import (
    ABORTED_BUT_READ,
    ABORTED_OFFSETS,
    HANGING_TRANSACTION,
    HIDDEN,
    NOT_RECOVERED,
    NOT_TRANSFORMED,
    TORN_TRANSACTION,
    UNDECIDED_READ,
    ZOMBIE_WRITE,
    AnomalyKind,
)
from tidelog.worlds.simulator.mutant import Mutant, Patch

# What is replaced, as it is.

_settle = HostedShard.settle
_park = HostedShard._park
_begin_verification = ProducerStates.begin_verification
_refuse_unverified = ProducerStates._refuse_unverified
_decide = ProducerStates.decide
_decide_from_coordinator = ProducerStates.decide_from_coordinator
_on_loaded = TransactionShard.on_loaded
_refuse_identity = transaction_rules.refuse_identity


def answer_transactions_at_once(self: HostedShard[Any]) -> None:
    """What is in the coordinator's own log counts as decided."""
    if isinstance(self.shard, TransactionShard):
        while self.parked:
            first = self.parked.popleft()
            del self.waiting[first.reply_to]
            self._port.answer(first.reply_to, first.answer)
    _settle(self)


def send_markers_at_once(self: HostedShard[Any], outcome: Outcome, now_ms: int) -> None:
    """Markers leave when the decision is in the coordinator's own log."""
    work, outcome.after_commit = outcome.after_commit, []
    for each in work:
        assert self._on_committed is not None
        self._on_committed(each)
    _park(self, outcome, now_ms)


def load_without_markers(self: TransactionShard, now_ms: int) -> Outcome:
    """Whoever decided sends the markers; a new coordinator does not."""
    _on_loaded(self, now_ms)
    return Outcome()


def verify_only_additions(
    self: ProducerStates, *identity: int, adds_partition: bool, wall_ms: int
) -> Verification | None:
    """A classic producer has added the partition, so there is no need to ask."""
    if not adds_partition:
        return None
    return _begin_verification(self, *identity, adds_partition=True, wall_ms=wall_ms)


def accept_unverified(
    self: ProducerStates, header: BatchHeader, verification: Verification | None
) -> ErrorCode | None:
    if verification is None:
        return None
    return _refuse_unverified(self, header, verification)


def any_open_transaction(self: ProducerStates, producer_id: int, producer_epoch: int) -> bool:
    producer = self.by_id.get(producer_id)
    return producer is not None and producer.transaction_first_offset is not None


def append_in_any_epoch(
    self: ProducerStates, header: BatchHeader
) -> ErrorCode | RememberedBatch | None:
    """Whoever has the producer id may write."""
    producer = self.by_id.get(header.producer_id)
    if producer is not None and header.producer_epoch < producer.producer_epoch:
        return None
    return _decide(self, header)


def any_producer_epoch(
    metadata: TransactionMetadata | None, producer: ProducerIdAndEpoch
) -> ErrorCode:
    error = _refuse_identity(metadata, producer)
    return ErrorCode.NONE if error is ErrorCode.PRODUCER_FENCED else error


def stable_at_high_watermark(self: Log) -> int:
    return self.high_watermark


def nothing_aborted(self: Log, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
    return []


def keep_aborted(self: AbortedIndex, base_offset: int, end_offset: int) -> None:
    """The log is cut; the index of aborted transactions stays."""


def commit_at_append(
    self: GroupShard,
    record: CoordinatorRecord,
    *,
    producer_id: int,
    offset: int,
    timestamp_ms: int,
) -> None:
    """Offsets count as soon as they are in the log."""
    self.apply(record, offset=offset, timestamp_ms=timestamp_ms)


def marker_of_any_epoch(
    self: ProducerStates,
    header: BatchHeader,
    marker: EndTransactionMarker | None,
    *,
    verification: Verification | None = NOT_REQUIRED,
    transaction_version: int = 0,
) -> ErrorCode | None:
    """A marker may end a transaction of its own epoch, as in the classic protocol."""
    return _decide_from_coordinator(self, header, marker, verification=verification)


def _mutant(
    name: str, about: str, *patches: Patch, caught_by: set[AnomalyKind], within: int
) -> Mutant:
    return Mutant(
        name=name,
        about=about,
        caught_by=frozenset(caught_by),
        within_seeds=within,
        profile="transactions",
        patches=patches,
    )


TRANSACTION_MUTANTS: tuple[Mutant, ...] = (
    _mutant(
        "commit-before-durable",
        "a coordinator answers a commit before the high watermark has passed its decision",
        Patch(HostedShard, "settle", answer_transactions_at_once),
        caught_by={HIDDEN, ZOMBIE_WRITE},
        within=30,
    ),
    _mutant(
        "marker-before-decision",
        "markers are sent before the decision is committed",
        Patch(HostedShard, "_park", send_markers_at_once),
        caught_by={TORN_TRANSACTION, HIDDEN, ABORTED_BUT_READ, NOT_RECOVERED},
        within=30,
    ),
    _mutant(
        "forget-prepared-transactions",
        "a new coordinator does not send the markers of what was decided before",
        Patch(TransactionShard, "on_loaded", load_without_markers),
        caught_by={HANGING_TRANSACTION, NOT_RECOVERED},
        within=6,
    ),
    _mutant(
        "verify-nothing",
        "the leader does not ask whether a classic transaction is open: a late batch opens one",
        Patch(ProducerStates, "begin_verification", verify_only_additions),
        Patch(ProducerStates, "_refuse_unverified", accept_unverified),
        caught_by={HANGING_TRANSACTION, ABORTED_BUT_READ},
        within=60,
    ),
    _mutant(
        "append-in-any-epoch",
        "a leader does not compare producer epochs",
        Patch(ProducerStates, "has_transaction", any_open_transaction),
        Patch(ProducerStates, "decide", append_in_any_epoch),
        caught_by={ZOMBIE_WRITE, ABORTED_BUT_READ},
        within=40,
    ),
    _mutant(
        "coordinate-any-epoch",
        "a coordinator does not compare producer epochs",
        Patch(transaction_rules, "refuse_identity", any_producer_epoch),
        caught_by={ZOMBIE_WRITE, HIDDEN, ABORTED_BUT_READ},
        within=4,
    ),
    _mutant(
        "stable-at-high-watermark",
        "readers of committed records get all that is replicated",
        Patch(Log, "last_stable_offset", property(stable_at_high_watermark)),
        caught_by={UNDECIDED_READ, ABORTED_BUT_READ},
        within=4,
    ),
    _mutant(
        "aborted-list-left-out",
        "readers are not told which transactions are aborted",
        Patch(Log, "aborted_transactions", nothing_aborted),
        caught_by={ABORTED_BUT_READ},
        within=4,
    ),
    _mutant(
        "aborted-index-not-cut",
        "a log that is cut still calls transactions aborted that it does not hold any more",
        Patch(AbortedIndex, "truncate", keep_aborted),
        caught_by={HIDDEN, ABORTED_BUT_READ},
        within=6,
    ),
    _mutant(
        "offsets-at-append",
        "offsets in a transaction count before its marker",
        Patch(GroupShard, "apply_transactional", commit_at_append),
        caught_by={ABORTED_OFFSETS, NOT_TRANSFORMED},
        within=4,
    ),
    _mutant(
        "marker-of-any-epoch",
        "a late marker of the transaction before ends the open one",
        Patch(ProducerStates, "decide_from_coordinator", marker_of_any_epoch),
        caught_by={HIDDEN, ABORTED_BUT_READ, TORN_TRANSACTION, HANGING_TRANSACTION},
        within=60,
    ),
)
