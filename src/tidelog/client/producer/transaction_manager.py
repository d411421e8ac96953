"""The transactions of one producer: which requests are due, and what their answers mean.

One request at a time goes to a coordinator. What is due follows from the state and from what has
not been added yet, so that a retry is the same question asked again. A request whose answer was
lost stays due, also during an abort: nobody else knows whether the transaction began.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.events import TransactionStateChanged
from tidelog.client.group.coordinator_channel import TRANSACTION_KEY_TYPE, CoordinatorChannel
from tidelog.client.group.offset_requests import ConsumerGroupMetadata, OffsetAndMetadata
from tidelog.client.producer import transaction_requests as requests
from tidelog.client.producer.config import ProducerConfig, TransactionProtocol
from tidelog.client.producer.outcome import PRODUCER_CLOSED
from tidelog.client.producer.sequences import Sequences
from tidelog.client.producer.transaction_errors import (
    NOT_DECIDED,
    TRANSACTION_ABORTED,
    IllegalTransactionState,
    StepDecision,
    TransactionStep,
    decide,
    exception_for,
    heaviest,
)
from tidelog.client.producer.transaction_outcome import (
    FailureKind,
    OnTransactionOutcome,
    TransactionFailed,
    TransactionOk,
    TransactionOperation,
    TransactionTicket,
)
from tidelog.client.producer.transaction_states import (
    ABANDONED,
    COMPLETING,
    TransactionManagerState,
    become,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest, EndTxnResponse
from tidelog.core.wire.schema import Message

RETRY_SOON_MS: Final = 20
_S = TransactionManagerState
_ENDS = {TransactionStep.COMMIT, TransactionStep.ABORT}
_OFFSET_STEPS = {TransactionStep.ADD_OFFSETS, TransactionStep.COMMIT_OFFSETS}


class _OffsetsToCommit:
    """Offsets of one group that belong to the transaction."""

    def __init__(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        ticket: TransactionTicket,
        *,
        is_group_added: bool,
    ) -> None:
        self.offsets = dict(offsets)
        self.group = group
        self.ticket = ticket
        self.is_group_added = is_group_added
        self.is_in_doubt = False
        """The group may have been added: the answer is not there yet."""


# Size: one state machine whose calls, requests and answers share all of its fields.
class TransactionManager:
    """Belongs to a producer, which calls `run`, and reports what becomes of its batches."""

    def __init__(self, client: Client, config: ProducerConfig, sequences: Sequences) -> None:
        assert config.transactional_id is not None
        self.transactional_id = config.transactional_id
        self._client = client
        self._config = config
        self._sequences = sequences
        self.state = _S.UNINITIALIZED
        self.failure: TransactionFailed | None = None
        """Why it is in an error state."""
        self.protocol = TransactionProtocol.CLASSIC
        """Of the transaction that is open or comes next; known when it is ready."""
        self._coordinator = self._new_channel()
        self._group_coordinators: dict[str, CoordinatorChannel] = {}
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        self._call: TransactionTicket | None = None
        """The last init, commit or abort."""
        self._partitions: set[TopicPartition] = set()
        """Those that may be written to."""
        self._to_add: set[TopicPartition] = set()
        self._adding: set[TopicPartition] = set()
        """In a request that has no answer yet."""
        self._offsets: deque[_OffsetsToCommit] = deque()
        self._is_started = False
        """The coordinator may know of this transaction."""
        self._ended: TransactionOk | None = None
        """It is decided; only the next producer epoch is missing."""
        self._may_be_committed = False
        self._needs_bump = False
        self._is_in_flight = False
        self._failures = 0
        self._retry_at_ms = 0

    # What a program calls

    def init_transactions(
        self, now_ms: int, then: OnTransactionOutcome | None = None
    ) -> TransactionTicket:
        """Fence all former producers of this id and end their transaction."""
        pending = self._pending(TransactionOperation.INIT_TRANSACTIONS)
        if pending is not None:
            return pending
        self._raise_failure()
        if self.state is not _S.UNINITIALIZED:
            raise IllegalTransactionState("init_transactions is called once, before all else")
        self._sequences.identity = None
        self._become(_S.INITIALIZING)
        return self._begin_call(TransactionOperation.INIT_TRANSACTIONS, then)

    def begin_transaction(self) -> None:
        """Nothing is sent: a transaction begins with its first record or offsets."""
        self._pending(None)
        self._raise_failure()
        if self.state is _S.UNINITIALIZED:
            raise IllegalTransactionState("begin_transaction: call init_transactions first")
        if self.state is not _S.READY:
            raise IllegalTransactionState(
                "begin_transaction: commit or abort the open transaction first"
            )
        self._become(_S.IN_TRANSACTION)

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        now_ms: int,
        then: OnTransactionOutcome | None = None,
    ) -> TransactionTicket:
        """They count for the group when the transaction is committed."""
        self._check_open("send_offsets_to_transaction")
        ticket = TransactionTicket(TransactionOperation.SEND_OFFSETS, then)
        if not offsets:
            ticket.complete(TransactionOk(self._sequences.identity), now_ms)
            return ticket
        is_version_2 = self.protocol is TransactionProtocol.VERSION_2
        self._is_started |= is_version_2
        self._offsets.append(_OffsetsToCommit(offsets, group, ticket, is_group_added=is_version_2))
        return ticket

    def commit_transaction(
        self, now_ms: int, then: OnTransactionOutcome | None = None
    ) -> TransactionTicket:
        """Send the rest, then decide. A second call while it is under way gives the same ticket."""
        pending = self._pending(TransactionOperation.COMMIT)
        if pending is not None:
            return pending
        self._check_open("commit_transaction")
        self._become(_S.COMMITTING)
        return self._begin_call(TransactionOperation.COMMIT, then)

    def abort_transaction(
        self, now_ms: int, then: OnTransactionOutcome | None = None
    ) -> TransactionTicket:
        """Give up what has not left, then decide."""
        pending = self._pending(TransactionOperation.ABORT)
        if pending is not None:
            return pending
        if self.state is not _S.ABORTABLE_ERROR:
            self._check_open("abort_transaction")
        self._become(_S.ABORTING)
        self._to_add.clear()
        reason = "the transaction was aborted before they were committed"
        self._give_up_offsets(
            TransactionFailed(TRANSACTION_ABORTED, reason, FailureKind.ABORTABLE), now_ms
        )
        return self._begin_call(TransactionOperation.ABORT, then)

    def check_send(self) -> None:
        """Raises unless a record may be sent now."""
        self._check_open("send")

    def _begin_call(
        self, operation: TransactionOperation, then: OnTransactionOutcome | None
    ) -> TransactionTicket:
        self._call = TransactionTicket(operation, then)
        self._retry_at_ms = self._failures = 0
        return self._call

    def _pending(self, operation: TransactionOperation | None) -> TransactionTicket | None:
        """The same call under way; another one must end first."""
        if self._call is None or self._call.is_done:
            return None
        if self._call.operation is not operation:
            raise IllegalTransactionState(
                f"{self._call.operation.value} is not over: call it again, and wait for its end"
            )
        return self._call

    def _check_open(self, name: str) -> None:
        self._pending(None)
        self._raise_failure()
        if self.state is _S.UNINITIALIZED:
            raise IllegalTransactionState(f"{name}: call init_transactions first")
        if self.state is not _S.IN_TRANSACTION:
            raise IllegalTransactionState(f"{name}: no transaction is open; call begin_transaction")

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise exception_for(self.failure)

    # What the producer reports

    @property
    def is_busy(self) -> bool:
        """A call of the program is under way."""
        return self._call is not None and not self._call.is_done

    @property
    def is_completing(self) -> bool:
        return self.state in COMPLETING

    @property
    def is_abandoned(self) -> bool:
        """What has not left is not to be sent any more."""
        return self.state in ABANDONED

    @property
    def produce_versions(self) -> range:
        return requests.VERSIONS[self.protocol][ProduceRequest]

    def add_partition(self, partition: TopicPartition) -> None:
        """A record goes there; unless a write adds it, it is added before."""
        if self.protocol is TransactionProtocol.VERSION_2:
            self._partitions.add(partition)
            self._is_started = True
        elif partition not in self._partitions and partition not in self._adding:
            self._to_add.add(partition)

    def may_send(self, partition: TopicPartition) -> bool:
        return partition in self._partitions and self.state is not _S.FATAL_ERROR

    def on_send_failed(self, error: str, reason: str, now_ms: int, *, was_sent: bool) -> None:
        """A record or a batch has failed for good, and with it the transaction."""
        decision = StepDecision.ABORT_AND_BUMP if was_sent else StepDecision.ABORT
        if was_sent and error in ErrorCode.__members__:
            decision = decide(TransactionStep.PRODUCE, ErrorCode[error])
        self._fail(decision, error, f"could not write records: {reason}", now_ms)

    def close(self, now_ms: int) -> None:
        """Whoever waits gets an outcome; nothing is sent any more."""
        if self.state is not _S.FATAL_ERROR:
            self._fail(StepDecision.FATAL, PRODUCER_CLOSED, "the producer was closed", now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        if not self._is_in_flight:
            yield self._retry_at_ms
        yield from self._coordinator.deadlines_ms()
        for _, channel in sorted(self._group_coordinators.items()):
            yield from channel.deadlines_ms()

    # Requests

    def run(self, now_ms: int, *, is_drained: bool) -> None:
        """Send the next request that is due; `is_drained`: every record has its outcome."""
        while not self._is_in_flight and now_ms >= self._retry_at_ms:
            step = self._next_step(is_drained=is_drained)
            if step is None:
                return
            if step in _ENDS and not self._is_started:
                self._end(None, now_ms)
                continue
            channel = self._channel_of(step)
            if channel.is_usable(now_ms):
                self._send(step, channel, now_ms)
            elif channel.refusal is not None:
                self._coordinator_refused(step, channel.refusal, now_ms)
            else:
                return

    def _next_step(self, *, is_drained: bool) -> TransactionStep | None:
        if self.state is _S.INITIALIZING:
            return TransactionStep.INIT_PRODUCER_ID
        if self.state not in (_S.IN_TRANSACTION, _S.COMMITTING, _S.ABORTING):
            return None
        if self._to_add or self._adding:
            return TransactionStep.ADD_PARTITIONS
        if self._offsets:
            is_added = self._offsets[0].is_group_added
            return TransactionStep.COMMIT_OFFSETS if is_added else TransactionStep.ADD_OFFSETS
        if self.state is _S.IN_TRANSACTION or not is_drained:
            return None
        return TransactionStep.COMMIT if self.state is _S.COMMITTING else TransactionStep.ABORT

    def _new_channel(self) -> CoordinatorChannel:
        return CoordinatorChannel(
            self._client,
            self.transactional_id,
            key_type=TRANSACTION_KEY_TYPE,
            connection_name="transactions",
        )

    def _channel_of(self, step: TransactionStep) -> CoordinatorChannel:
        if step is not TransactionStep.COMMIT_OFFSETS:
            return self._coordinator
        group_id = self._offsets[0].group.group_id
        if group_id not in self._group_coordinators:
            self._group_coordinators[group_id] = CoordinatorChannel(self._client, group_id)
        return self._group_coordinators[group_id]

    def _coordinator_refused(self, step: TransactionStep, code: ErrorCode, now_ms: int) -> None:
        """The cluster names no coordinator; a later transaction may ask again."""
        if step is TransactionStep.COMMIT_OFFSETS:
            del self._group_coordinators[self._offsets[0].group.group_id]
            found = TransactionStep.FIND_GROUP_COORDINATOR
        else:
            self._coordinator = self._new_channel()
            found = TransactionStep.FIND_COORDINATOR
        self._fail(decide(found, code), code.name, f"could not {found.value}", now_ms)

    def _send(self, step: TransactionStep, channel: CoordinatorChannel, now_ms: int) -> None:
        offsets = self._offsets[0] if step in _OFFSET_STEPS else None
        was_in_doubt = self._may_be_committed
        request = self._request(step)

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            self._is_in_flight = False
            if self.state is _S.FATAL_ERROR:
                return
            codes = (
                (ErrorCode.NETWORK_EXCEPTION,)
                if isinstance(answer, NoAnswer)
                else requests.error_codes(answer)
            )
            code = heaviest(step, codes)
            if step is TransactionStep.COMMIT and code in NOT_DECIDED:
                self._may_be_committed = was_in_doubt
            self._on_answer(step, answer, code, channel, offsets, now_ms)

        versions = requests.VERSIONS[self.protocol][type(request)]
        if not channel.send(request, answered, now_ms=now_ms, versions=versions):
            reason = f"could not {step.value}: broker {channel.node_id} speaks no version of it"
            self._fail(StepDecision.FATAL, ErrorCode.UNSUPPORTED_VERSION.name, reason, now_ms)
            return
        self._is_in_flight = True
        self._may_be_committed |= step is TransactionStep.COMMIT
        if step is TransactionStep.ADD_OFFSETS:
            assert offsets is not None
            offsets.is_in_doubt = True

    def _request(self, step: TransactionStep) -> Message:
        name, identity = self.transactional_id, self._sequences.identity
        if step is TransactionStep.INIT_PRODUCER_ID:
            timeout_ms = self._config.transaction_timeout_ms
            return requests.init_producer_id(name, identity, timeout_ms=timeout_ms)
        assert identity is not None
        if step is TransactionStep.ADD_PARTITIONS:
            self._adding |= self._to_add
            self._to_add.clear()
            return requests.add_partitions(name, identity, self._adding)
        if step is TransactionStep.ADD_OFFSETS:
            return requests.add_offsets(name, identity, self._offsets[0].group.group_id)
        if step is TransactionStep.COMMIT_OFFSETS:
            first = self._offsets[0]
            return requests.commit_offsets(name, identity, first.offsets, first.group)
        is_commit = step is TransactionStep.COMMIT
        return requests.end_transaction(name, identity, is_commit=is_commit)

    # Answers

    def _on_answer(
        self,
        step: TransactionStep,
        answer: Message | NoAnswer,
        code: ErrorCode,
        channel: CoordinatorChannel,
        offsets: _OffsetsToCommit | None,
        now_ms: int,
    ) -> None:
        decision = decide(step, code)
        if decision is StepDecision.FIND_COORDINATOR:
            channel.forget()
        if decision in (StepDecision.RETRY, StepDecision.FIND_COORDINATOR):
            self._retry_at_ms = now_ms + self._back_off.pause_ms(self._failures)
            self._failures += 1
            return
        if decision is StepDecision.RETRY_SOON:
            pause_ms = min(RETRY_SOON_MS, self._client.config.retry_backoff_ms)
            self._retry_at_ms = now_ms + pause_ms
            return
        self._failures = 0
        if step is TransactionStep.ADD_PARTITIONS:
            added, self._adding = self._adding, set()
            if decision is StepDecision.DONE:
                self._partitions |= added
                self._is_started = True
        if offsets is not None:
            offsets.is_in_doubt = False
            self._on_offsets_answer(step, decision, offsets, now_ms)
        if decision is not StepDecision.DONE:
            self._fail(decision, code.name, f"could not {step.value}", now_ms)
        elif isinstance(answer, InitProducerIdResponse):
            self._initialized(requests.next_identity(answer), now_ms)
        elif isinstance(answer, EndTxnResponse):
            self._end(requests.next_identity(answer), now_ms)

    def _on_offsets_answer(
        self,
        step: TransactionStep,
        decision: StepDecision,
        offsets: _OffsetsToCommit,
        now_ms: int,
    ) -> None:
        """Once the program has given them up, only whether the transaction began matters."""
        if step is TransactionStep.ADD_OFFSETS and decision is StepDecision.DONE:
            offsets.is_group_added = self._is_started = True
            if not offsets.ticket.is_done:
                return
        if decision is StepDecision.DONE and not offsets.ticket.is_done:
            offsets.ticket.complete(TransactionOk(self._sequences.identity), now_ms)
        if offsets.ticket.is_done and offsets in self._offsets:
            self._offsets.remove(offsets)

    def _initialized(self, identity: ProducerIdAndEpoch | None, now_ms: int) -> None:
        assert identity is not None
        self._sequences.restart_all(identity)
        self.protocol = self._newest_protocol()
        self._become(_S.READY)
        self._finish_call(self._ended or TransactionOk(identity), now_ms)

    def _end(self, identity: ProducerIdAndEpoch | None, now_ms: int) -> None:
        """The transaction is over, or never began; `identity` is that of the next one."""
        ended = TransactionOk(self._sequences.identity)
        former = self.protocol
        self.protocol = self._newest_protocol()
        if identity is not None:
            self._sequences.restart_all(identity)
        elif former is not self.protocol and self.protocol is TransactionProtocol.VERSION_2:
            self._needs_bump = True
        self._partitions.clear()
        self._is_started = self._may_be_committed = False
        assert not (self._to_add or self._adding or self._offsets)
        if self._needs_bump:
            self._needs_bump = False
            self._ended = ended
            self._become(_S.INITIALIZING)
        else:
            self._become(_S.READY)
            self._finish_call(ended, now_ms)

    def _finish_call(self, outcome: TransactionOk, now_ms: int) -> None:
        self._ended = None
        assert self._call is not None
        self._call.complete(outcome, now_ms)

    def _newest_protocol(self) -> TransactionProtocol:
        """As it is now, if the coordinator cannot be asked."""
        if self._config.only_protocol is not None:
            return self._config.only_protocol
        if not self._coordinator.is_ready():
            return self.protocol
        version_2 = TransactionProtocol.VERSION_2
        if self._client.connections.feature_level(requests.TRANSACTION_VERSION) < 2:
            return TransactionProtocol.CLASSIC
        for kind in (ProduceRequest, EndTxnRequest):
            version = self._coordinator.version(kind)
            if version is None or version < requests.VERSIONS[version_2][kind][0]:
                return TransactionProtocol.CLASSIC
        return version_2

    # Failures

    def _fail(self, decision: StepDecision, error: str, reason: str, now_ms: int) -> None:
        if decision is StepDecision.FATAL:
            self._fail_for_good(error, reason, now_ms)
            return
        if decision is StepDecision.ABORT_AND_BUMP:
            self._needs_bump |= self.protocol is TransactionProtocol.CLASSIC
        if self.state is _S.INITIALIZING:
            self._become(_S.UNINITIALIZED)
            self._fail_call(TransactionFailed(error, reason, FailureKind.REINITIALIZE), now_ms)
        elif self.state in (_S.IN_TRANSACTION, _S.COMMITTING):
            failure = TransactionFailed(error, reason, FailureKind.ABORTABLE)
            self.failure = failure
            self._become(_S.ABORTABLE_ERROR)
            self._to_add.clear()
            self._fail_call(failure, now_ms)
            self._give_up_offsets(failure, now_ms)

    def _fail_for_good(self, error: str, reason: str, now_ms: int) -> None:
        failure = TransactionFailed(error, reason, FailureKind.FATAL)
        self.failure = failure
        self._sequences.fatal = (error, reason)
        self._become(_S.FATAL_ERROR)
        self._adding.clear()
        for each in self._offsets:
            each.is_in_doubt = False
        self._fail_call(failure, now_ms)
        self._give_up_offsets(failure, now_ms)

    def _fail_call(self, failure: TransactionFailed, now_ms: int) -> None:
        call = self._call
        if call is None or call.is_done:
            return
        if self._ended is not None:
            # It is committed or aborted, whatever becomes of the next one.
            self._finish_call(self._ended, now_ms)
        elif call.operation is TransactionOperation.COMMIT:
            call.complete(failure._replace(is_unknown=self._may_be_committed), now_ms)
        else:
            call.complete(failure, now_ms)

    def _give_up_offsets(self, failure: TransactionFailed, now_ms: int) -> None:
        """Those whose group may have been added stay, until that is known."""
        given_up, self._offsets = self._offsets, deque()
        for each in given_up:
            if each.is_in_doubt:
                self._offsets.append(each)
        for each in given_up:
            if not each.ticket.is_done:
                each.ticket.complete(failure, now_ms)

    def _become(self, state: TransactionManagerState) -> None:
        self.state = become(self.state, state)
        if state not in (_S.ABORTABLE_ERROR, _S.FATAL_ERROR):
            self.failure = None
        identity = self._sequences.identity
        self._client.trace.emit(
            TransactionStateChanged(
                transactional_id=self.transactional_id,
                state=state.name,
                producer_id=None if identity is None else identity.producer_id,
                producer_epoch=None if identity is None else identity.producer_epoch,
                error=None if self.failure is None else self.failure.error,
            )
        )
