"""Producers under measurement, librdkafka's and Kafka's own: one transaction after the other."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import confluent_kafka

from bench.clusters import Cluster, NotInTime, wait
from bench.failover import percentile
from bench.group_members import QUIET, TRANSACTION_KEY, coordinator_of
from bench.process_stat import cpu_s
from tests.kafka.tools import java_command

PROGRAM = Path(__file__).with_name("TransactionRounds.java")
STATE_LOG = "__transaction_state"
VERSION_FEATURE = "transaction.version"
CLIENT_SOFTWARE = {"client_software_name": "bench", "client_software_version": "1"}
SAFE_DOWNGRADE, UPGRADE = 2, 1
RECORDS = 100
VALUE = b"v" * 100
PATIENCE_S = 120.0
CONNECTING_S = 0.05
"""Before anything counts: the connections of a new producer, and its first metadata."""
FLOWING = 20


class ProducerFailed(Exception):
    """A producer cannot go on."""


class TransactionRate(NamedTuple):
    """What a few seconds of transactions came to."""

    per_s: float
    p50_ms: float
    p99_ms: float
    broker_us_each: float


class TransactionClient(Protocol):
    """One producer with a transactional id of its own."""

    def run(self, topic: str, *, partitions: int, seconds: float) -> list[float]:
        """How long each transaction took, from its begin to the answered commit, in seconds."""

    def close(self) -> None: ...


class LibrdkafkaClient:
    """With librdkafka's defaults."""

    def __init__(self, address: str, transactional_id: str) -> None:
        settings = {"bootstrap.servers": address, "transactional.id": transactional_id}
        self._producer = confluent_kafka.Producer({**settings, **QUIET})
        self._producer.init_transactions(PATIENCE_S)

    def run(self, topic: str, *, partitions: int, seconds: float) -> list[float]:
        times_s: list[float] = []
        started_s = began_s = time.monotonic()
        while began_s - started_s < seconds:
            self._producer.begin_transaction()
            for number in range(RECORDS):
                self._producer.produce(topic, VALUE, partition=number % partitions)
            self._producer.commit_transaction(PATIENCE_S)
            ended_s = time.monotonic()
            times_s.append(ended_s - began_s)
            began_s = ended_s
        return times_s

    def commit_once(self, topic: str, *, partition: int) -> bool:
        """One record in one transaction; False if that had to be aborted."""
        try:
            self._producer.begin_transaction()
            self._producer.produce(topic, VALUE, partition=partition)
            self._until_ended(self._producer.commit_transaction)
        except confluent_kafka.KafkaException as trouble:
            if not trouble.args[0].txn_requires_abort():
                raise ProducerFailed(str(trouble)) from trouble
            self._until_ended(self._producer.abort_transaction)
            return False
        return True

    def _until_ended(self, end: Callable[[float], None]) -> None:
        """A call that may be repeated is repeated, as librdkafka asks for."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                end(PATIENCE_S)
            except confluent_kafka.KafkaException as trouble:
                if not trouble.args[0].retriable() or time.monotonic() > deadline_s:
                    raise
            else:
                return

    def close(self) -> None:
        """Nothing is under way."""
        self._producer.flush(PATIENCE_S)


class JavaMachine:
    """One Java for all producers of a run, one at a time: it gets warm like a broker."""

    def __init__(self) -> None:
        command = java_command(str(PROGRAM), [], options=["-Xmx256m"], log_level="ERROR")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self._line()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, *words: object) -> list[str]:
        """The words of its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        line = self._line()
        outcome, *answer = line.split()
        if outcome != "ok":
            raise ProducerFailed(line)
        return answer

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ProducerFailed(f"Java ended with {self._process.wait()}")
        return line


class JavaClient:
    """With the defaults of Kafka's own producer."""

    def __init__(self, machine: JavaMachine, address: str, transactional_id: str) -> None:
        self._machine = machine
        machine.ask("open", address, transactional_id)

    def run(self, topic: str, *, partitions: int, seconds: float) -> list[float]:
        words = self._machine.ask("run", topic, partitions, RECORDS, len(VALUE), seconds)
        return [int(word) / 1e9 for word in words]

    def close(self) -> None:
        self._machine.ask("close")


def transaction_rate(
    cluster: Cluster, client: TransactionClient, topic: str, *, partitions: int, seconds: float
) -> TransactionRate:
    """One producer, one transaction at a time."""
    client.run(topic, partitions=partitions, seconds=CONNECTING_S)
    before_s = sum(map(cpu_s, cluster.pids))
    times_s = client.run(topic, partitions=partitions, seconds=seconds)
    used_s = sum(map(cpu_s, cluster.pids)) - before_s
    return TransactionRate(
        len(times_s) / sum(times_s),
        1_000 * percentile(times_s, 50),
        1_000 * percentile(times_s, 99),
        1e6 * used_s / len(times_s),
    )


def commit_pause_ms(cluster: Cluster, topic: str, *, transactional_id: str) -> float:
    """The longest time between two answered commits of a producer whose coordinator is killed.

    It is killed while a transaction is under way, and leads none of the records in it.
    """
    victim = coordinator_of(cluster, transactional_id, key_type=TRANSACTION_KEY)
    led_by = {index: each.leader_id for index, each in cluster.partitions(topic).items()}
    partition = next(index for index, leader in sorted(led_by.items()) if leader != victim)
    client = LibrdkafkaClient(cluster.address, transactional_id)
    moments_s = _commit_for(client, topic, partition, FLOWING)
    killing = threading.Thread(target=cluster.kill, args=(victim,))
    killing.start()
    while killing.is_alive():
        moments_s += _commit_for(client, topic, partition, 1)
    moments_s += _commit_for(client, topic, partition, 10 * FLOWING)
    client.close()
    cluster.start(victim)
    cluster.wait_until_formed()
    for each in (topic, STATE_LOG):
        cluster.wait_until_in_sync(each)
    return 1_000 * max(b - a for a, b in pairwise(moments_s))


def _commit_for(client: LibrdkafkaClient, topic: str, partition: int, count: int) -> list[float]:
    """When each of so many commits was answered."""
    moments_s: list[float] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(moments_s) < count:
        if client.commit_once(topic, partition=partition):
            moments_s.append(time.monotonic())
        elif time.monotonic() > deadline_s:
            raise NotInTime(f"only {len(moments_s)} of {count} commits")
    return moments_s


def finalize_transaction_version(cluster: Cluster, level: int) -> None:
    """UpdateFeatures; comes back when every broker tells clients so.

    At level 0 Kafka's own producer adds partitions as librdkafka does; at level 2 leaders add them.
    """

    def finalized(broker_id: int) -> int | None:
        answer = cluster.ask("ApiVersions", 3, at=broker_id, **CLIENT_SOFTWARE)
        if answer is None:
            return None
        levels: dict[str, int] = {
            each.name: each.max_version_level for each in answer.finalized_features
        }
        return levels.get(VERSION_FEATURE, 0)

    if all(finalized(each) == level for each in cluster.addresses):
        return
    update = {
        "feature": VERSION_FEATURE,
        "max_version_level": level,
        "upgrade_type": UPGRADE if level else SAFE_DOWNGRADE,
    }
    answer = cluster.ask("UpdateFeatures", 1, timeout_ms=60_000, feature_updates=[update])
    if answer is None or answer.error_code:
        raise NotInTime(f"{cluster.name} does not take {VERSION_FEATURE} {level}: {answer}")
    wait(
        lambda: all(finalized(each) == level for each in cluster.addresses),
        f"{VERSION_FEATURE} {level}",
    )
