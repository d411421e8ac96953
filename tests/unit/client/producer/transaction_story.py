"""A transactional producer on a fake cluster, for tests that tell a story in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.client.fake_cluster import Close, DropAnswer, FakeCluster, Seen, once
from tests.unit.client.producer.fake_transaction_coordinator import (
    TRANSACTION_APIS,
    TransactionCoordinatorStub,
    refused,
)
from tests.unit.client.virtual import Host
from tidelog.client.group.offset_requests import ConsumerGroupMetadata, OffsetAndMetadata
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import SendTicket
from tidelog.client.producer.producer import ProducerMachine
from tidelog.client.producer.transaction_manager import TransactionManager
from tidelog.client.producer.transaction_outcome import TransactionOutcome, TransactionTicket
from tidelog.client.producer.transaction_states import TransactionManagerState
from tidelog.core.model.errors import ErrorCode as E
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.record_batch import read_header

TOPIC = "orders"
SOURCE = TopicPartition("source", 0)
GROUP = ConsumerGroupMetadata("readers", 3, "member-1", "instance-1")
PRODUCE, FIND, INIT, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS = 0, 10, 22, 24, 25, 26, 28
S = TransactionManagerState


class TransactionStory:
    """One transactional producer, one cluster, and what the producer was answered."""

    def __init__(
        self, protocol: str = "2", *, level: int | None = 2, partitions: int = 2, **settings: Any
    ) -> None:
        self.cluster = FakeCluster()
        self.cluster.create(TOPIC, partitions=partitions)
        self.coordinator = TransactionCoordinatorStub(self.cluster, level=level)
        self.clock = self.cluster.clock
        config = producer_config(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "transactional.id": "payments",
                "linger.ms": 0,
                "tidelog.transaction.protocol": "classic" if protocol == "classic" else "auto",
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        self.host = Host(self.cluster, config.client)
        self.producer = ProducerMachine(self.host.client, config)

    @property
    def manager(self) -> TransactionManager:
        assert self.producer.transactions is not None
        return self.producer.transactions

    @property
    def state(self) -> TransactionManagerState:
        return self.manager.state

    def init(self) -> TransactionTicket:
        return self._ticket(lambda now_ms: self.manager.init_transactions(now_ms))

    def begin(self) -> None:
        self.host.do(lambda now_ms: self.manager.begin_transaction())

    def send(self, value: str, *, partition: int = 0, topic: str = TOPIC) -> SendTicket:
        ticket = self.host.do(
            lambda now_ms: self.producer.send(
                topic, value.encode(), partition=partition, now_ms=now_ms
            )
        )
        assert isinstance(ticket, SendTicket)
        self.producer.check()
        return ticket

    def send_offsets(self, offset: int, group: ConsumerGroupMetadata = GROUP) -> TransactionTicket:
        offsets = {SOURCE: OffsetAndMetadata(offset, 1, "m")}
        return self._ticket(
            lambda now_ms: self.manager.send_offsets_to_transaction(offsets, group, now_ms)
        )

    def commit(self) -> TransactionTicket:
        return self._ticket(lambda now_ms: self.manager.commit_transaction(now_ms))

    def abort(self) -> TransactionTicket:
        return self._ticket(lambda now_ms: self.manager.abort_transaction(now_ms))

    def _ticket(self, act: Callable[[int], TransactionTicket]) -> TransactionTicket:
        ticket = self.host.do(act)
        assert isinstance(ticket, TransactionTicket)
        return ticket

    def wait(self, ticket: TransactionTicket) -> TransactionOutcome:
        self.clock.run_until(lambda: ticket.is_done)
        self.producer.check()
        assert ticket.outcome is not None
        return ticket.outcome

    def settle(self) -> None:
        """Until every record has an outcome."""
        self.clock.run_until(lambda: self.producer.pending == 0)

    def ready(self) -> None:
        """Initialized, and nothing of that is remembered."""
        assert self.wait(self.init()) is not None and self.state is S.READY
        self.cluster.seen.clear()

    def open(self, *values: str) -> None:
        """A transaction with these records acknowledged."""
        self.begin()
        for value in values:
            self.send(value)
        self.settle()

    def script(self, api_key: int, verdict: Any, *, key_type: int | None = None) -> None:
        """What becomes of the next request of this API: an error code, or a fake's verdict."""

        def rule(broker_id: int, request: Any) -> Any:
            if request.api_key != api_key:
                return None
            if key_type is not None and request.key_type != key_type:
                return None
            if isinstance(verdict, DropAnswer):
                self.coordinator.answer(broker_id, request)
                return Close()
            return refused(request, verdict) if isinstance(verdict, E) else verdict

        self.cluster.rules.insert(0, once(rule))

    def apis(self, *keys: int) -> list[int]:
        """The requests of transactions so far, in order, or only these."""
        wanted = keys or (0, *TRANSACTION_APIS)
        return [
            each.request.api_key for each in self.cluster.seen if each.request.api_key in wanted
        ]

    def requests(self, api_key: int) -> list[Seen]:
        return [each for each in self.cluster.seen if each.request.api_key == api_key]

    def numbers(self) -> list[tuple[int, int]]:
        """Producer epoch and base sequence of every batch that was sent."""
        headers = [
            read_header(each.request.topic_data[0].partition_data[0].records)
            for each in self.cluster.requests(ProduceRequest)
        ]
        return [(each.producer_epoch, each.base_sequence) for each in headers]


CALLS: dict[str, Callable[[TransactionStory], Any]] = {
    "init_transactions": lambda story: story.init(),
    "begin_transaction": lambda story: story.begin(),
    "send": lambda story: story.send("x"),
    "send_offsets_to_transaction": lambda story: story.send_offsets(1),
    "commit_transaction": lambda story: story.commit(),
    "abort_transaction": lambda story: story.abort(),
}
"""Every call of a program, by its name."""
