"""A transaction coordinator over a log in memory: the real runtime and shard, no broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.core.coordinator.toy import MemoryLog
from tidelog.core.coordinator.hosted_shard import CoordinatorPort
from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.runtime import CoordinatorRuntime
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.limits import EPOCH_PER_TRANSACTION
from tidelog.core.model.trace import ListTrace
from tidelog.core.transactions.transaction_calls import (
    AddPartitionsCall,
    EndTransactionCall,
    InitProducerCall,
    MarkersDue,
    ProducerAnswer,
    VerifyPartitionsCall,
)
from tidelog.core.transactions.transaction_metadata import CLASSIC, Partition
from tidelog.core.transactions.transaction_shard import TransactionSettings, TransactionShard
from tidelog.core.transactions.transaction_state import TransactionStatus

WALL_MS = 1_000_000
TIMEOUT_MS = 60_000


class LoneCoordinator:
    """One partition; commits at once unless told otherwise, and keeps the markers that are due."""

    def __init__(
        self,
        *,
        log: MemoryLog | None = None,
        transaction_version: int = EPOCH_PER_TRANSACTION,
        settings: TransactionSettings | None = None,
    ) -> None:
        self.now_ms = 0
        self.log = MemoryLog() if log is None else log
        self.transaction_version = transaction_version
        self.alarms = Alarms()
        self.answers: dict[object, Any] = {}
        self.due: list[MarkersDue] = []
        self.commits_at_once = True
        self._calls = 0
        self._next_producer_id = 100
        self._settings = settings or TransactionSettings()
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            topic="__transaction_state",
            make_shard=self._make,
            port=CoordinatorPort(
                answer=self._answer,
                refuse=self._answer,
                alarms=self.alarms,
                wall_ms=lambda now_ms: now_ms + WALL_MS,
                trace=ListTrace(),
                commit_timeout_ms=5_000,
                compression=0,
                read_bytes_max=10_000,
            ),
            on_committed=self._on_committed,
        )
        self.runtime.lead(0, self.log, leader_epoch=self.log.leader_epoch, now_ms=0)
        self.pass_time(20)

    def _make(self, index: int) -> TransactionShard:
        return TransactionShard(
            settings=self._settings,
            transaction_version=lambda: self.transaction_version,
            wall_ms=lambda now_ms: now_ms + WALL_MS,
        )

    def _answer(self, reply_to: ReplyTo, answer: object) -> None:
        assert reply_to not in self.answers, "answered twice"
        self.answers[reply_to] = answer

    def _on_committed(self, index: int, leader_epoch: int, work: object) -> None:
        assert isinstance(work, MarkersDue)
        self.due.append(work)

    @property
    def shard(self) -> TransactionShard:
        return self.runtime.hosted[0].shard

    # Time

    def settle(self) -> None:
        if self.commits_at_once:
            self.log.commit()
        self.runtime.settle()
        self.runtime.check()

    def pass_time(self, milliseconds: int) -> None:
        """One turn now, and one at the end."""
        for step in (1, milliseconds - 1):
            self.now_ms += step
            self.alarms.run(self.now_ms)
            self.settle()

    # Calls

    def submit(self, operation: Callable[[TransactionShard, ReplyTo, int], Outcome]) -> ReplyTo:
        """Under which name the answer will be found."""
        self._calls += 1
        name = ReplyTo(f"call {self._calls}")
        self.runtime.submit(0, operation, name, self.now_ms)
        self.settle()
        return name

    def answer(self, operation: Callable[[TransactionShard, ReplyTo, int], Outcome]) -> Any:
        """None while the caller waits."""
        return self.answers.get(self.submit(operation))

    def init(
        self, name: str = "t", *, expected: ProducerIdAndEpoch | None = None, wants_id: bool = True
    ) -> Any:
        fresh = None
        if wants_id:
            self._next_producer_id += 1
            fresh = self._next_producer_id
        call = InitProducerCall(
            transactional_id=name, timeout_ms=TIMEOUT_MS, expected=expected, fresh_producer_id=fresh
        )
        return self.answer(lambda shard, to, now_ms: shard.init_producer(call, to, now_ms))

    def begin(self, name: str = "t") -> ProducerIdAndEpoch:
        answer = self.init(name)
        assert isinstance(answer, ProducerAnswer) and answer.producer is not None, answer
        return answer.producer

    def add(
        self,
        producer: ProducerIdAndEpoch,
        *partitions: Partition,
        name: str = "t",
        client_version: int = CLASSIC,
    ) -> Any:
        call = AddPartitionsCall(
            transactional_id=name,
            producer=producer,
            partitions=frozenset(partitions),
            client_version=client_version,
        )
        return self.answer(lambda shard, to, now_ms: shard.add_partitions(call, to, now_ms))

    def verify(self, producer: ProducerIdAndEpoch, *partitions: Partition, name: str = "t") -> Any:
        call = VerifyPartitionsCall(
            transactional_id=name, producer=producer, partitions=frozenset(partitions)
        )
        return self.answer(lambda shard, to, now_ms: shard.verify_partitions(call, to, now_ms))

    def end(
        self,
        producer: ProducerIdAndEpoch,
        *,
        is_commit: bool = True,
        name: str = "t",
        client_version: int = CLASSIC,
        fresh_producer_id: int | None = None,
    ) -> Any:
        call = EndTransactionCall(
            transactional_id=name,
            producer=producer,
            is_commit=is_commit,
            client_version=client_version,
            fresh_producer_id=fresh_producer_id,
        )
        return self.answer(lambda shard, to, now_ms: shard.end(call, to, now_ms))

    def write_markers(self) -> None:
        """All that are due are written everywhere."""
        due, self.due = self.due, []
        for each in due:
            self.runtime.perform(
                0,
                lambda shard, now_ms, each=each: shard.on_markers_written(  # type: ignore[misc]
                    each.transactional_id, each.producer, now_ms
                ),
                self.now_ms,
            )
        self.settle()

    # Failover

    def successor(self) -> LoneCoordinator:
        """Another node leads the same log in the next leader epoch."""
        self.log.leader_epoch += 1
        self.runtime.resign(0, "another node leads it")
        return LoneCoordinator(
            log=self.log, transaction_version=self.transaction_version, settings=self._settings
        )


def status(coordinator: LoneCoordinator, name: str = "t") -> TransactionStatus:
    return coordinator.shard.by_id[name].status


def given(producer_id: int, producer_epoch: int) -> ProducerAnswer:
    return ProducerAnswer(ErrorCode.NONE, ProducerIdAndEpoch(producer_id, producer_epoch))
