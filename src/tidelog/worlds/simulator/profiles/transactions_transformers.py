"""Consume, transform, produce: a producer that makes records of one topic out of another's.

Where its group stands is committed in the same transaction as the results. After everything that
did not end with a commit it asks where the group stands, and a group coordinator does not tell as
long as a transaction is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.client.group.offset_requests import ConsumerGroupMetadata, OffsetAndMetadata
from tidelog.client.producer import transaction_requests as requests
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnResponse
from tidelog.core.wire.messages.api_28_txn_offset_commit import TxnOffsetCommitResponse
from tidelog.judge.history import CallOutcome
from tidelog.judge.transactions.transaction_history import (
    GroupOffsetRead,
    OffsetsInTransaction,
    ReadRecord,
)
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.profiles.transactions_context import TransactionsContext
from tidelog.worlds.simulator.profiles.transactions_plan import GROUP, ProducerPlan
from tidelog.worlds.simulator.profiles.transactions_producers import (
    CALL_TRIES,
    SEEK_AGAIN,
    E,
    FencedFromTransactions,
    GaveUp,
    MustAbort,
    TransactionalProducer,
)
from tidelog.worlds.simulator.profiles.transactions_readers import WantedPartition, fetching
from tidelog.worlds.simulator.profiles.transactions_scripts import (
    GROUP_KEY,
    RETRY_MS,
    Rest,
    Script,
)

OFFSET_FETCH_VERSION = 8
ADD_OFFSETS_VERSION = 4
CLASSIC_OFFSETS, OFFSETS_THAT_ADD = 4, 5
RESULT_PREFIX = "bill."
RECORDS_MAX = 6

Found = tuple[TopicPartition, tuple[ReadRecord, ...], int]
"""A partition, its next records, and where it goes on."""


class Transformer(TransactionalProducer):
    """It goes on when the producers have stopped: every record must get its result."""

    def __init__(self, context: TransactionsContext, plan: ProducerPlan, number: int) -> None:
        super().__init__(context, plan, number)
        self.positions: dict[TopicPartition, int] = {}

    def missing(self) -> Iterator[str]:
        """Which records have no result yet."""
        for partition in self.run.partitions_of(self.run.transactions.source):
            end_offset = self.run.log_end(self.run.name_of(partition))
            position = self.positions.get(partition)
            if position is None or end_offset is None or position < end_offset:
                yield f"{self.name} is at {position} of {partition}: {end_offset}"

    def _is_over(self) -> bool:
        return self.run.is_quiet

    def _next_transaction(self) -> Script[None]:
        if not self.positions:
            yield from self._asking_positions()
        found = yield from self._reading_on()
        if found is None:
            return
        partition, records, next_offset = found
        if not records:
            # Only markers, and what was aborted: nothing to do about it.
            self.positions[partition] = next_offset
            return
        self._open()
        is_committed = False
        try:
            for record in records:
                target = self.random.choice(self.run.partitions_of(self.run.transactions.target))
                yield from self._writing(target, [self._result_name(record)])
            yield from self._committing_offset(partition, next_offset)
            if self.random.random() < self.plan.abort_chance and not self.run.is_healed:
                raise MustAbort
            yield from self._ending(is_commit=True)
            is_committed = True
        except MustAbort:
            yield from self._ending(is_commit=False)
        except (FencedFromTransactions, GaveUp):
            self.positions.clear()
            raise
        if is_committed:
            self.positions[partition] = next_offset
        else:
            self.positions.clear()
        yield from self._closing()

    def _result_name(self, record: ReadRecord) -> str:
        """Another one for each try: those of aborted transactions are told apart."""
        return f"{RESULT_PREFIX}{record.payload}@{self._transaction}"

    def _reading_on(self) -> Script[Found | None]:
        """The next records of some partition."""
        partition = self.random.choice(self.run.partitions_of(self.run.transactions.source))
        led = yield from self.finding_leader(str(partition))
        if led is None:
            return None
        position = self.positions[partition]
        wanted = WantedPartition(partition, position, led.leader_epoch)
        fetched = yield from fetching(self, [wanted], led.leader, is_committed=True)
        if not fetched:
            return None
        answer = fetched[0][2]
        if answer.next_offset == position:
            return None
        records = answer.records[:RECORDS_MAX]
        is_all = len(records) == len(answer.records)
        return partition, records, answer.next_offset if is_all else records[-1].offset + 1

    # Offsets.

    def _asking_positions(self) -> Script[None]:
        source = self.run.transactions.source
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=GROUP,
                    topics=[
                        OffsetFetchRequestTopics(
                            name=source.name, partition_indexes=list(range(source.partitions))
                        )
                    ],
                )
            ],
            require_stable=True,
        )
        while True:
            invoked_us = self.run.world.now_us
            reply = yield from self.asking_coordinator(
                GROUP_KEY, GROUP, request, OFFSET_FETCH_VERSION
            )
            if isinstance(reply, OffsetFetchResponse) and self._take(reply, invoked_us):
                return
            yield Rest(RETRY_MS)

    def _take(self, reply: OffsetFetchResponse, invoked_us: int) -> bool:
        """False: not all of them are known and stable."""
        group = reply.groups[0]
        if group.error_code != ErrorCode.NONE:
            if group.error_code in SEEK_AGAIN:
                self.forget_coordinator(GROUP_KEY, GROUP)
            return False
        results = [(topic.name, each) for topic in group.topics for each in topic.partitions]
        if any(each.error_code != ErrorCode.NONE for _, each in results):
            return False
        for topic, each in results:
            partition = TopicPartition(topic, each.partition_index)
            has_offset = each.committed_offset >= 0
            self.positions[partition] = max(each.committed_offset, 0)
            self.run.record_transaction(
                GroupOffsetRead(
                    at_us=self.run.world.now_us,
                    invoked_us=invoked_us,
                    reader=self.name,
                    group=GROUP,
                    partition=str(partition),
                    offset=each.committed_offset if has_offset else None,
                    transaction=each.metadata if has_offset else None,
                )
            )
        return True

    def _committing_offset(self, partition: TopicPartition, offset: int) -> Script[None]:
        if not self.plan.is_version_2:
            yield from self._adding_group()
        request = requests.commit_offsets(
            self.transactional_id,
            self._identity,
            {partition: OffsetAndMetadata(offset, None, self._transaction)},
            ConsumerGroupMetadata(GROUP),
        )
        version = OFFSETS_THAT_ADD if self.plan.is_version_2 else CLASSIC_OFFSETS
        for _ in range(CALL_TRIES):
            now_us = self.run.world.now_us
            attempt = self.run.begin_attempt(
                OffsetsInTransaction(
                    at_us=now_us,
                    invoked_us=now_us,
                    transaction=self._transaction,
                    group=GROUP,
                    partition=str(partition),
                    offset=offset,
                    outcome=CallOutcome.UNKNOWN,
                )
            )
            self._has_sent = True
            reply = yield from self.asking_coordinator(GROUP_KEY, GROUP, request, version)
            if isinstance(reply, CallFailed):
                self.run.finish_attempt(attempt, reply)
                self._in_doubt = True
                yield Rest(RETRY_MS)
                continue
            assert isinstance(reply, TxnOffsetCommitResponse)
            (error,) = requests.error_codes(reply)
            self.run.finish_attempt(attempt, error)
            if error is E.NONE:
                return
            self._in_doubt = True
            if error in SEEK_AGAIN:
                self.forget_coordinator(GROUP_KEY, GROUP)
            self._judge_error(error, "TxnOffsetCommit")
            yield Rest(RETRY_MS)
        self._give_up("offsets not committed")

    def _adding_group(self) -> Script[None]:
        request = requests.add_offsets(self.transactional_id, self._identity, GROUP)
        for _ in range(CALL_TRIES):
            self._has_sent = True
            reply = yield from self._asking_coordinator(request, ADD_OFFSETS_VERSION)
            if isinstance(reply, AddOffsetsToTxnResponse):
                error = E(reply.error_code)
                if error is E.NONE:
                    return
                if error is E.INVALID_PRODUCER_EPOCH:
                    raise FencedFromTransactions
                self._judge_error(error, "AddOffsetsToTxn")
                yield from self._before_retry(request, error)
            else:
                yield Rest(RETRY_MS)
        self._give_up("group not added")
