"""The transaction coordinator of a node: which transactional ids are here, and their markers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.metadata.changes import Change
from tidelog.core.metadata.features import TRANSACTION_VERSION
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import TRANSACTIONS_TOPIC
from tidelog.core.node.broker.producer_ids import ProducerIds
from tidelog.core.node.coordinators.broker_links import BrokerLinks
from tidelog.core.node.coordinators.marker_sender import MarkerSender, PendingMarkers
from tidelog.core.node.coordinators.topic_coordinator import (
    Caller,
    CoordinatorParts,
    InternalTopic,
    TopicCoordinator,
)
from tidelog.core.node.ports import EventClock
from tidelog.core.transactions.transaction_calls import (
    EndTransactionCall,
    InitProducerCall,
    MarkersDue,
    ProducerAnswer,
)
from tidelog.core.transactions.transaction_shard import TransactionSettings, TransactionShard

COMMIT_TIMEOUT_MS = 5_000
"""How long an answer waits for its record to be replicated."""

Then = Callable[[ProducerAnswer], None]


class TransactionCoordinator(TopicCoordinator[TransactionShard]):
    """The coordinator of `__transaction_state`."""

    def __init__(
        self,
        parts: CoordinatorParts,
        *,
        links: BrokerLinks,
        producer_ids: ProducerIds,
        clock: EventClock,
    ) -> None:
        super().__init__(
            parts,
            InternalTopic(
                name=TRANSACTIONS_TOPIC,
                partitions_setting="transaction.state.log.num.partitions",
                load_bytes_setting="transaction.state.log.load.buffer.size",
                commit_timeout_ms=COMMIT_TIMEOUT_MS,
            ),
            self._make_shard,
            self._on_committed,
        )
        self._producer_ids = producer_ids
        self._clock = clock
        self.markers = MarkerSender(
            image=parts.image,
            links=links,
            alarms=parts.alarms,
            trace=parts.trace,
            is_ours=self._is_ours,
            on_written=self._on_written,
        )

    @property
    def transaction_version(self) -> int:
        """The cluster's finalized `transaction.version`."""
        return self._parts.image.features.get(TRANSACTION_VERSION, 0)

    def _make_shard(self, index: int) -> TransactionShard:
        value = self._parts.settings.integer
        return TransactionShard(
            settings=TransactionSettings(
                abort_interval_ms=value(
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms"
                ),
                id_expiration_ms=value("transactional.id.expiration.ms"),
                expiry_interval_ms=value(
                    "transaction.remove.expired.transaction.cleanup.interval.ms"
                ),
            ),
            transaction_version=lambda: self.transaction_version,
            wall_ms=self._parts.wall_ms,
        )

    # Calls that may need a producer id

    def init_producer(self, call: InitProducerCall, then: Then, now_ms: int) -> None:
        def decide(shard: TransactionShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
            return shard.init_producer(call, reply_to, now_ms)

        def again(producer_id: int) -> None:
            fresh = replace(call, fresh_producer_id=producer_id)
            self.init_producer(fresh, then, self._clock.now_ms)

        self.ask(call.transactional_id, decide, self._caller(then, again), now_ms)

    def end_transaction(self, call: EndTransactionCall, then: Then, now_ms: int) -> None:
        def decide(shard: TransactionShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
            return shard.end(call, reply_to, now_ms)

        def again(producer_id: int) -> None:
            fresh = replace(call, fresh_producer_id=producer_id)
            self.end_transaction(fresh, then, self._clock.now_ms)

        self.ask(call.transactional_id, decide, self._caller(then, again), now_ms)

    def _caller(self, then: Then, again: Callable[[int], None]) -> Caller:
        """Asks again with a fresh producer id if the shard needs one."""

        def on_producer_id(producer_id: int | None) -> None:
            if producer_id is None:
                then(ProducerAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            else:
                again(producer_id)

        def on_answer(answer: ProducerAnswer) -> None:
            if answer.needs_producer_id:
                self._producer_ids.take(on_producer_id, now_ms=self._clock.now_ms)
            else:
                then(answer)

        return Caller(on_answer, lambda error: then(ProducerAnswer(error)))

    # Markers

    def on_change(self, change: Change, now_ms: int) -> None:
        super().on_change(change, now_ms)
        self.markers.on_change()

    def _is_ours(self, index: int, leader_epoch: int) -> bool:
        hosted = self.runtime.hosted.get(index)
        return hosted is not None and hosted.leader_epoch == leader_epoch

    def _on_committed(self, index: int, leader_epoch: int, work: object) -> None:
        assert isinstance(work, MarkersDue)
        self.markers.send(index, leader_epoch, work, self._clock.now_ms)

    def _on_written(self, pending: PendingMarkers, now_ms: int) -> None:
        due = pending.due
        self.runtime.perform(
            pending.index,
            lambda shard, now_ms: shard.on_markers_written(
                due.transactional_id, due.producer, now_ms
            ),
            now_ms,
        )

    def check(self) -> None:
        super().check()
        self.markers.check()
