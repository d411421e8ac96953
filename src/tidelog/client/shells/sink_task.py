"""The sink's task for programs: writes encoded batches, waits for acknowledgements, gives receipts.

with SinkTask({"bootstrap.servers": "localhost:9092"}, ticket, salt=attempt) as task:
    for partition, batches in encoded:
        task.write("revenue", partition, batches)
    receipts = task.finish()
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.config import client_config
from tidelog.client.settings import Given
from tidelog.client.shells.closeable import Closeable
from tidelog.client.shells.loop import Loop
from tidelog.client.sink.guards import first_batch_records_max
from tidelog.client.sink.task import SinkTaskMachine
from tidelog.client.sink.values import BatchTicket, EncodedRecordBatch, Receipt
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.limits import MIB
from tidelog.core.model.trace import Trace

BUFFER_BYTES_MAX = 32 * MIB


class SinkTask(Closeable):
    """One attempt of one task. `salt` differs between attempts."""

    def __init__(
        self,
        settings: Given,
        ticket: BatchTicket,
        *,
        salt: int,
        buffer_bytes_max: int = BUFFER_BYTES_MAX,
        trace: Trace | None = None,
    ) -> None:
        self._loop = Loop(client_config(settings), trace)
        self._machine = SinkTaskMachine(self._loop.client, ticket)
        self._salt = salt
        self._buffer_bytes_max = buffer_bytes_max

    def next_sequence(self, topic: str, partition: int) -> int:
        """What the next batch of this partition must begin with."""
        return self._machine.next_sequence(TopicPartition(topic, partition))

    def first_batch_records_max(self, topic: str, partition: int, *, available: int) -> int | None:
        """How many records the partition's first batch may have; None: it is not the first."""
        if self.next_sequence(topic, partition) != 0:
            return None
        return first_batch_records_max(self._salt, available=available)

    def write(self, topic: str, partition: int, batches: Iterable[EncodedRecordBatch]) -> None:
        """Send them, in order; waits while too much is unacknowledged. SinkError: give up."""
        name = TopicPartition(topic, partition)
        for batch in batches:
            self._machine.append(name, batch, now_ms=self._loop.now_ms())
            self._loop.turn(0)
            while self._is_full():
                self._loop.turn(None)
            self._raise()

    def finish(self) -> list[Receipt]:
        """When everything is acknowledged: what was written where."""
        wait_ms: int | None = 0
        while not self._machine.is_settled:
            self._loop.turn(wait_ms)
            wait_ms = None
        return self._machine.receipts()

    def close(self) -> None:
        self._loop.close()

    def _is_full(self) -> bool:
        too_much = self._machine.unacknowledged_bytes > self._buffer_bytes_max
        return too_much and self._machine.error is None

    def _raise(self) -> None:
        if self._machine.error is not None:
            raise self._machine.error
