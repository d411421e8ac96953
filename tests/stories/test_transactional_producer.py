"""The client room's transactional producer on a simulated cluster, while its brokers die."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidelog.client.admin.admin import AdminMachine, Failed
from tidelog.client.admin.topics import TopicCreation, create_topic
from tidelog.client.client import Client
from tidelog.client.config import client_config
from tidelog.client.consumer.config import consumer_config
from tidelog.client.consumer.consumer import ConsumerMachine
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.producer import ProducerMachine
from tidelog.client.producer.transaction_manager import TransactionManager
from tidelog.client.producer.transaction_outcome import TransactionTicket
from tidelog.client.producer.transaction_states import TransactionManagerState
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.worlds.simulator.client_host import ClientHost
from tidelog.worlds.simulator.cluster import SimCluster
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.world import SimWorld

WITHIN_MS = 120_000
NAMES = [TopicPartition("orders", index) for index in range(3)]
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}


class TransactionsOnBrokers:
    """Three brokers, a topic, and a transactional producer on a host of its own."""

    def __init__(self, protocol: str) -> None:
        self.world = SimWorld(seed=7)
        self.network = Network(self.world)
        self.cluster = SimCluster(self.world, self.network, settings=SETTINGS)
        self.cluster.start_all()
        self.bootstrap = {"bootstrap.servers": self.cluster.bootstrap_servers}
        self._create_topic()
        self.host = ClientHost(world=self.world, network=self.network, name="producer")
        config = producer_config(
            {
                **self.bootstrap,
                "transactional.id": "payments",
                "tidelog.transaction.protocol": protocol,
                "request.timeout.ms": "1000",
                "linger.ms": "0",
            }
        )
        client = Client(self.host, config.client, random=self.host.random, trace=self.host.trace)
        self.host.run(client)
        self.producer = ProducerMachine(client, config)
        assert self.call(self.manager.init_transactions).is_ok

    @property
    def manager(self) -> TransactionManager:
        assert self.producer.transactions is not None
        return self.producer.transactions

    def _create_topic(self) -> None:
        """Asked for again until there are enough brokers."""
        host = ClientHost(world=self.world, network=self.network, name="admin")
        config = client_config(self.bootstrap)
        client = Client(host, config, random=host.random, trace=host.trace)
        host.run(client)
        admin = AdminMachine(client)
        answers: list[TopicCreation | Failed] = []

        def ask(now_ms: int) -> None:
            question = create_topic("orders", partitions=len(NAMES), replication_factor=3)
            admin.ask(
                question, lambda answer, _: answers.append(answer), now_ms=now_ms, timeout_ms=5_000
            )

        def is_made() -> bool:
            last = answers[-1] if answers else None
            return isinstance(last, TopicCreation) and last.error == ErrorCode.NONE

        while not is_made():
            answers.clear()
            host.do(ask)
            self.world.run_until(lambda: bool(answers), within_ms=WITHIN_MS)
            self.world.run_for(200)

    def begin(self, *values: str) -> None:
        def act(now_ms: int) -> None:
            self.manager.begin_transaction()
            for value, name in zip(values, NAMES, strict=True):
                self.producer.send("orders", value.encode(), partition=name.index, now_ms=now_ms)

        self.host.do(act)

    def start(self, call: Callable[[int], TransactionTicket]) -> list[TransactionTicket]:
        tickets: list[TransactionTicket] = []
        self.host.do(lambda now_ms: tickets.append(call(now_ms)))
        return tickets

    def call(self, call: Callable[[int], TransactionTicket]) -> TransactionTicket:
        tickets = self.start(call)
        self.world.run_until(lambda: tickets[0].is_done, within_ms=WITHIN_MS)
        self.producer.check()
        return tickets[0]

    def committed(self, count: int) -> list[str]:
        """What a reader of committed records gets, when it has so many and no more come."""
        host = ClientHost(world=self.world, network=self.network, name="reader")
        given = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        config = consumer_config({**self.bootstrap, **given})
        client = Client(host, config.client, random=host.random, trace=host.trace)
        host.run(client)
        consumer = ConsumerMachine(client, config)
        consumer.assign(NAMES)
        values: list[str] = []

        def poll(now_ms: int) -> None:
            values.extend((each.value or b"").decode() for each in consumer.poll(now_ms))

        def has_all() -> bool:
            host.do(poll)
            return len(values) >= count

        self.world.run_until(has_all, within_ms=WITHIN_MS)
        self.world.run_for(1_000)
        host.do(poll)
        return sorted(values)


@pytest.mark.parametrize("protocol", ["auto", "classic"])
@pytest.mark.parametrize("victim", [1, 2, 3])
def test_a_commit_survives_any_broker(protocol: str, victim: int) -> None:
    """Coordinator, leader or both: what was said to be committed is read once."""
    stage = TransactionsOnBrokers(protocol)
    stage.begin("a", "b", "c")
    assert stage.call(stage.manager.commit_transaction).is_ok

    stage.world.run_for(500)
    stage.begin("d", "e", "f")
    committing = stage.start(stage.manager.commit_transaction)
    stage.world.run_for(3)
    stage.cluster.kill(victim)
    stage.world.run_until(lambda: committing[0].is_done, within_ms=WITHIN_MS)

    assert committing[0].is_ok, committing[0].outcome
    assert stage.committed(6) == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize("protocol", ["auto", "classic"])
def test_what_is_aborted_while_a_broker_is_dead_is_never_read(protocol: str) -> None:
    stage = TransactionsOnBrokers(protocol)
    stage.begin("a", "b", "c")
    stage.world.run_for(5)
    stage.cluster.kill(1)
    assert stage.call(stage.manager.abort_transaction).is_ok
    assert stage.manager.state is TransactionManagerState.READY

    stage.cluster.start(1)
    stage.world.run_for(500)
    stage.begin("d", "e", "f")
    assert stage.call(stage.manager.commit_transaction).is_ok
    assert stage.committed(3) == ["d", "e", "f"]
