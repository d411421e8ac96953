"""The load, one kind per process: `python -m bench.clients KIND PARAMETERS` (parameters in JSON).

A client prepares itself, prints `ready`, waits for a line on its standard input, runs, and prints
its result in JSON. So connecting is not measured, and several clients begin together.
"""

from __future__ import annotations

import json
import resource
import select
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.requests import ANSWER_ERROR_IS, error_position, produce_frame

Result = dict[str, Any]
Prepared = Callable[[], Result]
READ_BYTES = 65_536
SILENCE_S = 60.0


class LoadFailed(Exception):
    """The broker refused or stopped answering."""


def main() -> None:
    kind, parameters = sys.argv[1], json.loads(sys.argv[2])
    run = KINDS[kind](**parameters)
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    before = _own_cpu_s()
    started_s = time.monotonic()
    result = run()
    ended_s = time.monotonic()
    result |= {"started_s": started_s, "ended_s": ended_s, "cpu_s": _own_cpu_s() - before}
    print(json.dumps(result), flush=True)


def produce(*, address: str, topic: str, value_bytes: int, records: int) -> Prepared:
    """librdkafka with its defaults, until everything is acknowledged."""
    from bench.librdkafka import Producer

    producer = Producer(address, topic, b"v" * value_bytes)
    producer.meet()

    def run() -> Result:
        producer.produce(records)
        producer.flush()
        return {"count": records}

    return run


def consume(*, address: str, topic: str, partitions: int, records: int) -> Prepared:
    """librdkafka with its defaults, from the first record to the last."""
    from bench.librdkafka import Consumer

    consumer = Consumer(address, topic, partitions=partitions)
    consumer.meet()

    def run() -> Result:
        consumer.consume(records)
        return {"count": records}

    return run


def librdkafka_latency(*, address: str, topic: str, value_bytes: int, requests: int) -> Prepared:
    """One record in flight through librdkafka: linger 0, flushed each time."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    failures: list[object] = []
    value = b"v" * value_bytes

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failures.append(error)

    def once() -> None:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
        if producer.flush(SILENCE_S) or failures:
            raise LoadFailed(f"not delivered: {failures}")

    once()
    return lambda: _timed(once, requests)


def wire_latency(*, address: str, topic: str, value_bytes: int, requests: int) -> Prepared:
    """One request in flight on a bare socket, its bytes made beforehand."""
    connection = _connect(address)
    frame = produce_frame(topic, partition=0, value_bytes=value_bytes)
    at = error_position(topic)

    def once() -> None:
        connection.sendall(frame)
        _check(_receive(connection), at)

    once()
    return lambda: _timed(once, requests)


def connections(
    *,
    address: str,
    topic: str,
    leaders: list[str],
    value_bytes: int,
    connections: int,
    seconds: float,
) -> Prepared:
    """Many connections, each to a partition's leader, with one small Produce in flight always."""
    partitions = [index % len(leaders) for index in range(connections)]
    frames = [
        produce_frame(topic, partition=partition, value_bytes=value_bytes)
        for partition in partitions
    ]
    peers = [_connect(leaders[partition]) for partition in partitions]
    return lambda: {"count": _keep_in_flight(peers, frames, error_position(topic), seconds)}


def _keep_in_flight(
    peers: list[socket.socket], frames: list[bytes], error_at: int, seconds: float
) -> int:
    """The number of requests answered; in the end nothing is in flight any more."""
    poll = select.poll()
    by_descriptor = {}
    for peer, frame in zip(peers, frames, strict=True):
        by_descriptor[peer.fileno()] = (peer.recv, peer.sendall, frame)
        poll.register(peer, select.POLLIN)
        peer.sendall(frame)
    answered, in_flight = 0, len(peers)
    ends_s = time.monotonic() + seconds
    while in_flight:
        events = poll.poll(SILENCE_S * 1000)
        if not events:
            raise LoadFailed(f"no answer for {SILENCE_S:g} s")
        goes_on = time.monotonic() < ends_s
        for descriptor, _ in events:
            receive, send, frame = by_descriptor[descriptor]
            _check(receive(READ_BYTES), error_at)
            answered += 1
            if goes_on:
                send(frame)
            else:
                in_flight -= 1
    return answered


def _timed(once: Callable[[], None], requests: int) -> Result:
    """Percentiles of so many calls, one after the other."""
    clock = time.perf_counter_ns
    times_ns = []
    for _ in range(requests):
        started_ns = clock()
        once()
        times_ns.append(clock() - started_ns)
    times_ns.sort()
    return {
        "count": requests,
        "p50_ms": times_ns[requests // 2] / 1e6,
        "p99_ms": times_ns[requests * 99 // 100] / 1e6,
    }


def _connect(address: str) -> socket.socket:
    host, port = address.split(":")
    connection = socket.create_connection((host, int(port)), timeout=SILENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _receive(connection: socket.socket) -> bytes:
    return connection.recv(READ_BYTES)


def _check(answer: bytes, error_at: int) -> None:
    """The answer came whole (it is small enough for one segment) and says no error."""
    if len(answer) < 4 or int.from_bytes(answer[:4], "big") != len(answer) - 4:
        raise LoadFailed(f"not one whole answer: {answer[:80]!r}")
    if answer[error_at : error_at + 2] != ANSWER_ERROR_IS:
        raise LoadFailed(f"refused: {answer[:80]!r}")


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


KINDS: dict[str, Callable[..., Prepared]] = {
    "produce": produce,
    "consume": consume,
    "librdkafka_latency": librdkafka_latency,
    "wire_latency": wire_latency,
    "connections": connections,
}

if __name__ == "__main__":
    main()
