"""A pipe under test: a topic of numbered records, the topic that a stream writes, a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.kafka import KafkaCluster
from tests.spark.sink_parts import read_committed, wait_until_decided
from tests.spark.source_data import write_numbered
from tests.spark.stream_program import Wish
from tests.spark.topics import make_topic

SOURCE_PARTITIONS = 2
PARTITIONS = 3


class Pipe:
    """Its topics are named after it."""

    def __init__(self, kafka: KafkaCluster, name: str, directory: Path) -> None:
        self.bootstrap = kafka.bootstrap_servers
        self.source = f"{name}-in"
        self.topic = f"{name}-out"
        self.checkpoint = directory / f"{name}-checkpoint"
        self.fed = 0
        for topic, partitions in ((self.source, SOURCE_PARTITIONS), (self.topic, PARTITIONS)):
            make_topic(
                self.bootstrap,
                topic,
                partitions=partitions,
                replicas=3,
                configs={"min.insync.replicas": "2"},
            )

    def feed(self, records: int) -> None:
        """So many more."""
        write_numbered(
            self.bootstrap, self.source, records, partitions=SOURCE_PARTITIONS, first=self.fed
        )
        self.fed += records

    def wish(self, **more: Any) -> Wish:
        return Wish(
            bootstrap=self.bootstrap,
            source=self.source,
            topic=self.topic,
            checkpoint=str(self.checkpoint),
            **more,
        )

    def committed(self) -> list[str]:
        """What a reader of committed data gets from the topic, sorted."""
        wait_until_decided(self.bootstrap, self.topic)
        return sorted(read_committed(self.bootstrap, self.topic))

    def every_record_once(self) -> list[str]:
        return sorted(f"value {number}" for number in range(self.fed))
