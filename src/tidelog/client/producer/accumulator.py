"""Records waiting to be sent: a queue of batches per partition, within a bound for all of them.

A new batch reserves `batch.size` bytes, or what its first record needs, and keeps them until its
outcome is known: that is what makes a producer feel that its cluster is slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum, auto

from tidelog.client.producer.batch import ProducerBatch, record_bytes_max
from tidelog.client.producer.config import ProducerConfig
from tidelog.client.producer.outcome import SendTicket
from tidelog.core.model.ids import TopicPartition


class AppendResult(Enum):
    """What became of a record that wants to be taken."""

    NO_ROOM = auto()
    INTO_OPEN_BATCH = auto()
    INTO_NEW_BATCH = auto()


class Accumulator:
    """Invariant: free plus reserved bytes are always `buffer.memory`."""

    def __init__(self, config: ProducerConfig) -> None:
        self._config = config
        self.free_bytes = config.buffer_memory
        self.queues: dict[TopicPartition, deque[ProducerBatch]] = {}
        """Batches to be sent, first first; a partition without any is not there."""
        self.incomplete: dict[ProducerBatch, None] = {}
        """All batches without an outcome, oldest first: those in the queues and those in flight."""

    def append(self, ticket: SendTicket, partition: TopicPartition, now_ms: int) -> AppendResult:
        queue = self.queues.get(partition)
        batch_size = self._config.batch_size
        if queue and queue[-1].try_append(ticket, batch_size=batch_size):
            return AppendResult.INTO_OPEN_BATCH
        reserved_bytes = max(batch_size, record_bytes_max(ticket))
        if reserved_bytes > self.free_bytes:
            return AppendResult.NO_ROOM
        self.free_bytes -= reserved_bytes
        batch = ProducerBatch(partition, reserved_bytes=reserved_bytes, now_ms=now_ms)
        batch.try_append(ticket, batch_size=batch_size)
        self.incomplete[batch] = None
        self.queues.setdefault(partition, deque()).append(batch)
        return AppendResult.INTO_NEW_BATCH

    def last_is_full(self, partition: TopicPartition) -> bool:
        queue = self.queues.get(partition)
        return not queue or queue[-1].is_closed

    def take(self, partition: TopicPartition) -> ProducerBatch:
        """The first batch leaves its queue; it takes no more records."""
        queue = self.queues[partition]
        batch = queue.popleft()
        batch.is_closed = True
        if not queue:
            del self.queues[partition]
        return batch

    def put_back(self, batch: ProducerBatch, *, after: Sequence[ProducerBatch] = ()) -> None:
        """To the front of its queue, but behind those that must go before it."""
        queue = self.queues.setdefault(batch.partition, deque())
        index = 0
        while index < len(queue) and any(queue[index] is each for each in after):
            index += 1
        queue.insert(index, batch)

    def replace(
        self,
        batch: ProducerBatch,
        parts: Sequence[ProducerBatch],
        *,
        after: Sequence[ProducerBatch] = (),
    ) -> None:
        """Parts go where their whole, which is not in the queue, would have gone."""
        older = list(self.incomplete)
        index = older.index(batch)
        self.release(batch)
        self.incomplete = dict.fromkeys([*older[:index], *parts, *older[index + 1 :]])
        for part in reversed(parts):
            self.put_back(part, after=after)

    def remove(self, batch: ProducerBatch) -> None:
        """Out of its queue, wherever it stands in it."""
        queue = self.queues.get(batch.partition)
        if queue is not None and batch in queue:
            queue.remove(batch)
            if not queue:
                del self.queues[batch.partition]

    def release(self, batch: ProducerBatch) -> None:
        """Its outcome is known: its bytes are free again."""
        if batch in self.incomplete:
            del self.incomplete[batch]
            self.free_bytes += batch.reserved_bytes

    def check(self) -> None:
        reserved = sum(batch.reserved_bytes for batch in self.incomplete)
        assert self.free_bytes + reserved == self._config.buffer_memory
        assert self.free_bytes >= 0
        for partition, queue in self.queues.items():
            assert queue, f"an empty queue is kept for {partition}"
            for batch in queue:
                assert batch in self.incomplete and not batch.is_in_flight, batch.partition
