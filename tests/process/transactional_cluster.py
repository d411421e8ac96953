"""Three broker processes for transactions, and what their partitions and coordinators know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import confluent_kafka

from tests.process.broker import Setting
from tests.process.cluster import ProcessCluster
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import fetch_fields
from tidelog.client.admin.transactions import TransactionDescription, describe_transaction
from tidelog.client.partition_requests import fetch_answer
from tidelog.client.shells.blocking_clients import Admin
from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.model.replication_settings import RACK_AWARE_SELECTOR
from tidelog.core.model.topic_name import TRANSACTIONS_TOPIC

BROKERS = (1, 2, 3)
RACKS = {broker: f"rack-{broker}" for broker in BROKERS}
PARTITIONS = 3
"""Of internal topics too, so each broker coordinates something."""
ENDED = ("Empty", "CompleteCommit", "CompleteAbort")
CLIENT = {"client_software_name": "test", "client_software_version": "1"}
_SAFE_DOWNGRADE, _UPGRADE = 2, 1

SETTINGS: dict[str, Setting] = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": PARTITIONS,
    "transaction.state.log.num.partitions": PARTITIONS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "min.insync.replicas": 2,
    "replica.selector.class": RACK_AWARE_SELECTOR,
}


class Fences(NamedTuple):
    """The ends of what the two kinds of readers see."""

    last_stable_offset: int
    high_watermark: int


class TransactionalCluster:
    """A running cluster; every topic has a copy on each broker."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self.cluster = cluster
        self.servers = cluster.bootstrap_servers
        self.transaction_version = 2
        self._topics = 0

    def new_topic(self, *, partitions: int = 1, **configs: str) -> str:
        self._topics += 1
        name = f"orders-{self._topics}"
        self.cluster.create_topic(name, partitions=partitions, **configs)
        return name

    def fill(self, topic: str, values: Sequence[str], *, partition: int = 0) -> None:
        """Without a transaction."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers})
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(PATIENCE_S) == 0

    # Transactions.

    def describe(self, transactional_id: str) -> TransactionDescription:
        with Admin({"bootstrap.servers": self.servers}) as admin:
            return admin.ask(describe_transaction(transactional_id), timeout_s=PATIENCE_S)

    def wait_until_ended(self, transactional_id: str) -> None:
        """Until the markers of its last transaction are in all partitions."""
        wait_until(
            lambda: self.describe(transactional_id).state in ENDED,
            f"the end of {transactional_id}'s transaction",
        )

    def coordinator(self, transactional_id: str) -> int:
        """The broker that has it now."""
        index = partition_of(transactional_id, PARTITIONS)
        return wait_until(
            lambda: self.cluster.leader(TRANSACTIONS_TOPIC, index), "a transaction coordinator"
        )

    def set_transaction_version(self, level: int, *, is_lower: bool) -> None:
        """UpdateFeatures; comes back when every broker tells clients so."""
        update = {
            "feature": "transaction.version",
            "max_version_level": level,
            "upgrade_type": _SAFE_DOWNGRADE if is_lower else _UPGRADE,
        }
        with self.cluster.wire(BROKERS[0]) as wire:
            answer = wire.ask("UpdateFeatures", 1, timeout_ms=60_000, feature_updates=[update])
            assert answer.error_code == 0, answer.error_message

        def is_told(broker: int) -> bool:
            with self.cluster.wire(broker) as wire:
                answer = wire.ask("ApiVersions", 3, **CLIENT)
            assert answer.error_code == 0, answer.error_code
            told = {each.name: each.max_version_level for each in answer.finalized_features}
            return bool(told.get("transaction.version", 0) == level)

        wait_until(lambda: all(map(is_told, BROKERS)), f"transaction.version {level}")
        self.transaction_version = level

    # Partitions.

    def fences(self, topic: str, *, partition: int = 0) -> Fences:
        """As the partition's leader tells consumers."""
        leader = wait_until(lambda: self.cluster.leader(topic, partition), "a leader")
        with self.cluster.wire(leader) as wire:
            fields = fetch_fields(topic, 0, partition=partition)
            answer = fetch_answer(wire.ask("Fetch", 11, **fields))
        assert answer.error_code == 0, answer.error_code
        return Fences(answer.last_stable_offset, answer.high_watermark)

    def committed(self, group: str, topic: str) -> int | None:
        """The group's offset of partition 0 that counts; offsets of open transactions do not."""
        config = {"bootstrap.servers": self.servers, "group.id": group}
        consumer = confluent_kafka.Consumer({**config, "isolation.level": "read_uncommitted"})
        wanted = [confluent_kafka.TopicPartition(topic, 0)]
        [found] = consumer.committed(wanted, timeout=PATIENCE_S)
        consumer.close()
        return None if found.offset == confluent_kafka.OFFSET_INVALID else int(found.offset)

    # Processes.

    def kill(self, *brokers: int) -> None:
        """kill -9, all of them at once."""
        self.cluster.launcher.kill(list(brokers))

    def start(self, *brokers: int) -> None:
        """Comes back when all brokers know each other."""
        for broker in brokers:
            self.cluster.launch_node(broker)
        self.cluster.wait_until_formed()


@contextmanager
def running_brokers(directory: Path, *, faults: bool = False) -> Iterator[TransactionalCluster]:
    """With `faults` the brokers have fault gates."""
    with ProcessCluster(
        directory=directory,
        settings=SETTINGS,
        settings_of={broker: {"broker.rack": rack} for broker, rack in RACKS.items()},
        faults=faults,
    ) as cluster:
        yield TransactionalCluster(cluster)
