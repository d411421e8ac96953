"""Sends batches to leaders, and decides about every answer: done, again, in parts, or given up.

A partition is ready when its first batch is full, has lingered long enough, or must not wait; a
node gets one request with one batch of each of its partitions, and more of them as long as it has
answered enough. What is retried goes back to the front of its queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.cluster_metadata import STALE_METADATA, leader_from_wire
from tidelog.client.events import BatchExpired, BatchRetried, BatchSplit, LeaderHinted
from tidelog.client.producer.accumulator import Accumulator
from tidelog.client.producer.batch import ProducerBatch
from tidelog.client.producer.config import ProducerConfig
from tidelog.client.producer.outcome import PRODUCER_CLOSED, TIMED_OUT
from tidelog.client.producer.produce_call import (
    BatchProduceCall,
    PartitionProduceResult,
    produce_call,
)
from tidelog.client.producer.producer_id import ProducerIdRequester
from tidelog.client.producer.sequences import Sequences
from tidelog.client.producer.transaction_errors import TRANSACTION_ABORTED
from tidelog.client.producer.transaction_manager import TransactionManager
from tidelog.core.model.errors import RETRIABLE, ErrorCode
from tidelog.core.model.ids import TopicPartition

NOT_WRITTEN = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""Refusals before the append. All others may come after it: a leader that is deposed while it waits
for its followers answers NOT_LEADER_OR_FOLLOWER, although the batch may live on in the next one."""


class Sender:
    """The producer's side of the wire."""

    def __init__(self, client: Client, config: ProducerConfig, accumulator: Accumulator) -> None:
        self._client = client
        self._config = config
        self._accumulator = accumulator
        self.sequences: Sequences | None = None
        self._producer_id: ProducerIdRequester | None = None
        self.transactions: TransactionManager | None = None
        if config.transactional_id is not None:
            self.sequences = Sequences(is_transactional=True)
            self.transactions = TransactionManager(client, config, self.sequences)
        elif config.is_idempotent:
            self.sequences = Sequences()
            self._producer_id = ProducerIdRequester(client, self.sequences)
        self._back_off = BackOff(
            first_ms=config.client.retry_backoff_ms,
            most_ms=config.client.retry_backoff_max_ms,
            random=client.random,
        )
        self._keeps_order = config.in_flight_max == 1
        self._muted: set[TopicPartition] = set()
        self._turns: dict[int, TopicPartition] = {}
        """Per node: the partition that came last, so that the next ones get their turn."""
        self._deadline_ms: int | None = None

    def run(self, now_ms: int, *, hurry: bool) -> None:
        """Send what can be sent; in a `hurry` nothing lingers."""
        self._deadline_ms = None
        if self._producer_id is not None:
            self._producer_id.run(now_ms)
        if self.sequences is not None and self.sequences.fatal is not None:
            self.abort(*self.sequences.fatal, now_ms)
            return
        if self.transactions is not None and self.transactions.is_abandoned:
            self._abandon(now_ms)
        self._expire(now_ms)
        nodes = self._ready_nodes(now_ms, hurry=hurry)
        while nodes:
            nodes = {node for node in sorted(nodes) if self._send_to(node, now_ms)}
            nodes &= self._ready_nodes(now_ms, hurry=hurry)

    def deadlines_ms(self) -> Iterable[int | None]:
        yield self._deadline_ms
        if self._producer_id is not None:
            yield self._producer_id.next_deadline_ms()
        oldest = next(iter(self._accumulator.incomplete), None)
        if oldest is not None:
            yield oldest.created_ms + self._config.delivery_timeout_ms

    def abort(self, error: str, reason: str, now_ms: int) -> None:
        """Give up everything; what is on the wire stays unknown."""
        for batch in list(self._accumulator.incomplete):
            batch.may_be_written |= batch.is_in_flight
            self._accumulator.remove(batch)
            self._accumulator.release(batch)
            batch.failed(error, reason, now_ms)

    def _abandon(self, now_ms: int) -> None:
        """Records of a lost transaction that never left need not leave.

        Those with a number are settled first, so that no late copy is written after the marker.
        """
        for batch in list(self._accumulator.incomplete):
            if batch.numbered is None:
                self._accumulator.remove(batch)
                self._accumulator.release(batch)
                batch.failed(TRANSACTION_ABORTED, "its transaction was given up", now_ms)

    def close(self, now_ms: int) -> None:
        self.abort(PRODUCER_CLOSED, "the producer was closed before it was acknowledged", now_ms)

    # Who is ready

    def _ready_nodes(self, now_ms: int, *, hurry: bool) -> set[int]:
        metadata = self._client.metadata
        ready: set[int] = set()
        for partition, queue in self._accumulator.queues.items():
            leader = metadata.leader(partition)
            batch = queue[0]
            batch.see_leader_epoch(leader.leader_epoch)
            if leader.broker_id is None:
                self._client.refresh.add_topic(partition.topic)
                self._client.refresh.request_update()
            elif partition in self._muted:
                continue
            elif batch.is_backing_off(now_ms):
                self._wake_by(batch.retry_at_ms)
            elif hurry or len(queue) > 1 or batch.is_closed or self._has_lingered(batch, now_ms):
                ready.add(leader.broker_id)
            else:
                self._wake_by(batch.created_ms + self._config.linger_ms)
        return ready

    def _has_lingered(self, batch: ProducerBatch, now_ms: int) -> bool:
        return now_ms - batch.created_ms >= self._config.linger_ms

    def _wake_by(self, at_ms: int) -> None:
        if self._deadline_ms is None or at_ms < self._deadline_ms:
            self._deadline_ms = at_ms

    # One request

    def _send_to(self, node: int, now_ms: int) -> bool:
        """True if something was sent, so that there may be more to send."""
        address = self._client.metadata.address(node)
        connections = self._client.connections
        if address is None or not connections.make_usable(node, address, now_ms):
            return False
        batches = self._drain(node, now_ms)
        if not batches:
            return False
        if self.transactions is None:
            call = produce_call(self._client, node, self._config, batches)
        else:
            versions = self.transactions.produce_versions
            call = produce_call(self._client, node, self._config, batches, versions=versions)
        for batch in batches:
            batch.is_in_flight = True
            if self._keeps_order:
                self._muted.add(batch.partition)
        call.send(self._answered, now_ms)
        return True

    def _drain(self, node: int, now_ms: int) -> list[ProducerBatch]:
        batches: list[ProducerBatch] = []
        size_bytes = 0
        for partition in self._in_turn(node):
            batch = self._accumulator.queues[partition][0]
            if partition in self._muted or batch.is_backing_off(now_ms):
                continue
            if self.transactions is not None and not self.transactions.may_send(partition):
                continue
            if self.sequences is not None and not self.sequences.may_leave(batch):
                continue
            if batches and size_bytes + batch.size_bytes > self._config.request_bytes_max:
                break
            self._accumulator.take(partition)
            if self.sequences is not None:
                self.sequences.leave(batch)
            size_bytes += batch.size_bytes
            batches.append(batch)
            self._turns[node] = partition
        return batches

    def _in_turn(self, node: int) -> list[TopicPartition]:
        metadata = self._client.metadata
        led = [each for each in self._accumulator.queues if metadata.leader(each).broker_id == node]
        led.sort()
        came_last = self._turns.get(node)
        if came_last is None:
            return led
        return [each for each in led if each > came_last] + [
            each for each in led if each <= came_last
        ]

    # Answers

    def _answered(
        self,
        call: BatchProduceCall,
        results: dict[TopicPartition, PartitionProduceResult],
        now_ms: int,
    ) -> None:
        for batch in call.batches:
            self._decide(batch, results[batch.partition], now_ms)
        for batch in call.batches:
            self._take_hint(batch.partition, results[batch.partition], call)

    def _decide(self, batch: ProducerBatch, result: PartitionProduceResult, now_ms: int) -> None:
        batch.is_in_flight = False
        self._muted.discard(batch.partition)
        if result.error in STALE_METADATA:
            self._client.refresh.request_update()
        if batch.is_done:
            return
        if result.error == ErrorCode.NONE:
            self._done(batch, result, now_ms)
            return
        batch.may_be_written |= result.error not in NOT_WRITTEN
        if result.error == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(batch)
        elif self._may_retry(batch, result, now_ms):
            self._retry(batch, result, now_ms)
        elif result.error == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # Written before, so long ago that the broker does not remember where.
            self._done(batch, result, now_ms)
        else:
            self._fail(batch, result, now_ms)

    def _done(self, batch: ProducerBatch, result: PartitionProduceResult, now_ms: int) -> None:
        if self.sequences is not None:
            self.sequences.completed(batch)
        self._accumulator.release(batch)
        batch.done(
            base_offset=result.base_offset, append_time_ms=result.append_time_ms, now_ms=now_ms
        )

    def _may_retry(self, batch: ProducerBatch, result: PartitionProduceResult, now_ms: int) -> bool:
        if self._is_expired(batch, now_ms) or batch.attempts >= self._config.retries:
            return False
        if self.sequences is None:
            return result.error in RETRIABLE
        return self.sequences.may_retry(
            batch, result.error, log_start_known=result.log_start_offset is not None
        )

    def _retry(self, batch: ProducerBatch, result: PartitionProduceResult, now_ms: int) -> None:
        batch.requeued(pause_ms=self._back_off.pause_ms(batch.attempts), now_ms=now_ms)
        self._accumulator.put_back(batch, after=self._before(batch))
        numbered = batch.numbered
        self._client.trace.emit(
            BatchRetried(
                partition=str(batch.partition),
                error=result.error.name,
                attempts=batch.attempts,
                producer_id=numbered.identity.producer_id if numbered else None,
                producer_epoch=numbered.identity.producer_epoch if numbered else None,
                base_sequence=numbered.base_sequence if numbered else None,
            )
        )

    def _before(self, batch: ProducerBatch) -> Sequence[ProducerBatch]:
        """The batches that must be written before this one; none without sequences."""
        if self.sequences is None:
            return ()
        in_flight = self.sequences.in_flight(batch.partition)
        return in_flight[: in_flight.index(batch)]

    def _split(self, batch: ProducerBatch) -> None:
        """The broker takes no batch of this size; a part that is refused too gets half of it."""
        size_bytes = self._config.batch_size
        if batch.is_part:
            size_bytes = max(1, batch.size_bytes // 2)
        before = self._before(batch)
        parts = batch.parts(batch_size=size_bytes)
        if self.sequences is not None:
            self.sequences.split(batch, parts)
        self._accumulator.replace(batch, parts, after=before)
        self._client.trace.emit(
            BatchSplit(partition=str(batch.partition), records=batch.count, parts=len(parts))
        )

    def _fail(self, batch: ProducerBatch, result: PartitionProduceResult, now_ms: int) -> None:
        if self.sequences is not None:
            self.sequences.failed(batch, result.error, result.reason)
        self._accumulator.release(batch)
        self._fail_transaction(batch, result.error.name, result.reason, now_ms)
        batch.failed(result.error.name, result.reason, now_ms, reasons=result.reasons)

    def _take_hint(
        self, partition: TopicPartition, result: PartitionProduceResult, call: BatchProduceCall
    ) -> None:
        if result.leader is None:
            return
        leader = leader_from_wire(leader_id=result.leader[0], leader_epoch=result.leader[1])
        if self._client.metadata.learn_leader(partition, leader, call.endpoints):
            assert leader.broker_id is not None and leader.leader_epoch is not None
            self._client.trace.emit(
                LeaderHinted(
                    partition=str(partition),
                    leader_id=leader.broker_id,
                    leader_epoch=leader.leader_epoch,
                )
            )

    # Time

    def _is_expired(self, batch: ProducerBatch, now_ms: int) -> bool:
        return now_ms - batch.created_ms >= self._config.delivery_timeout_ms

    def _expire(self, now_ms: int) -> None:
        for batch in list(self._accumulator.incomplete):
            if not self._is_expired(batch, now_ms):
                break
            was_sent = batch.is_in_flight or batch.numbered is not None or batch.attempts > 0
            batch.may_be_written |= batch.is_in_flight
            self._accumulator.remove(batch)
            self._accumulator.release(batch)
            if self.sequences is not None:
                self.sequences.given_up(batch)
            self._client.trace.emit(
                BatchExpired(partition=str(batch.partition), records=batch.count, was_sent=was_sent)
            )
            reason = f"no outcome {now_ms - batch.created_ms} ms after it was batched"
            self._fail_transaction(batch, TIMED_OUT, reason, now_ms)
            batch.failed(TIMED_OUT, reason, now_ms)

    def _fail_transaction(self, batch: ProducerBatch, error: str, reason: str, now_ms: int) -> None:
        if self.transactions is not None:
            was_sent = batch.numbered is not None
            self.transactions.on_send_failed(error, reason, now_ms, was_sent=was_sent)
