"""Members under measurement: librdkafka's that subscribe, and bare ones that only heartbeat."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import confluent_kafka

from bench.clusters import Cluster, NotInTime, wait
from tests.process.wire import WireClient

POLL_S = 0.002
HEARTBEAT_INTERVAL_S = 3.0
SESSION_MS = 45_000
PATIENCE_S = 120.0
QUIET = {"log_level": 0}
"""Lost connections are expected."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Of FindCoordinator."""


def coordinator_of(cluster: Cluster, name: str, *, key_type: int = GROUP_KEY) -> int:
    """The broker that looks after the group or transactional id, as soon as there is one."""
    found: list[int] = []

    def is_known() -> bool:
        answer = cluster.ask("FindCoordinator", 4, key_type=key_type, coordinator_keys=[name])
        if answer is not None and answer.coordinators[0].error_code == 0:
            found.append(answer.coordinators[0].node_id)
        return bool(found)

    wait(is_known, f"a coordinator of {name}")
    return found[-1]


def consumer(address: str, group: str, protocol: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )


def assigned_s(cluster: Cluster, topic: str, *, group: str, protocol: str, members: int) -> float:
    """From the first subscription until every member has its share and each partition one owner.

    All clients are made and connected before: their start is not the brokers'.
    """
    partitions = set(cluster.partitions(topic))
    consumers = [consumer(cluster.address, group, protocol) for _ in range(members)]
    for each in consumers:
        each.list_topics(topic, timeout=PATIENCE_S)
    try:
        started_s = time.monotonic()
        for each in consumers:
            each.subscribe([topic])
        while not _is_shared(consumers, partitions):
            if time.monotonic() - started_s > PATIENCE_S:
                raise NotInTime(f"{cluster.name}: {members} members do not settle ({protocol})")
            for each in consumers:
                each.poll(POLL_S)
        return time.monotonic() - started_s
    finally:
        closing = [threading.Thread(target=each.close) for each in consumers]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()


def _is_shared(consumers: list[confluent_kafka.Consumer], partitions: set[int]) -> bool:
    shares = [[each.partition for each in consumer.assignment()] for consumer in consumers]
    owners = Counter(partition for share in shares for partition in share)
    return all(shares) and owners == Counter(partitions)


@contextmanager
def idle_members(cluster: Cluster, count: int) -> Iterator[None]:
    """So many groups with one member each that has nothing to do but to send heartbeats.

    One connection for each broker: what is measured is groups, not sockets.
    """
    names = [f"idle-{number}" for number in range(count)]
    homes = {name: coordinator_of(cluster, name) for name in names}
    ending = threading.Event()
    with ExitStack() as stack:
        for broker_id, address in cluster.addresses.items():
            mine = [name for name in names if homes[name] == broker_id]
            wire = stack.enter_context(WireClient(address))
            members = {name: _joined(wire, name) for name in mine}
            beating = threading.Thread(target=_beat, args=(wire, members, ending))
            beating.start()
            stack.callback(beating.join)
        stack.callback(ending.set)
        yield


def _joined(wire: WireClient, group: str) -> tuple[int, str]:
    """Generation and member id of the only member."""
    joining = {
        "group_id": group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": SESSION_MS,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\1\0\0\0\0\xff\xff\xff\xff"}],
    }
    member_id = wire.ask("JoinGroup", 9, member_id="", **joining).member_id
    joined = wire.ask("JoinGroup", 9, member_id=member_id, **joining)
    synced = wire.ask(
        "SyncGroup",
        5,
        group_id=group,
        generation_id=joined.generation_id,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": member_id, "assignment": b""}],
    )
    if joined.error_code or synced.error_code:
        raise NotInTime(f"{group}: {joined.error_code}, {synced.error_code}")
    return joined.generation_id, member_id


def _beat(wire: WireClient, members: dict[str, tuple[int, str]], ending: threading.Event) -> None:
    """Evenly over the interval, until it ends."""
    pause_s = HEARTBEAT_INTERVAL_S / max(1, len(members))
    next_s = time.monotonic()
    while not ending.is_set() and members:
        for group, (generation_id, member_id) in members.items():
            next_s += pause_s
            if ending.wait(max(0.0, next_s - time.monotonic())):
                return
            fields = {"group_id": group, "generation_id": generation_id, "member_id": member_id}
            answer = wire.ask("Heartbeat", 4, **fields)
            assert answer.error_code == 0, f"{group}: {answer.error_code}"
