"""A campaign: a cluster under load, and at its end the judge and a look at every replica."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.process.broker import Setting
from tests.process.cluster import BOTH_ROLES, PartitionView, ProcessCluster
from tests.process.evidence import PREFERRED, elect
from tests.process.load import PARTITIONS, Load
from tests.process.producers import ProducerOptions, TimelineProducer
from tests.process.timelines import make_producer
from tests.process.verdicts import NotLeader, final_log, verdict
from tests.process.waiting import wait_until
from tests.process.wire import batches_on_disk
from tidelog.judge.history import FinalLog


class Campaign:
    """A cluster, and loads that write to a topic each."""

    def __init__(self, cluster: ProcessCluster, loads: list[Load]) -> None:
        self.cluster = cluster
        self.loads = loads

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(load.topic, partition) for load in self.loads for partition in load.calls]

    def write(self, count: int) -> None:
        """Everybody gets more to write, and is in the midst of it."""
        for load in self.loads:
            load.grant(count)
        for load in self.loads:
            load.wait_for(1 / 4)

    def write_through(self, count: int) -> None:
        """Everybody gets more to write, and gets it done but for the last ones."""
        for load in self.loads:
            load.grant(count)
        for load in self.loads:
            load.wait_for(3 / 4)

    def wait_until_whole(self) -> None:
        self.cluster.wait_until_formed()
        for topic, partition in self.places:
            self._wait_for_all_replicas(topic, partition)

    def spread_leaders(self) -> None:
        """Each partition is led by the first of its replicas again, and everybody says so."""
        for topic, partition in self.places:
            first = self.standing(topic, partition).replicas[0]

            def is_led_by_first(
                topic: str = topic, partition: int = partition, first: int = first
            ) -> bool:
                told = self._told_by_all(topic, partition)
                if all(each is not None and each.leader == first for each in told):
                    return True
                with suppress(OSError):  # that there was no controller for long
                    elect(self.cluster, topic, kind=PREFERRED, partition=partition, by=first)
                return False

            wait_until(is_led_by_first, f"{topic}-{partition} to be led by {first}")

    def place_led_by(self, broker: int) -> tuple[str, int]:
        """A partition that it leads. It may lead none any more where sessions are short: whoever
        gets no processor for so long is fenced, and its leaderships do not come back at once."""

        def found() -> tuple[str, int] | None:
            for place in self.places:
                if self.leader(*place) == broker:
                    return place
            self.spread_leaders()
            return None

        return wait_until(found, f"a partition that {broker} leads")

    def leader(self, topic: str, partition: int) -> int:
        return self.standing(topic, partition).leader

    def finish(self) -> None:
        """Judge what the loads were told, and compare the replicas batch by batch."""
        for load in self.loads:
            load.finish()
        self.wait_until_whole()
        for load in self.loads:
            for partition in load.calls:
                final = self._final_log(load.topic, partition)
                found = verdict(load.history(partition), final)
                assert found == [], found[:5]
                self._compare_replicas(load.topic, partition, final.end_offset)

    def _final_log(self, topic: str, partition: int) -> FinalLog:
        """As soon as the leader of now gives all to read that it has: one that leads for a moment
        only does not know yet how much of it is committed."""

        def read() -> FinalLog | None:
            leader = self.cluster.nodes[self.leader(topic, partition)]
            with suppress(NotLeader):
                final = final_log(leader.address, topic, partition=partition, at_us=10**12)
                held = batches_on_disk(leader.data_path, topic, partition=partition)
                if final.end_offset == held[-1][0].end_offset:
                    return final
            return None

        return wait_until(read, f"all of {topic}-{partition}")

    def _compare_replicas(self, topic: str, partition: int, end_offset: int) -> None:
        copies = [
            batches_on_disk(self.cluster.nodes[broker].data_path, topic, partition=partition)
            for broker in self.standing(topic, partition).replicas
        ]
        assert copies[0][-1][0].end_offset == end_offset
        assert all(copy == copies[0] for copy in copies), f"{topic}-{partition} differs"

    def standing(self, topic: str, partition: int) -> PartitionView:
        """As soon as anybody who runs names a leader."""

        def told() -> PartitionView | None:
            for broker in self.cluster.broker_ids:
                if self.cluster.is_running(broker):
                    standing = self.cluster.partition_view(topic, partition, via=broker)
                    if standing is not None and standing.leader >= 0:
                        return standing
            return None

        return wait_until(told, f"a leader of {topic}-{partition}")

    def _told_by_all(self, topic: str, partition: int) -> list[PartitionView | None]:
        brokers = self.cluster.broker_ids
        return [self.cluster.partition_view(topic, partition, via=each) for each in brokers]

    def _wait_for_all_replicas(self, topic: str, partition: int) -> None:
        def is_whole() -> bool:
            """Everybody says so: one that has just woken up still tells how it was before."""
            told = self._told_by_all(topic, partition)
            return all(each and sorted(each.isr) == sorted(each.replicas) for each in told)

        wait_until(is_whole, f"all replicas of {topic}-{partition}")


@contextmanager
def campaign(
    directory: Path,
    clients: tuple[str, ...],
    request: pytest.FixtureRequest,
    *,
    roles: tuple[str, ...] = (BOTH_ROLES,) * 3,
    settings: Mapping[str, Setting] | None = None,
    settings_of: Mapping[int, Mapping[str, Setting]] | None = None,
    request_timeout_ms: int | None = None,
    partitions: int = PARTITIONS,
) -> Iterator[Campaign]:
    """Comes when everybody writes; judges at the end."""
    options = (
        ProducerOptions()
        if request_timeout_ms is None
        else ProducerOptions(request_timeout_ms=request_timeout_ms)
    )
    producers: list[TimelineProducer] = []
    with ProcessCluster(
        directory=directory, roles=roles, settings=settings, settings_of=settings_of
    ) as cluster:
        loads = []
        for client in clients:
            create_topic(cluster, f"of-{client}", partitions)
            producers.append(make_producer(client, cluster.bootstrap_servers, options, request))
            topic = f"of-{client}"
            loads.append(Load(producers[-1], name=client, topic=topic, partitions=partitions))
        for load in loads:
            load.start()
        running = Campaign(cluster, loads)
        try:
            yield running
            running.finish()
        finally:
            for load in loads:
                load.give_up()
            for producer in producers:
                producer.close()


def create_topic(cluster: ProcessCluster, name: str, partitions: int = PARTITIONS) -> None:
    """Partitions with three copies and a minimum of two, led by different brokers."""
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 3,
        "configs": [{"name": "min.insync.replicas", "value": "2"}],
    }
    cluster.ask_for_topic(topic, by=cluster.broker_ids[0])
    wait_until(
        lambda: all(
            cluster.partition_view(name, partitions - 1, via=each) for each in cluster.broker_ids
        ),
        f"{name} to be known",
    )
