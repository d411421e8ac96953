"""All that one partition of `__transaction_state` holds: transactional ids and their transactions.

A transaction is decided by one record, and its markers are due when that record is committed, not
before: a coordinator that takes over finds the record and writes the same markers again. While they
are on their way whoever asks for the same id waits for a bounded time. Kafka answers
CONCURRENT_TRANSACTIONS at once, after which clients sleep for longer than the markers take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.limits import EPOCH_PER_TRANSACTION
from tidelog.core.transactions import transaction_rules as rules
from tidelog.core.transactions.held_calls import HOLD_MS_MAX, HeldCall, HeldCalls
from tidelog.core.transactions.transaction_calls import (
    NEEDS_PRODUCER_ID,
    AddPartitionsCall,
    EndTransactionCall,
    InitProducerCall,
    MarkersDue,
    PartitionErrors,
    ProducerAnswer,
    VerifyPartitionsCall,
)
from tidelog.core.transactions.transaction_metadata import (
    NO_EPOCH,
    TransactionMetadata,
    new_transactional_id,
)
from tidelog.core.transactions.transaction_records import (
    read_transaction_key,
    read_transaction_value,
    transaction_record,
    transaction_tombstone,
)
from tidelog.core.transactions.transaction_state import EXPIRABLE, TransactionStatus

_CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


_Call = TypeVar(
    "_Call", InitProducerCall, AddPartitionsCall, VerifyPartitionsCall, EndTransactionCall
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Defaults are Kafka's."""

    abort_interval_ms: int = 10_000
    """`transaction.abort.timed.out.transaction.cleanup.interval.ms`"""
    id_expiration_ms: int = 7 * 24 * 3600 * 1000
    """`transactional.id.expiration.ms`"""
    expiry_interval_ms: int = 3_600_000
    """`transaction.remove.expired.transaction.cleanup.interval.ms`"""


# Size: one machine; its rules, values and held calls stand in modules beside it.
class TransactionShard:
    """Inputs: records, time, and the calls of `transaction_calls.py`. Invariants: check."""

    def __init__(
        self,
        *,
        settings: TransactionSettings,
        transaction_version: Callable[[], int],
        wall_ms: Callable[[int], int],
    ) -> None:
        self._settings = settings
        self._transaction_version = transaction_version
        """The cluster's finalized `transaction.version`."""
        self._wall_ms = wall_ms
        self.by_id: dict[str, TransactionMetadata] = {}
        self._ongoing: dict[str, None] = {}
        self._held = HeldCalls()
        self._abort_due_ms: int | None = None
        self._expiry_due_ms: int | None = None

    # The log

    def apply(self, record: CoordinatorRecord, *, offset: int, timestamp_ms: int) -> None:
        """Records of kinds that are not known here are left alone, as Kafka does."""
        transactional_id = read_transaction_key(record.key)
        if transactional_id is None:
            return
        self._ongoing.pop(transactional_id, None)
        if record.value is None:
            self.by_id.pop(transactional_id, None)
            return
        metadata = read_transaction_value(record.value)
        self.by_id[transactional_id] = metadata
        if metadata.status is TransactionStatus.ONGOING:
            self._ongoing[transactional_id] = None

    def apply_transactional(
        self, record: CoordinatorRecord, *, producer_id: int, offset: int, timestamp_ms: int
    ) -> None:
        raise AssertionError("no transaction writes to the log of transactions")

    def apply_marker(self, *, producer_id: int, is_commit: bool) -> None:
        raise AssertionError("no transaction ends in the log of transactions")

    # Life

    def on_loaded(self, now_ms: int) -> Outcome:
        """What was decided and not completed is completed by us."""
        self._abort_due_ms = now_ms + self._settings.abort_interval_ms
        self._expiry_due_ms = now_ms + self._settings.expiry_interval_ms
        return Outcome(
            after_commit=[
                self._markers(transactional_id, metadata)
                for transactional_id, metadata in self.by_id.items()
                if metadata.is_prepared
            ]
        )

    def next_deadline_ms(self) -> int | None:
        deadlines = (self._held.next_deadline_ms(), self._abort_due_ms, self._expiry_due_ms)
        return min((each for each in deadlines if each is not None), default=None)

    def on_timer(self, now_ms: int) -> Outcome:
        outcome = Outcome(replies=list(self._held.overdue(now_ms)))
        if self._abort_due_ms is not None and self._abort_due_ms <= now_ms:
            self._abort_due_ms = now_ms + self._settings.abort_interval_ms
            self._abort_timed_out(outcome, now_ms)
        if self._expiry_due_ms is not None and self._expiry_due_ms <= now_ms:
            self._expiry_due_ms = now_ms + self._settings.expiry_interval_ms
            outcome.records += self._expired(now_ms)
        outcome.may_be_split = True
        return outcome

    def _abort_timed_out(self, outcome: Outcome, now_ms: int) -> None:
        wall_ms = self._wall_ms(now_ms)
        last_epochs: dict[str, int] = {}
        for transactional_id in self._ongoing:
            metadata = self.by_id[transactional_id]
            assert metadata.start_wall_ms is not None
            if metadata.start_wall_ms + metadata.timeout_ms < wall_ms:
                fenced = self._fenced(metadata, None, wall_ms)
                outcome.records.append(self._record(transactional_id, fenced))
                outcome.after_commit.append(self._markers(transactional_id, fenced))
                last_epochs[transactional_id] = fenced.last_producer_epoch
        outcome.then = lambda now_ms: self._remember(last_epochs)

    def _expired(self, now_ms: int) -> list[CoordinatorRecord]:
        limit_ms = self._wall_ms(now_ms) - self._settings.id_expiration_ms
        return [
            transaction_tombstone(transactional_id)
            for transactional_id, metadata in self.by_id.items()
            if metadata.status in EXPIRABLE and metadata.update_wall_ms <= limit_ms
        ]

    # Calls

    def init_producer(self, call: InitProducerCall, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """Answers a `ProducerAnswer`."""
        metadata = self.by_id.get(call.transactional_id)
        wall_ms = self._wall_ms(now_ms)
        if metadata is None:
            if call.fresh_producer_id is None:
                return _reply(reply_to, NEEDS_PRODUCER_ID)
            metadata = new_transactional_id(
                call.fresh_producer_id, timeout_ms=call.timeout_ms, wall_ms=wall_ms
            )
        if metadata.is_prepared:
            return self._hold(call, self.init_producer, reply_to, now_ms)
        if call.expected is not None:
            error = rules.refuse_expected(metadata, call.expected)
            if error is not ErrorCode.NONE:
                return _reply(reply_to, ProducerAnswer(error))
        if metadata.status is TransactionStatus.ONGOING:
            return self._fence(call, metadata, reply_to, now_ms)
        return self._begin(call, metadata, reply_to, wall_ms)

    def _begin(
        self,
        call: InitProducerCall,
        metadata: TransactionMetadata,
        reply_to: ReplyTo,
        wall_ms: int,
    ) -> Outcome:
        """No transaction is open: give the producer its epoch, or a new id when they ran out."""
        expected = call.expected
        is_current = expected is None or expected.producer_epoch == metadata.producer_epoch
        if metadata.is_exhausted and is_current:
            if call.fresh_producer_id is None:
                return _reply(reply_to, NEEDS_PRODUCER_ID)
            begun = metadata.with_producer_id(
                call.fresh_producer_id,
                last_producer_epoch=NO_EPOCH if expected is None else metadata.producer_epoch,
                timeout_ms=call.timeout_ms,
                wall_ms=wall_ms,
            )
        else:
            epochs = rules.next_epochs(metadata, expected)
            if isinstance(epochs, ErrorCode):
                return _reply(reply_to, ProducerAnswer(epochs))
            begun = metadata.with_next_epoch(
                producer_epoch=epochs[0],
                last_producer_epoch=epochs[1],
                timeout_ms=call.timeout_ms,
                wall_ms=wall_ms,
            )
        outcome = self._write(call.transactional_id, begun)
        identity = ProducerIdAndEpoch(begun.producer_id, begun.producer_epoch)
        outcome.replies.append((reply_to, ProducerAnswer(ErrorCode.NONE, identity)))
        return outcome

    def _fence(
        self,
        call: InitProducerCall,
        metadata: TransactionMetadata,
        reply_to: ReplyTo,
        now_ms: int,
    ) -> Outcome:
        """Somebody left a transaction open: abort it, and begin when that is done."""
        fresh = self._id_for_next(metadata, self._transaction_version(), call.fresh_producer_id)
        if fresh is None:
            return _reply(reply_to, NEEDS_PRODUCER_ID)
        outcome = self._hold(call, self.init_producer, reply_to, now_ms)
        fenced = self._fenced(metadata, fresh[0], self._wall_ms(now_ms))
        decided = self._write(call.transactional_id, fenced)
        decided.after_commit.append(self._markers(call.transactional_id, fenced))
        decided.replies += outcome.replies
        return decided

    def add_partitions(self, call: AddPartitionsCall, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """Answers what the call makes of an `ErrorCode`."""
        metadata = self.by_id.get(call.transactional_id)
        if metadata is not None and metadata.is_prepared:
            return self._hold(call, self.add_partitions, reply_to, now_ms)
        error = rules.refuse_identity(metadata, call.producer)
        if metadata is None or error is not ErrorCode.NONE:
            return _reply(reply_to, call.answer(error))
        is_open = metadata.status is TransactionStatus.ONGOING
        if is_open and call.partitions <= metadata.partitions:
            return _reply(reply_to, call.answer(ErrorCode.NONE))
        added = metadata.with_partitions(
            call.partitions, client_version=call.client_version, wall_ms=self._wall_ms(now_ms)
        )
        outcome = self._write(call.transactional_id, added)
        outcome.replies.append((reply_to, call.answer(ErrorCode.NONE)))
        return outcome

    def verify_partitions(
        self, call: VerifyPartitionsCall, reply_to: ReplyTo, now_ms: int
    ) -> Outcome:
        """Answers what the call makes of `PartitionErrors`."""
        metadata = self.by_id.get(call.transactional_id)
        error = rules.refuse_identity(metadata, call.producer)
        if metadata is None or error is not ErrorCode.NONE:
            return _reply(reply_to, call.answer(_for_all(call, error)))
        if metadata.is_prepared:
            return self._hold(call, self.verify_partitions, reply_to, now_ms)
        errors = {
            partition: ErrorCode.NONE
            if partition in metadata.partitions
            else ErrorCode.TRANSACTION_ABORTABLE
            for partition in call.partitions
        }
        return _reply(reply_to, call.answer(errors))

    def end(self, call: EndTransactionCall, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """Answers a `ProducerAnswer`, when the decision is committed; markers follow."""
        metadata = self.by_id.get(call.transactional_id)
        if metadata is not None and metadata.is_prepared:
            error = ErrorCode.NONE
            if call.client_version < EPOCH_PER_TRANSACTION:
                error = rules.refuse_identity(metadata, call.producer)
            if error is ErrorCode.NONE:
                return self._hold(call, self.end, reply_to, now_ms)
            return _reply(reply_to, ProducerAnswer(error))
        verdict = rules.judge_end(
            metadata, call.producer, is_commit=call.is_commit, client_version=call.client_version
        )
        if metadata is None or not verdict.decides:
            identity = None
            if metadata is not None and verdict.error is ErrorCode.NONE:
                identity = ProducerIdAndEpoch(metadata.producer_id, metadata.producer_epoch)
            return _reply(reply_to, ProducerAnswer(verdict.error, identity))
        fresh = self._id_for_next(metadata, call.client_version, call.fresh_producer_id)
        if fresh is None:
            return _reply(reply_to, NEEDS_PRODUCER_ID)
        prepared = metadata.prepared(
            is_commit=call.is_commit,
            client_version=call.client_version,
            next_producer_id=fresh[0],
            wall_ms=self._wall_ms(now_ms),
        )
        outcome = self._write(call.transactional_id, prepared)
        identity = ProducerIdAndEpoch(*prepared.after_completion)
        outcome.replies.append((reply_to, ProducerAnswer(ErrorCode.NONE, identity)))
        outcome.after_commit.append(self._markers(call.transactional_id, prepared))
        return outcome

    def on_markers_written(
        self, transactional_id: str, producer: ProducerIdAndEpoch, now_ms: int
    ) -> Outcome:
        """Every partition has its marker: complete it, and let those go on who waited."""
        metadata = self.by_id.get(transactional_id)
        if (
            metadata is None
            or not metadata.is_prepared
            or (metadata.producer_id, metadata.producer_epoch) != producer
        ):
            return Outcome()
        outcome = self._write(transactional_id, metadata.completed(wall_ms=self._wall_ms(now_ms)))
        return self._then_resume(transactional_id, outcome)

    # Inside

    def _hold(
        self,
        call: _Call,
        decide: Callable[[_Call, ReplyTo, int], Outcome],
        reply_to: ReplyTo,
        now_ms: int,
    ) -> Outcome:
        """Decide again when the markers are written."""
        refusal: object = ProducerAnswer(_CONCURRENT)
        if isinstance(call, AddPartitionsCall):
            refusal = call.answer(_CONCURRENT)
        elif isinstance(call, VerifyPartitionsCall):
            refusal = call.answer(_for_all(call, _CONCURRENT))
        held = HeldCall(
            lambda now_ms: decide(call, reply_to, now_ms), reply_to, refusal, now_ms + HOLD_MS_MAX
        )
        if not self._held.add(call.transactional_id, held):
            return _reply(reply_to, refusal)
        return Outcome()

    def _resume(self, transactional_id: str, now_ms: int) -> Outcome:
        """The first who waited; each decision rests on what the one before wrote."""
        if self.by_id[transactional_id].is_prepared:
            return Outcome()
        first = self._held.take(transactional_id)
        if first is None:
            return Outcome()
        return self._then_resume(transactional_id, first.decide(now_ms))

    def _then_resume(self, transactional_id: str, outcome: Outcome) -> Outcome:
        before = outcome.then

        def go_on(now_ms: int) -> Outcome:
            if before is not None:
                before(now_ms)
            return self._resume(transactional_id, now_ms)

        outcome.then = go_on
        return outcome

    def _id_for_next(
        self, metadata: TransactionMetadata, client_version: int, fresh_producer_id: int | None
    ) -> tuple[int | None] | None:
        """The next producer id, which may be none; None: one is needed and not there."""
        if client_version < EPOCH_PER_TRANSACTION or not metadata.is_exhausted:
            return (None,)
        return None if fresh_producer_id is None else (fresh_producer_id,)

    def _fenced(
        self, metadata: TransactionMetadata, next_producer_id: int | None, wall_ms: int
    ) -> TransactionMetadata:
        return metadata.prepared(
            is_commit=False,
            client_version=self._transaction_version(),
            next_producer_id=next_producer_id,
            wall_ms=wall_ms,
            is_fence=True,
        )

    def _record(self, transactional_id: str, metadata: TransactionMetadata) -> CoordinatorRecord:
        value_version = min(1, self._transaction_version())
        return transaction_record(transactional_id, metadata, value_version=value_version)

    def _write(self, transactional_id: str, metadata: TransactionMetadata) -> Outcome:
        last_epochs = {transactional_id: metadata.last_producer_epoch}
        return Outcome(
            [self._record(transactional_id, metadata)],
            then=lambda now_ms: self._remember(last_epochs),
        )

    def _remember(self, last_epochs: dict[str, int]) -> Outcome:
        """The log does not keep the epoch before (neither does Kafka's): it is noted here."""
        for transactional_id, last_producer_epoch in last_epochs.items():
            self.by_id[transactional_id] = replace(
                self.by_id[transactional_id], last_producer_epoch=last_producer_epoch
            )
        return Outcome()

    def _markers(self, transactional_id: str, metadata: TransactionMetadata) -> MarkersDue:
        return MarkersDue(
            transactional_id=transactional_id,
            producer=ProducerIdAndEpoch(metadata.producer_id, metadata.producer_epoch),
            is_commit=metadata.status is TransactionStatus.PREPARE_COMMIT,
            partitions=metadata.partitions,
            transaction_version=metadata.client_version,
        )

    def check(self) -> None:
        for transactional_id, metadata in self.by_id.items():
            metadata.check()
            is_ongoing = metadata.status is TransactionStatus.ONGOING
            assert is_ongoing == (transactional_id in self._ongoing), transactional_id
        for transactional_id in self._held:
            assert self.by_id[transactional_id].is_prepared, f"{transactional_id} waits for nothing"


def _reply(reply_to: ReplyTo, answer: object) -> Outcome:
    return Outcome(replies=[(reply_to, answer)])


def _for_all(call: VerifyPartitionsCall, error: ErrorCode) -> PartitionErrors:
    return dict.fromkeys(call.partitions, error)
