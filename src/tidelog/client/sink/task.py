"""The sink's task: writes record batches under the driver's identity, and gives receipts.

A partition joins the transaction when its first batch comes, and where it ends is read at the same
time. Only then is anything sent. One task writes a partition; nothing here is retried under another
identity, since the driver alone decides what becomes of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.client import Client
from tidelog.client.cluster_metadata import leader_from_wire
from tidelog.client.events import CallRetried
from tidelog.client.sink.call_runner import CallRunner
from tidelog.client.sink.decisions import RESENT, ErrorDecision, code_name
from tidelog.client.sink.errors import BatchLost, SinkError, SinkRefused
from tidelog.client.sink.guards import RisingOffsets
from tidelog.client.sink.partition_output import (
    OutputBatch,
    PartitionOutput,
    PendingBatch,
    ProduceResult,
    SinkProduceCall,
)
from tidelog.client.sink.replies import SinkReply, produce_error_for, require_answer
from tidelog.client.sink.requests import add_partitions_call, end_offset_call, read_end_offset
from tidelog.client.sink.values import BatchTicket, EncodedRecordBatch, Receipt
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.limits import PRODUCER_REQUESTS_IN_FLIGHT_MAX
from tidelog.core.wire.messages.api_00_produce import NodeEndpoint
from tidelog.core.wire.sentinels import DEBUGGING_REPLICA_ID

DELIVERY_TIMEOUT_MS = 120_000
"""How long a task tries to get an acknowledgement: Kafka's default of `delivery.timeout.ms`."""


class SinkTaskMachine:
    """A machine of a client: `append`, wait until `is_settled`, then take the `receipts`."""

    def __init__(
        self,
        client: Client,
        ticket: BatchTicket,
        *,
        in_flight_max: int = PRODUCER_REQUESTS_IN_FLIGHT_MAX,
        timeout_ms: int = DELIVERY_TIMEOUT_MS,
    ) -> None:
        self._client = client
        self._ticket = ticket
        self._in_flight_max = in_flight_max
        self._delivery_timeout_ms = timeout_ms
        self._runner = CallRunner(client, ticket.transactional_id)
        self._outputs: dict[TopicPartition, PartitionOutput] = {}
        self._to_add: list[PartitionOutput] = []
        self.error: SinkError | None = None
        """Why nothing more will be written."""
        client.attach(self)

    # What the writer calls

    def next_sequence(self, partition: TopicPartition) -> int:
        """The base sequence that the partition's next batch must have."""
        output = self._outputs.get(partition)
        return 0 if output is None else output.next_sequence

    def append(self, partition: TopicPartition, batch: EncodedRecordBatch, *, now_ms: int) -> None:
        """Take a batch; it leaves when it may."""
        output = self._outputs.get(partition)
        if output is None:
            output = self._open(partition, now_ms)
        output.append(batch)

    @property
    def is_settled(self) -> bool:
        """Everything is acknowledged, or nothing more will be."""
        return self.error is not None or all(output.is_empty for output in self._outputs.values())

    @property
    def unacknowledged_bytes(self) -> int:
        return sum(output.unacknowledged_bytes for output in self._outputs.values())

    def receipts(self) -> list[Receipt]:
        """One for each partition that was written; SinkError if something was not."""
        if self.error is not None:
            raise self.error
        outputs = sorted(self._outputs.items())
        return [output.receipt(self._ticket) for _, output in outputs]

    def _open(self, partition: TopicPartition, now_ms: int) -> PartitionOutput:
        if partition not in self._ticket.end_offsets:
            count = self._ticket.partition_count(partition.topic)
            if count is None:
                raise SinkRefused(f"topic {partition.topic} was not given to this sink")
            raise SinkRefused(f"{partition} does not exist: the topic has {count} partitions")
        output = self._outputs[partition] = PartitionOutput(partition)
        self._client.refresh.add_topic(partition.topic)
        self._to_add.append(output)

        def on_end_offset(reply: SinkReply) -> None:
            end_offset = self._end_offset(reply)
            if end_offset is not None:
                known = self._ticket.end_offsets[partition]
                output.offsets = RisingOffsets(partition, end_offset=max(known, end_offset))

        call = end_offset_call(partition, replica_id=DEBUGGING_REPLICA_ID)
        self._runner.start(call, on_end_offset, deadline_ms=now_ms + self._delivery_timeout_ms)
        return output

    def _end_offset(self, reply: SinkReply) -> int | None:
        try:
            return read_end_offset(require_answer(reply))
        except SinkError as error:
            self._fail(error)
            return None

    # The machine

    def run(self, now_ms: int) -> None:
        if self.error is not None:
            return
        self._add(now_ms)
        self._expire(now_ms)
        leaders = {self._leader(output) for output in self._outputs.values() if not output.is_empty}
        for node in sorted(each for each in leaders if each is not None):
            while self._send_to(node, now_ms):
                continue

    def deadlines_ms(self) -> Iterable[int | None]:
        for output in self._outputs.values():
            if not output.is_empty:
                yield output.retry_at_ms
                if output.oldest_sent_ms is not None:
                    yield output.oldest_sent_ms + self._delivery_timeout_ms

    def _fail(self, error: SinkError) -> None:
        if self.error is None:
            self.error = error
            self._runner.drop_all()

    def _expire(self, now_ms: int) -> None:
        for partition, output in self._outputs.items():
            sent_ms = output.oldest_sent_ms
            if sent_ms is not None and now_ms - sent_ms >= self._delivery_timeout_ms:
                waited_ms = now_ms - sent_ms
                self._fail(BatchLost(f"{partition}: no acknowledgement within {waited_ms} ms"))

    def _add(self, now_ms: int) -> None:
        """All partitions that are new in this turn join the transaction together."""
        if not self._to_add:
            return
        outputs, self._to_add = self._to_add, []
        ticket = self._ticket

        def on_added(reply: SinkReply) -> None:
            try:
                require_answer(reply)
            except SinkError as error:
                self._fail(error)
                return
            for output in outputs:
                output.is_added = True

        partitions = [output.partition for output in outputs]
        call = add_partitions_call(ticket.transactional_id, ticket.identity, partitions)
        self._runner.start(call, on_added, deadline_ms=now_ms + self._delivery_timeout_ms)
        self._runner.run(now_ms)

    # Produce

    def _leader(self, output: PartitionOutput) -> int | None:
        node = self._client.metadata.leader(output.partition).broker_id
        if node is None:
            self._client.refresh.request_update()
        return node

    def _send_to(self, node: int, now_ms: int) -> bool:
        """One request with a batch of each partition that this node leads; False: there is none."""
        address = self._client.metadata.address(node)
        if self.error is not None or address is None:
            return False
        if not self._client.connections.make_usable(node, address, now_ms):
            return False
        batches: list[OutputBatch] = []
        for output in self._outputs.values():
            if not output.is_empty and self._leader(output) == node:
                batch = output.take(now_ms, in_flight_max=self._in_flight_max)
                if batch is not None:
                    batches.append(OutputBatch(output, batch))
        if not batches:
            return False
        call = SinkProduceCall(self._client, node, self._ticket.transactional_id, batches)
        call.send(self._answered, now_ms)
        return True

    def _answered(
        self,
        results: list[tuple[OutputBatch, ProduceResult]],
        endpoints: list[NodeEndpoint],
        now_ms: int,
    ) -> None:
        for (output, batch), each in results:
            if self.error is not None:
                return
            if each.base_offset is not None:
                self._acknowledged(output, batch, each.base_offset)
            else:
                self._refused(output, batch, each, now_ms)
            if each.leader is not None:
                leader = leader_from_wire(leader_id=each.leader[0], leader_epoch=each.leader[1])
                self._client.metadata.learn_leader(output.partition, leader, endpoints)

    def _acknowledged(self, output: PartitionOutput, batch: PendingBatch, base_offset: int) -> None:
        try:
            output.acknowledged(batch, base_offset)
        except SinkError as error:
            self._fail(error)

    def _refused(
        self, output: PartitionOutput, batch: PendingBatch, result: ProduceResult, now_ms: int
    ) -> None:
        pause_ms = self._runner.back_off.pause_ms(output.failures)
        decision = output.refused(batch, result.code, pause_ms=pause_ms, now_ms=now_ms)
        if decision not in RESENT:
            self._fail(produce_error_for(output.partition, result.code, result.reason, decision))
            return
        if decision == ErrorDecision.REFRESH:
            self._client.refresh.request_update()
        because = f"{output.partition}: {code_name(result.code)}"
        self._client.trace.emit(CallRetried(step="PRODUCE", because=because))

    def check(self) -> None:
        for output in self._outputs.values():
            output.check()
