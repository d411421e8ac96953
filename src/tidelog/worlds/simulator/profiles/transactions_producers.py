"""Transactional producers of a run: small, and of both protocols.

A classic one adds partitions before it writes to them, and keeps its producer epoch. One of version
2 lets its writes add them, and gets the next epoch with the end of each transaction. One request is
under way at a time. Whoever does not know what became of a write aborts.

A classic producer that gave up waiting for a write, an offset or an end asks for the next epoch:
what is still on its way could join the next transaction, which Kafka's classic protocol does not
prevent.
"""

from __future__ import annotations

from tidelog.client.producer import transaction_requests as requests
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.wire.messages.api_00_produce import ProduceResponse
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnResponse
from tidelog.core.wire.messages.api_26_end_txn import EndTxnResponse
from tidelog.core.wire.records import NewRecord, build
from tidelog.core.wire.schema import Message
from tidelog.judge.anomalies import UNEXPECTED_ANSWER
from tidelog.judge.history import CallOutcome
from tidelog.judge.transactions.transaction_history import (
    ProducerBegan,
    ProducerIdentity,
    TransactionalWrite,
    TransactionBegan,
    TransactionEnd,
)
from tidelog.worlds.simulator import requests as plain_requests
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.payloads import to_value
from tidelog.worlds.simulator.profiles.transactions_context import (
    CommitInDoubt,
    FencedByClock,
    FencedBySuccessor,
    FencedCommit,
    TransactionAborted,
    TransactionCommitted,
    TransactionsContext,
    WriteGivenUp,
    outcome_of,
)
from tidelog.worlds.simulator.profiles.transactions_plan import ProducerPlan
from tidelog.worlds.simulator.profiles.transactions_scripts import (
    RETRY_MS,
    TRANSACTION_KEY,
    Rest,
    Script,
    ScriptedClient,
)
from tidelog.worlds.simulator.requests import TopicName

INIT_VERSION = 4
ADD_VERSION = 3
CLASSIC_END, END_WITH_EPOCH = 4, 5
ACKS_ALL = -1
WRITE_TRIES = (2, 4, 8)
CALL_TRIES = 12
END_TRIES = (2, 8, 25)
BYTES_MAX = 120

E = ErrorCode
FENCED = frozenset({E.PRODUCER_FENCED, E.INVALID_PRODUCER_ID_MAPPING})
ABORTS = frozenset(
    {
        E.INVALID_PRODUCER_EPOCH,  # whether we are fenced the coordinator says, when we abort
        E.TRANSACTION_ABORTABLE,
        E.INVALID_TXN_STATE,
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        E.UNKNOWN_PRODUCER_ID,
    }
)
SEEK_AGAIN = frozenset({E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE})
RETRIED = frozenset(
    {
        *SEEK_AGAIN,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.CONCURRENT_TRANSACTIONS,
        E.REQUEST_TIMED_OUT,
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.NOT_ENOUGH_REPLICAS,
        E.KAFKA_STORAGE_ERROR,
        E.NETWORK_EXCEPTION,
        E.LEADER_NOT_AVAILABLE,
    }
)


class FencedFromTransactions(TidelogError):
    """Somebody else has the transactional id, or the transaction took too long."""


class MustAbort(TidelogError):
    """The transaction cannot be committed, or is not meant to be."""


class GaveUp(TidelogError):
    """No answer for too long: begin anew."""


class TransactionalProducer(ScriptedClient):
    """One process; another one may have the same transactional id later."""

    def __init__(self, context: TransactionsContext, plan: ProducerPlan, number: int) -> None:
        super().__init__(
            context,
            f"{plan.transactional_id}.{number}",
            request_timeout_ms=plan.request_timeout_ms,
        )
        self.plan = plan
        self.transactional_id = plan.transactional_id
        self.is_newest = True
        """No later process has the id."""
        self._identity = ProducerIdAndEpoch(-1, -1)
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()
        self._transaction = ""
        self._has_sent = False
        """The coordinator may know of the transaction."""
        self._in_doubt = False
        """Something of it may still be on its way."""
        self.given_up = 0
        """How many of its transactions were aborted because of that."""

    @property
    def identity(self) -> ProducerIdAndEpoch:
        return self._identity

    # Life.

    def living(self) -> Script[None]:
        """Begin, and one transaction after the other until the run is over, or it is fenced."""
        while not self._is_over():
            try:
                yield from self._beginning(None)
                while not self._is_over():
                    yield Rest(self.random.randint(1, self.plan.pace_ms))
                    yield from self._next_transaction()
            except GaveUp:
                continue
            except FencedFromTransactions:
                trace = self.run.world.trace
                if not self.is_newest:
                    trace.emit("producers", FencedBySuccessor(self.name))
                    return
                trace.emit("producers", FencedByClock(self.name))

    def _is_over(self) -> bool:
        return self.run.is_over

    def _next_transaction(self) -> Script[None]:
        partitions = self.run.partitions_of(self.run.transactions.source)
        batches = [
            (
                self.random.choice(partitions),
                [self.run.new_payload(self.name) for _ in range(self.random.choice((1, 1, 3)))],
            )
            for _ in range(self.random.choice((1, 2, 3, 4)))
        ]
        self._open()
        try:
            for partition, payloads in batches:
                yield from self._writing(partition, payloads)
                if self.random.random() < 0.2:
                    yield Rest(self.random.randint(1, 60))
            if self.random.random() < self.plan.abort_chance:
                raise MustAbort
            yield from self._ending(is_commit=True)
        except MustAbort:
            yield from self._ending(is_commit=False)
        yield from self._closing()

    # The parts of a transaction.

    def _beginning(self, expected: ProducerIdAndEpoch | None) -> Script[None]:
        """An identity that fences all before it, or the next epoch of this one."""
        request = requests.init_producer_id(
            self.transactional_id, expected, timeout_ms=self.plan.timeout_ms
        )
        while True:
            invoked_us = self.run.world.now_us
            reply = yield from self._asking_coordinator(request, INIT_VERSION)
            if not isinstance(reply, InitProducerIdResponse):
                yield Rest(RETRY_MS)
                continue
            error = E(reply.error_code)
            if error is E.NONE:
                break
            if error in FENCED | {E.INVALID_PRODUCER_EPOCH}:
                raise FencedFromTransactions
            yield from self._before_retry(request, error)
        self._become(ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch))
        self.run.record_transaction(
            ProducerBegan(
                at_us=self.run.world.now_us,
                invoked_us=invoked_us,
                producer=self.name,
                transactional_id=self.transactional_id,
                identity=ProducerIdentity(*self._identity),
            )
        )

    def _become(self, identity: ProducerIdAndEpoch) -> None:
        if identity != self._identity:
            self._sequences.clear()
        self._identity = identity

    def _open(self) -> None:
        self._transaction = self.run.new_transaction(self.transactional_id)
        self._added.clear()
        self._has_sent = self._in_doubt = False
        self.run.record_transaction(
            TransactionBegan(
                at_us=self.run.world.now_us,
                producer=self.name,
                transactional_id=self.transactional_id,
                transaction=self._transaction,
                identity=ProducerIdentity(*self._identity),
            )
        )

    def _writing(self, partition: TopicPartition, payloads: list[str]) -> Script[None]:
        if not self.plan.is_version_2 and partition not in self._added:
            yield from self._adding(partition)
        sequence = self._sequences.get(partition, 0)
        now_ms = self.run.world.now_ms
        batch = build(
            [
                NewRecord(to_value(each, self.random.randint(1, BYTES_MAX)), timestamp_ms=now_ms)
                for each in payloads
            ],
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        for _ in range(self.random.choice(WRITE_TRIES)):
            error = yield from self._trying_to_write(partition, payloads, bytes(batch))
            if error is E.NONE:
                self._sequences[partition] = sequence + len(payloads)
                return
            if isinstance(error, ErrorCode):
                self._judge_error(error, "Produce")
            self.refresh()
            yield Rest(RETRY_MS)
        self._give_up("no answer")

    def _trying_to_write(
        self, partition: TopicPartition, payloads: list[str], batch: bytes
    ) -> Script[ErrorCode | CallFailed]:
        led = yield from self.finding_leader(str(partition))
        if led is None:
            return CallFailed(reason="no leader", was_sent=False)
        topic = TopicName(partition.topic, self._topic_ids[partition.topic])
        request = plain_requests.produce(topic, partition.index, batch, acks=ACKS_ALL)
        request.transactional_id = self.transactional_id
        now_us = self.run.world.now_us
        self._has_sent = True
        attempt = self.run.begin_attempt(
            TransactionalWrite(
                at_us=now_us,
                invoked_us=now_us,
                transaction=self._transaction,
                partition=str(partition),
                payloads=tuple(payloads),
                outcome=CallOutcome.UNKNOWN,
            )
        )
        reply = yield from self.asking(request, self.plan.produce_version, led.leader)
        if isinstance(reply, ProduceResponse):
            result = reply.responses[0].partition_responses[0]
            error = E(result.error_code)
            base_offset = result.base_offset if error is E.NONE else None
            self.run.finish_attempt(attempt, error, base_offset=base_offset)
            return error
        assert isinstance(reply, CallFailed)
        self.run.finish_attempt(attempt, reply)
        return reply

    def _adding(self, partition: TopicPartition) -> Script[None]:
        request = requests.add_partitions(self.transactional_id, self._identity, [partition])
        for _ in range(CALL_TRIES):
            self._has_sent = True
            reply = yield from self._asking_coordinator(request, ADD_VERSION)
            if isinstance(reply, AddPartitionsToTxnResponse):
                (error,) = requests.error_codes(reply)
                if error is E.NONE:
                    self._added.add(partition)
                    return
                if error is E.INVALID_PRODUCER_EPOCH:
                    raise FencedFromTransactions
                self._judge_error(error, "AddPartitionsToTxn")
                yield from self._before_retry(request, error)
            else:
                yield Rest(RETRY_MS)
        self._give_up("not added")

    def _ending(self, *, is_commit: bool) -> Script[None]:
        """Ask until there is an answer; an empty transaction is over without a word."""
        if not self._has_sent:
            return
        request = requests.end_transaction(
            self.transactional_id, self._identity, is_commit=is_commit
        )
        version = END_WITH_EPOCH if self.plan.is_version_2 else CLASSIC_END
        for _ in range(self.random.choice(END_TRIES)):
            now_us = self.run.world.now_us
            attempt = self.run.begin_attempt(
                TransactionEnd(
                    at_us=now_us,
                    invoked_us=now_us,
                    transaction=self._transaction,
                    is_commit=is_commit,
                    outcome=CallOutcome.UNKNOWN,
                )
            )
            reply = yield from self._asking_coordinator(request, version)
            if isinstance(reply, CallFailed):
                self.run.finish_attempt(attempt, reply)
                self._in_doubt |= reply.was_sent
                yield Rest(RETRY_MS)
                continue
            assert isinstance(reply, EndTxnResponse)
            error = E(reply.error_code)
            self.run.finish_attempt(attempt, error)
            if error is E.NONE:
                self._note_end(is_commit=is_commit)
                if self.plan.is_version_2:
                    self._become(ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch))
                return
            if error in FENCED | {E.INVALID_PRODUCER_EPOCH}:
                if is_commit:
                    trace = self.run.world.trace
                    trace.emit("producers", FencedCommit(self._transaction))
                raise FencedFromTransactions
            if error is E.INVALID_TXN_STATE and not is_commit:
                return  # the coordinator has never heard of it
            self._judge_error(error, "EndTxn")
            self._in_doubt |= outcome_of(error) is CallOutcome.UNKNOWN
            yield from self._before_retry(request, error)
        if is_commit:
            self.run.world.trace.emit("producers", CommitInDoubt(self._transaction))
        raise GaveUp

    def _note_end(self, *, is_commit: bool) -> None:
        trace = self.run.world.trace
        if is_commit:
            trace.emit("producers", TransactionCommitted(self._transaction))
        else:
            trace.emit("producers", TransactionAborted(self._transaction))
            self.given_up += self._in_doubt

    def _closing(self) -> Script[None]:
        if self._in_doubt and self._has_sent and not self.plan.is_version_2:
            yield from self._beginning(self._identity)

    # Answers.

    def _asking_coordinator(self, request: Message, version: int) -> Script[Reply]:
        return (
            yield from self.asking_coordinator(
                TRANSACTION_KEY, self.transactional_id, request, version
            )
        )

    def _before_retry(self, request: Message, error: ErrorCode) -> Script[None]:
        if error in SEEK_AGAIN:
            self.forget_coordinator(TRANSACTION_KEY, self.transactional_id)
        if error not in RETRIED:
            self._note_unexpected(type(request).__name__, error)
        yield Rest(RETRY_MS)

    def _judge_error(self, error: ErrorCode, request: str) -> None:
        """Return: try again."""
        if error in FENCED:
            raise FencedFromTransactions
        if error in ABORTS:
            self._give_up(error.name)
        if error not in RETRIED:
            self._note_unexpected(request, error)

    def _note_unexpected(self, request: str, error: ErrorCode) -> None:
        self.run.report_anomaly(UNEXPECTED_ANSWER, "-", request=request, answer=error.name)

    def _give_up(self, reason: str) -> None:
        self._in_doubt = True
        self.run.world.trace.emit("producers", WriteGivenUp(self._transaction, reason))
        raise MustAbort
