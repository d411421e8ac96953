"""What a transactions run shares: the cluster of a replication run, and its transactions' history.

The events at the end of this file stand in the trace, so that a campaign tells what never happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tidelog.core.coordinator.events import CoordinatorLoaded
from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.topic_name import TRANSACTIONS_TOPIC
from tidelog.judge.history import CallOutcome
from tidelog.judge.transactions.transaction_history import (
    OffsetsInTransaction,
    TransactionalWrite,
    TransactionEnd,
    TransactionOperation,
)
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.plan import TopicPlan
from tidelog.worlds.simulator.profiles.transactions_plan import TransactionsPlan

CHECK_EVERY_TICKS = 20
"""Rooms check themselves after every tick in other profiles; here half of the time went into it."""

Attempt = TransactionalWrite | OffsetsInTransaction | TransactionEnd

REFUSALS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""After these a request had no effect. All others may come after an append, as NOT_COORDINATOR of a
coordinator that is deposed while its answer waits."""


class TransactionsContext(RunContext):
    """The cluster, its observer, and what producers and readers were answered."""

    def __init__(self, plan: TransactionsPlan, *, disk_type: type[SimDisk]) -> None:
        super().__init__(plan.cluster, disk_type=disk_type)
        for process in self.cluster.processes.values():
            process.check_every = CHECK_EVERY_TICKS
        self.transactions = plan
        self.transaction_history: list[TransactionOperation] = []
        self.is_quiet = False
        """All records are transformed: nobody begins anything any more."""
        self._attempts: dict[int, Attempt] = {}
        self._attempts_begun = 0
        self._transactions = 0
        self.world.trace.watchers[CoordinatorLoaded] = self._on_coordinator_loaded

    def partitions_of(self, topic: TopicPlan) -> list[TopicPartition]:
        return [TopicPartition(topic.name, index) for index in range(topic.partitions)]

    @property
    def data_partitions(self) -> list[TopicPartition]:
        """All that readers follow."""
        plan = self.transactions
        return [*self.partitions_of(plan.source), *self.partitions_of(plan.target)]

    def coordinator_of(self, transactional_id: str) -> int | None:
        """As the newest metadata has it."""
        index = partition_of(transactional_id, self.transactions.transactions_partitions)
        return self.leader_of(f"{TRANSACTIONS_TOPIC}-{index}")

    def _on_coordinator_loaded(self, source: str, event: object) -> None:
        assert isinstance(event, CoordinatorLoaded)
        if event.partition.startswith(TRANSACTIONS_TOPIC) and event.records:
            trace = self.world.trace
            trace.emit(source, CoordinatorMoved(event.partition, event.leader_epoch))

    # The history.

    def new_transaction(self, transactional_id: str) -> str:
        self._transactions += 1
        return f"{transactional_id}#{self._transactions}"

    def begin_attempt(self, attempt: Attempt) -> int:
        """Until it is finished, its outcome is unknown."""
        assert attempt.outcome is CallOutcome.UNKNOWN
        self._attempts_begun += 1
        self._attempts[self._attempts_begun] = attempt
        return self._attempts_begun

    def finish_attempt(self, number: int, error: ErrorCode | CallFailed, **found: Any) -> None:
        attempt = self._attempts.pop(number)
        self.record_transaction(
            replace(
                attempt,
                at_us=self.world.now_us,
                outcome=outcome_of(error),
                error=error.name if isinstance(error, ErrorCode) else error.reason,
                **found,
            )
        )

    def close_history(self) -> None:
        super().close_history()
        for attempt in self._attempts.values():
            self.record_transaction(replace(attempt, at_us=self.world.now_us))
        self._attempts.clear()

    def record_transaction(self, operation: TransactionOperation) -> None:
        self.transaction_history.append(operation)
        self.world.trace.emit("history", operation)
        self.operations += 1


def outcome_of(error: ErrorCode | CallFailed) -> CallOutcome:
    """What the caller of a change knows about it."""
    if isinstance(error, CallFailed):
        return CallOutcome.UNKNOWN if error.was_sent else CallOutcome.REFUSED
    if error is ErrorCode.NONE:
        return CallOutcome.OK
    return CallOutcome.REFUSED if error in REFUSALS else CallOutcome.UNKNOWN


# What can become of transactions and their producers.


@dataclass(frozen=True, slots=True)
class CoordinatorMoved:
    """A transaction coordinator has taken over from another, or from its own last life."""

    partition: str
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionCommitted:
    """Its producer was told so."""

    transaction: str


@dataclass(frozen=True, slots=True)
class TransactionAborted:
    """Its producer was told so."""

    transaction: str


@dataclass(frozen=True, slots=True)
class CommitInDoubt:
    """A producer gave up to ask whether its transaction is committed."""

    transaction: str


@dataclass(frozen=True, slots=True)
class FencedBySuccessor:
    """A producer heard that another has its transactional id."""

    producer: str


@dataclass(frozen=True, slots=True)
class FencedByClock:
    """A producer heard that its transaction took too long: it had no successor."""

    producer: str


@dataclass(frozen=True, slots=True)
class FencedCommit:
    """A producer heard at the commit that it is fenced."""

    transaction: str


@dataclass(frozen=True, slots=True)
class WriteGivenUp:
    """A producer aborts because a write failed, or nobody knows what became of it."""

    transaction: str
    reason: str


@dataclass(frozen=True, slots=True)
class RecordsSkipped:
    """A read_committed reader was told to leave out records of aborted transactions."""

    reader: str
    partition: str
