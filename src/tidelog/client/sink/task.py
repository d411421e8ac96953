"""The sink's task: writes record batches under the driver's identity, and gives receipts.

A partition joins the transaction when its first batch comes, and where it ends is read at the same
time. Only then is anything sent. One task writes a partition; nothing here is retried under another
identity, since the driver alone decides what becomes of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.client import Client
from tidelog.client.cluster_metadata import leader_from_wire
from tidelog.client.sink.asking import Asker, Told
from tidelog.client.sink.decisions import RESENT, Decision, name_of_code
from tidelog.client.sink.errors import BatchLost, SinkError, SinkRefused
from tidelog.client.sink.events import AskedAgain
from tidelog.client.sink.guards.rising_offsets import RisingOffsets
from tidelog.client.sink.lane import Lane, Leaf
from tidelog.client.sink.produce_call import Parcel, ProduceCall, Said
from tidelog.client.sink.requests import ask_add_partitions, ask_end_offset, told_end_offset
from tidelog.client.sink.telling import must, produce_trouble
from tidelog.client.sink.values import Begun, Encoded, Receipt
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.limits import PRODUCER_REQUESTS_IN_FLIGHT_MAX
from tidelog.core.wire.messages.api_00_produce import NodeEndpoint
from tidelog.core.wire.sentinels import DEBUGGING_REPLICA_ID

PATIENCE_MS = 120_000
"""Kafka's default of `delivery.timeout.ms`: so long a task tries to be heard."""


class Task:
    """A machine of a client: `append`, wait until `is_settled`, then take the `receipts`."""

    def __init__(
        self,
        client: Client,
        begun: Begun,
        *,
        in_flight_max: int = PRODUCER_REQUESTS_IN_FLIGHT_MAX,
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        self._client = client
        self._begun = begun
        self._in_flight_max = in_flight_max
        self._patience_ms = patience_ms
        self._asker = Asker(client, begun.transactional_id)
        self._lanes: dict[TopicPartition, Lane] = {}
        self._to_add: list[Lane] = []
        self.error: SinkError | None = None
        """Why nothing more will be written."""
        client.attach(self)

    # What whoever writes asks

    def next_sequence(self, partition: TopicPartition) -> int:
        """The base sequence that the partition's next batch must have."""
        lane = self._lanes.get(partition)
        return 0 if lane is None else lane.next_sequence

    def append(self, partition: TopicPartition, batch: Encoded, *, now_ms: int) -> None:
        """Take a batch; it leaves when it may."""
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._open(partition, now_ms)
        lane.append(batch)

    @property
    def is_settled(self) -> bool:
        """Everything is acknowledged, or nothing more will be."""
        return self.error is not None or all(lane.is_empty for lane in self._lanes.values())

    @property
    def unacknowledged_bytes(self) -> int:
        return sum(lane.unacknowledged_bytes for lane in self._lanes.values())

    def receipts(self) -> list[Receipt]:
        """One for each partition that was written; SinkError if something was not."""
        if self.error is not None:
            raise self.error
        lanes = sorted(self._lanes.items())
        return [lane.receipt(self._begun) for _, lane in lanes]

    def _open(self, partition: TopicPartition, now_ms: int) -> Lane:
        if partition not in self._begun.end_offsets:
            count = self._begun.partition_count(partition.topic)
            if count is None:
                raise SinkRefused(f"topic {partition.topic} was not given to this sink")
            raise SinkRefused(f"{partition} does not exist: the topic has {count} partitions")
        lane = self._lanes[partition] = Lane(partition)
        self._client.refresh.want_topic(partition.topic)
        self._to_add.append(lane)

        def ended(told: Told) -> None:
            end_offset = self._told_end_offset(told)
            if end_offset is not None:
                known = self._begun.end_offsets[partition]
                lane.offsets = RisingOffsets(partition, end_offset=max(known, end_offset))

        ask = ask_end_offset(partition, replica_id=DEBUGGING_REPLICA_ID)
        self._asker.ask(ask, ended, deadline_ms=now_ms + self._patience_ms)
        return lane

    def _told_end_offset(self, told: Told) -> int | None:
        try:
            return told_end_offset(must(told))
        except SinkError as error:
            self._fail(error)
            return None

    # The machine

    def run(self, now_ms: int) -> None:
        if self.error is not None:
            return
        self._add(now_ms)
        self._expire(now_ms)
        leaders = {self._leader(lane) for lane in self._lanes.values() if not lane.is_empty}
        for node in sorted(each for each in leaders if each is not None):
            while self._send_to(node, now_ms):
                continue

    def deadlines_ms(self) -> Iterable[int | None]:
        for lane in self._lanes.values():
            if not lane.is_empty:
                yield lane.retry_at_ms
                if lane.oldest_sent_ms is not None:
                    yield lane.oldest_sent_ms + self._patience_ms

    def _fail(self, error: SinkError) -> None:
        if self.error is None:
            self.error = error
            self._asker.drop_all()

    def _expire(self, now_ms: int) -> None:
        for partition, lane in self._lanes.items():
            sent_ms = lane.oldest_sent_ms
            if sent_ms is not None and now_ms - sent_ms >= self._patience_ms:
                waited_ms = now_ms - sent_ms
                self._fail(BatchLost(f"{partition}: no acknowledgement within {waited_ms} ms"))

    def _add(self, now_ms: int) -> None:
        """All partitions that are new in this turn join the transaction together."""
        if not self._to_add:
            return
        lanes, self._to_add = self._to_add, []
        begun = self._begun

        def added(told: Told) -> None:
            try:
                must(told)
            except SinkError as error:
                self._fail(error)
                return
            for lane in lanes:
                lane.is_added = True

        partitions = [lane.partition for lane in lanes]
        ask = ask_add_partitions(begun.transactional_id, begun.identity, partitions)
        self._asker.ask(ask, added, deadline_ms=now_ms + self._patience_ms)
        self._asker.run(now_ms)

    # Produce

    def _leader(self, lane: Lane) -> int | None:
        node = self._client.metadata.leader(lane.partition).broker_id
        if node is None:
            self._client.refresh.doubt()
        return node

    def _send_to(self, node: int, now_ms: int) -> bool:
        """One request with a batch of each partition that this node leads; False: there is none."""
        address = self._client.metadata.address(node)
        if self.error is not None or address is None:
            return False
        if not self._client.connections.make_usable(node, address, now_ms):
            return False
        parcels: list[Parcel] = []
        for lane in self._lanes.values():
            if not lane.is_empty and self._leader(lane) == node:
                leaf = lane.take(now_ms, in_flight_max=self._in_flight_max)
                if leaf is not None:
                    parcels.append(Parcel(lane, leaf))
        if not parcels:
            return False
        call = ProduceCall(self._client, node, self._begun.transactional_id, parcels)
        call.send(self._answered, now_ms)
        return True

    def _answered(
        self, said: list[tuple[Parcel, Said]], endpoints: list[NodeEndpoint], now_ms: int
    ) -> None:
        for (lane, leaf), each in said:
            if self.error is not None:
                return
            if each.base_offset is not None:
                self._acknowledged(lane, leaf, each.base_offset)
            else:
                self._refused(lane, leaf, each, now_ms)
            if each.leader is not None:
                leader = leader_from_wire(leader_id=each.leader[0], leader_epoch=each.leader[1])
                self._client.metadata.learn_leader(lane.partition, leader, endpoints)

    def _acknowledged(self, lane: Lane, leaf: Leaf, base_offset: int) -> None:
        try:
            lane.acknowledged(leaf, base_offset)
        except SinkError as error:
            self._fail(error)

    def _refused(self, lane: Lane, leaf: Leaf, said: Said, now_ms: int) -> None:
        pause_ms = self._asker.back_off.pause_ms(lane.failures)
        decision = lane.refused(leaf, said.code, pause_ms=pause_ms, now_ms=now_ms)
        if decision not in RESENT:
            self._fail(produce_trouble(lane.partition, said.code, said.reason, decision))
            return
        if decision == Decision.REFRESH:
            self._client.refresh.doubt()
        because = f"{lane.partition}: {name_of_code(said.code)}"
        self._client.trace.emit(AskedAgain(step="PRODUCE", because=because))

    def check(self) -> None:
        for lane in self._lanes.values():
            lane.check()
