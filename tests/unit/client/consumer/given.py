"""A consumer on a fake cluster of three brokers, that takes what it can get."""

from __future__ import annotations

from typing import Any

from tests.unit.client.fake_cluster import FakeCluster, Seen
from tests.unit.client.virtual import Host
from tidelog.client.consumer.config import consumer_config
from tidelog.client.consumer.consumer import ConsumerMachine
from tidelog.client.consumer.errors import ConsumerError
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_01_fetch import FetchRequest

TOPIC = "orders"
P0 = TopicPartition(TOPIC, 0)


class Reader:
    """One consumer, one cluster, and what came out of `poll`."""

    def __init__(self, *, partitions: int = 1, polls: bool = True, **settings: Any) -> None:
        self.cluster = FakeCluster()
        self.cluster.create(TOPIC, partitions=partitions)
        self.clock = self.cluster.clock
        given = {
            "auto.offset.reset": "earliest",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        config = consumer_config({"bootstrap.servers": self.cluster.bootstrap, **given})
        self.host = Host(self.cluster, config.client)
        self.consumer = ConsumerMachine(self.host.client, config)
        self.records: list[ConsumerRecord] = []
        self.errors: list[ConsumerError] = []
        if polls:
            self.consumer.on_ready = self._poll

    @property
    def log(self) -> Any:
        return self.cluster[f"{TOPIC}-0"]

    def start(self, *indexes: int, seek: int | None = None) -> None:
        names = [TopicPartition(TOPIC, index) for index in indexes or (0,)]

        def begin(now_ms: int) -> None:
            self.consumer.assign(names)
            if seek is not None:
                self.consumer.seek(P0, seek)

        self.host.do(begin)

    def seek(self, offset: int, *, leader_epoch: int | None = None) -> None:
        self.host.do(lambda _: self.consumer.seek(P0, offset, leader_epoch=leader_epoch))

    def _poll(self, now_ms: int) -> None:
        try:
            self.records += self.consumer.poll(now_ms)
        except ConsumerError as error:
            self.errors.append(error)

    def poll(self, **more: Any) -> list[str]:
        """A program's own poll."""
        taken = self.host.do(lambda now_ms: self.consumer.poll(now_ms, **more))
        return [(each.value or b"").decode() for each in taken]

    def values(self) -> list[str]:
        return [(each.value or b"").decode() for each in self.records]

    def offsets(self) -> list[int]:
        return [each.offset for each in self.records]

    def fetches(self, broker_id: int | None = None) -> list[Seen]:
        return self.cluster.requests(FetchRequest, broker_id)

    def until(self, *values: str, within_ms: int = 60_000) -> None:
        """Until exactly these have been read."""
        self.clock.run_until(lambda: len(self.records) >= len(values), within_ms=within_ms)
        assert self.values() == list(values)
