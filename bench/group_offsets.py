"""Committed offsets under measurement: many small commits, a coordinator's death, a large load."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, NamedTuple

import confluent_kafka

from bench.clusters import Cluster, NotInTime, wait
from bench.group_members import consumer, coordinator_of
from bench.log_events import log_events
from bench.process_stat import cpu_s
from bench.writing import SteadyWriter
from tests.golden.plain import encode_request
from tests.process.wire import WireClient

OFFSETS_LOG = "__consumer_offsets-0"
VERSION = 8
NOT_YET = (14, 15, 16)
"""A coordinator loads, is unknown, or has not heard yet that it is the one."""
FLOWING = 20
PATIENCE_S = 120.0


class CommitRate(NamedTuple):
    """What a few seconds of commits came to."""

    per_s: float
    p50_ms: float
    broker_us_each: float


def commit_fields(group: str, topic: str, offsets: dict[int, int]) -> dict[str, Any]:
    partitions = [
        {"partition_index": index, "committed_offset": offset, "committed_metadata": ""}
        for index, offset in offsets.items()
    ]
    return {"group_id": group, "topics": [{"name": topic, "partitions": partitions}]}


def commit(wire: WireClient, group: str, topic: str, offsets: dict[int, int]) -> None:
    """Of a group without members; a coordinator that is not there yet is waited for."""

    def is_committed() -> bool:
        answer = wire.ask("OffsetCommit", VERSION, **commit_fields(group, topic, offsets))
        errors = {each.error_code for each in answer.topics[0].partitions}
        if errors - {0, *NOT_YET}:
            raise NotInTime(f"{group} cannot commit: {errors}")
        return errors == {0}

    wait(is_committed, f"the first commit of {group}")


def commit_rate(cluster: Cluster, topic: str, *, connections: int, seconds: float) -> CommitRate:
    """As many groups as connections, each with one commit of one offset under way at a time."""
    waits_s: list[float] = []
    with ExitStack() as stack, selectors.DefaultSelector() as ready:
        for number in range(connections):
            group = f"committing-{number}"
            wire = WireClient(cluster.addresses[coordinator_of(cluster, group)])
            stack.enter_context(wire)
            commit(wire, group, topic, {0: 1})
            ready.register(wire.socket, selectors.EVENT_READ, _frame(group, topic))
        before_s, started_s = sum(map(cpu_s, cluster.pids)), time.monotonic()
        sent_s: dict[int, float] = {}
        for key in list(ready.get_map().values()):
            _send(key, sent_s)
        while time.monotonic() - started_s < seconds or sent_s:
            for key, _ in ready.select():
                _receive(key.fileobj)
                now_s = time.monotonic()
                waits_s.append(now_s - sent_s.pop(key.fd))
                if now_s - started_s < seconds:
                    _send(key, sent_s)
        took_s = time.monotonic() - started_s
        used_s = sum(map(cpu_s, cluster.pids)) - before_s
    median_s = sorted(waits_s)[len(waits_s) // 2]
    count = len(waits_s)
    return CommitRate(count / took_s, 1_000 * median_s, 1e6 * used_s / count)


def _frame(group: str, topic: str) -> bytes:
    fields = commit_fields(group, topic, {0: 2})
    request = encode_request("OffsetCommit", VERSION, fields, correlation_id=7, client_id="bench")
    return struct.pack(">i", len(request)) + request


def _send(key: selectors.SelectorKey, sent_s: dict[int, float]) -> None:
    assert isinstance(key.fileobj, socket.socket)
    sent_s[key.fd] = time.monotonic()
    key.fileobj.sendall(key.data)


def _receive(peer: object) -> None:
    """One answer; its error code is the two bytes before three empty sets of tags."""
    assert isinstance(peer, socket.socket)
    head = peer.recv(4, socket.MSG_WAITALL)
    body = peer.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
    if body[-5:] != bytes(5):
        raise NotInTime(f"a commit was refused: {body.hex()}")


def pause_ms(cluster: Cluster, topic: str, *, group: str, protocol: str) -> float:
    """The longest time between two answered commits of a reader whose coordinator is killed.

    It commits what it has read before it reads on. The records that it reads are led by another
    broker than the one that is killed.
    """
    victim = coordinator_of(cluster, group)
    led_by = {each.leader_id: index for index, each in cluster.partitions(topic).items()}
    partition = next(index for leader, index in sorted(led_by.items()) if leader != victim)
    with SteadyWriter(address=cluster.address, topic=topic) as writer:
        writer.to(partition)
        reader = consumer(cluster.address, group, protocol)
        reader.subscribe([topic])
        try:
            _commit_for(reader, FLOWING)
            killed_s = time.monotonic()
            cluster.kill(victim)
            moments_s = [killed_s, *_commit_for(reader, 10 * FLOWING)]
        finally:
            reader.close()
    cluster.start(victim)
    cluster.wait_until_formed()
    cluster.wait_until_in_sync(topic)
    cluster.wait_until_in_sync(OFFSETS_LOG.rpartition("-")[0])
    return 1_000 * max(b - a for a, b in pairwise(moments_s))


def _commit_for(reader: confluent_kafka.Consumer, count: int) -> list[float]:
    """When each of so many commits was answered."""
    moments_s: list[float] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(moments_s) < count:
        if time.monotonic() > deadline_s:
            raise NotInTime(f"only {len(moments_s)} of {count} commits")
        found = reader.poll(0.1)
        if found is None or found.error() is not None:
            continue
        try:
            reader.commit(asynchronous=False)
        except confluent_kafka.KafkaException:
            continue  # it is tried again with the next record, which is the reader's own pause
        moments_s.append(time.monotonic())
    return moments_s


def load_s(cluster: Cluster, topic: str, *, offsets: int, per_group: int) -> tuple[float, int]:
    """Fills one partition of committed offsets, kills its leader: how long its successor loads.

    By the successor's log; the second figure is how many records it has read.
    """
    first = coordinator_of(cluster, "load-0")
    with WireClient(cluster.addresses[first]) as wire:
        for number in range(offsets // per_group):
            commit(wire, f"load-{number}", topic, dict.fromkeys(range(per_group), number))
    killed_at_s = time.time()
    cluster.kill(first)
    found: list[tuple[float, int]] = []

    def is_loaded() -> bool:
        for broker_id in set(cluster.addresses) - {first}:
            events = log_events(cluster.log_lines(broker_id), "BecameLeader", "CoordinatorLoaded")
            mine = [
                each
                for each in events
                if each.at_s >= killed_at_s and each.has("partition", OFFSETS_LOG)
            ]
            if mine and mine[-1].name == "CoordinatorLoaded":
                records = int(mine[-1].text.rpartition("records=")[2].split()[0])
                found.append((mine[-1].at_s - mine[0].at_s, records))
        return bool(found)

    wait(is_loaded, "the next coordinator to have loaded")
    return found[-1]
