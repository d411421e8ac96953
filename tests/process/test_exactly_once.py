"""Consume, transform, produce: every input once in the output, though everything is killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import confluent_kafka
import pytest

from tests.kafka.tools import QUICK_START, java_command
from tests.process.exactly_once_job import transformed
from tests.process.target import IS_KAFKA
from tests.process.transactional_clients import Librdkafka
from tests.process.transactional_cluster import BROKERS, TransactionalCluster, running_brokers
from tests.process.waiting import PATIENCE_S, wait_until
from tests.tidy.reading import ROOT

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")

PARTITIONS = 3
JAVA_PROGRAM = Path(__file__).with_name("ExactlyOnceJob.java")


class SupervisedJob(threading.Thread):
    """The job, started again whenever it has ended, and what all its instances have said."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.said: Counter[str] = Counter()
        self.starts = 0
        self._command = command
        self._is_over = False
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        while not self._is_over:
            with subprocess.Popen(
                self._command, cwd=ROOT, stdout=subprocess.PIPE, text=True
            ) as process:
                self._process = process
                self.starts += 1
                assert process.stdout is not None
                for line in process.stdout:
                    self.said[line.split()[0]] += 1

    def kill_in_a_transaction(self) -> None:
        """As soon as the next one has begun."""
        begun = self.said["begun"]
        wait_until(lambda: self.said["begun"] > begun, "a transaction to begin")
        self.kill()

    def kill(self) -> None:
        assert self._process is not None
        starts = self.starts
        self._process.kill()
        if not self._is_over:
            wait_until(lambda: self.starts > starts, "the next instance")

    def end(self) -> None:
        self._is_over = True
        self.kill()
        self.join()


class Pipeline:
    """Input that is granted piece by piece, the job, and what came out."""

    def __init__(self, brokers: TransactionalCluster, job: Callable[[list[str]], list[str]]):
        self.brokers = brokers
        self.source = brokers.new_topic(partitions=PARTITIONS)
        self.target = brokers.new_topic(partitions=PARTITIONS)
        self.written = 0
        self._writer = confluent_kafka.Producer(
            {"bootstrap.servers": brokers.servers, "enable.idempotence": True, "linger.ms": 20}
        )
        self.job = SupervisedJob(job([brokers.servers, self.source, self.target, self.target]))
        self.job.start()

    def write(self, count: int) -> None:
        for number in range(self.written, self.written + count):
            self._writer.produce(self.source, str(number), partition=number % PARTITIONS)
        assert self._writer.flush(PATIENCE_S) == 0
        self.written += count

    def wait_until_done(self) -> None:
        """Until the group's offsets are behind all that was written."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.brokers.servers, "group.id": self.target}
        )
        wanted = [confluent_kafka.TopicPartition(self.source, at) for at in range(PARTITIONS)]

        def is_done() -> bool:
            try:
                found = consumer.committed(wanted, timeout=PATIENCE_S)
            except confluent_kafka.KafkaException:  # it asked somebody who has just died
                return False
            return sum(max(each.offset, 0) for each in found) == self.written

        wait_until(is_done, f"{self.written} records to be done")
        consumer.close()

    def outcome(self) -> tuple[Counter[str], list[str]]:
        """How often each value is in the output, and what is wrong with its partitions."""
        self.brokers.wait_until_ended(self.target)
        fences = [self.brokers.fences(self.target, partition=at) for at in range(PARTITIONS)]
        hanging = [str(each) for each in fences if each.last_stable_offset != each.high_watermark]
        found = Librdkafka().read(self.brokers.servers, self.target, partitions=PARTITIONS)
        return Counter(each.value for each in found), hanging


def python_job(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "tests.process.exactly_once_job", *arguments]


def java_job(arguments: list[str]) -> list[str]:
    options = ["-Xmx256m", *QUICK_START]
    return java_command(str(JAVA_PROGRAM), arguments, options=options, log_level="ERROR")


@pytest.mark.long
@pytest.mark.scenario("D4-F4", "D4-C5", "D4-Q3", "D4-Q5", "D4-X3", "N44")
@pytest.mark.parametrize(
    "job", [python_job, pytest.param(java_job, marks=pytest.mark.java)], ids=["librdkafka", "java"]
)
def test_every_input_is_once_in_the_output(
    job: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    """Some 20,000 records in transactions of 750, while each broker in turn is killed three times
    and the job six times, three of them in the middle of a transaction."""
    rounds, per_round = 9, (741, 741, 741)
    with running_brokers(tmp_path) as brokers:
        pipeline = Pipeline(brokers, job)
        try:
            for number in range(rounds):
                victim = BROKERS[number % len(BROKERS)]
                pipeline.write(per_round[0])
                if number % 3 == 0:
                    pipeline.wait_until_done()
                brokers.kill(victim)
                pipeline.write(per_round[1])
                if number % 3 == 1:
                    pipeline.wait_until_done()
                    kill = threading.Thread(target=pipeline.job.kill_in_a_transaction)
                    kill.start()
                    pipeline.write(per_round[2])
                    kill.join()
                elif number % 3 == 2:
                    pipeline.job.kill()
                    pipeline.write(per_round[2])
                else:
                    pipeline.write(per_round[2])
                pipeline.wait_until_done()
                brokers.start(victim)
        finally:
            pipeline.job.end()
        counts, hanging = pipeline.outcome()

    wanted = Counter(transformed(str(number)) for number in range(pipeline.written))
    assert pipeline.written == 20_007
    assert pipeline.job.starts > 6
    assert not hanging, hanging
    assert counts == wanted, f"lost {len(wanted - counts)}, repeated {len(counts - wanted)}"
