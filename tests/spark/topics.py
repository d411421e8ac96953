"""Makes topics on any cluster of three, and waits until every broker knows them in sync."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.process.waiting import wait_until
from tests.process.wire import WireClient

NewTopic = Callable[..., str]
"""`new_topic(cluster, partitions=4, replicas=3, cleanup_policy="compact")` gives its name."""


def make_topic(
    servers: str, name: str, *, partitions: int, replicas: int, configs: dict[str, str]
) -> None:
    """`servers` are all brokers, as clients want them."""
    wanted = [{"name": key, "value": value} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": replicas}
    with WireClient(servers.split(",")[0]) as wire:
        answer = wire.ask(
            "CreateTopics", 7, topics=[{**topic, "configs": wanted}], timeout_ms=60_000
        )
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message
    wait_until_known(servers, name, partitions=partitions)


def wait_until_known(servers: str, name: str, *, partitions: int) -> None:
    """Until all brokers know so many partitions of a topic, in sync: a client may ask any."""
    for address in servers.split(","):
        with WireClient(address) as wire:
            wait_until(
                partial(_is_in_sync, wire, name, partitions),
                f"{name} to have {partitions} partitions in sync",
            )


def _is_in_sync(wire: WireClient, name: str, partitions: int) -> bool:
    topic = wire.ask("Metadata", 12, topics=[{"name": name}]).topics[0]
    if topic.error_code or len(topic.partitions) != partitions:
        return False
    return all(
        not each.error_code and set(each.isr_nodes) == set(each.replica_nodes)
        for each in topic.partitions
    )
