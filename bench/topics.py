"""Topics of one repetition: made with as many copies as there are brokers, counted, deleted."""

from __future__ import annotations

import itertools
import time

from bench.brokers import Broker
from tests.process.wire import LATEST, WireClient

USABLE_WITHIN_S = 60.0
PAUSE_S = 0.01
MIN_INSYNC = {1: [], 3: [{"name": "min.insync.replicas", "value": "2"}]}
"""By the number of copies."""
_numbers = itertools.count(1)


class WrongCount(Exception):
    """What was acknowledged is not what the log holds."""


class NotUsable(Exception):
    """A new topic cannot be written to."""


def create_topic(broker: Broker, *, partitions: int) -> str:
    """Made, led, and all copies in sync."""
    name = f"bench-{next(_numbers)}"
    factor = broker.replication_factor
    topic = {"name": name, "num_partitions": partitions, "replication_factor": factor}
    with WireClient(_any_address(broker)) as client:
        wanted = {**topic, "configs": MIN_INSYNC[factor]}
        answer = client.ask("CreateTopics", 7, topics=[wanted], timeout_ms=30_000).topics[0]
        if answer.error_code:
            raise NotUsable(f"{broker.name} refuses {name}: {answer.error_message}")
        deadline_s = time.monotonic() + USABLE_WITHIN_S
        while not _is_usable(client, name, partitions=partitions, copies=factor):
            if time.monotonic() > deadline_s:
                raise NotUsable(f"{broker.name}: {name} has not all its copies")
            time.sleep(PAUSE_S)
    return name


def delete_topic(broker: Broker, name: str) -> None:
    with WireClient(_any_address(broker)) as client:
        client.ask("DeleteTopics", 5, topic_names=[name], timeout_ms=30_000)


def leaders(broker: Broker, topic: str) -> list[str]:
    """The address of each partition's leader."""
    with WireClient(_any_address(broker)) as client:
        answer = client.ask("Metadata", 9, topics=[{"name": topic}])
    addresses = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
    by_index = sorted(answer.topics[0].partitions, key=lambda each: each.partition_index)
    return [addresses[each.leader_id] for each in by_index]


def check_records(broker: Broker, topic: str, *, records: int) -> None:
    """Delivery reports are off for speed, so the log itself is asked."""
    found = 0
    for index, address in enumerate(leaders(broker, topic)):
        with WireClient(address) as client:
            found += client.end_offset(topic, partition=index)
    if found != records:
        raise WrongCount(f"{broker.name}: {records} records were written, the log holds {found}")


def _is_usable(client: WireClient, name: str, *, partitions: int, copies: int) -> bool:
    answer = client.ask("Metadata", 9, topics=[{"name": name}])
    addresses = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
    described = answer.topics[0].partitions
    if len(described) != partitions or any(len(each.isr_nodes) != copies for each in described):
        return False
    return all(
        each.leader_id in addresses
        and _is_led(addresses[each.leader_id], name, each.partition_index)
        for each in described
    )


def _is_led(address: str, topic: str, partition: int) -> bool:
    with WireClient(address) as client:
        error: int = client.offset_at(topic, LATEST, partition=partition).error_code
    return error == 0


def _any_address(broker: Broker) -> str:
    return broker.address.split(",")[0]
