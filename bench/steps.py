"""Where the time of a small Produce goes: decode, decide, write, encode, and the socket.

The node is driven in this process without socket and disk; its parts are then timed alone. What is
left of the running broker's CPU time per request is the socket's: event loop, frames, kernel.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median

from bench.brokers import TIDELOG
from bench.null_disk import NullDisk
from bench.requests import ANSWER_ERROR_IS, PRODUCE_VERSION, error_position, produce_frame
from bench.rows import Figures, Metric
from bench.scenarios import SMALL_BYTES, unbatched_cost
from tests.golden.plain import encode_request
from tidelog.core.model.trace import NullTrace
from tidelog.core.node.node import Node
from tidelog.core.node.ports import Part
from tidelog.core.node.settings import NodeSettings
from tidelog.core.wire.headers import read_request_header, response_header
from tidelog.core.wire.produce_fast import (
    ProducePartitionAnswer,
    decode_produce,
    encode_produce_answer,
)
from tidelog.worlds.runtime.os_disk import OsDisk

TOPIC = "steps"
PEERS = 50
ROUNDS = 7
SIZE_BYTES = 4
ERROR_AT = error_position(TOPIC)


class Answers:
    """An outbox that keeps the last answer and sends nothing."""

    def __init__(self) -> None:
        self.last: Sequence[Part] = ()
        self.count = 0

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        self.last = parts
        self.count += 1

    def close(self, connection: int, reason: str) -> None:
        raise AssertionError(reason)

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        raise AssertionError("a node alone opens no link")

    def send(self, link: int, parts: Sequence[Part]) -> None:
        raise AssertionError("a node alone opens no link")

    def disconnect(self, link: int) -> None: ...

    def pause_reading(self, connection: int) -> None: ...

    def resume_reading(self, connection: int) -> None: ...

    def arm(self, deadline_ms: int) -> None: ...

    def halt(self, reason: str) -> None:
        raise AssertionError(reason)


class DrivenNode:
    """A real node with one topic, on a null disk."""

    def __init__(self) -> None:
        self.outbox = Answers()
        self.disk = NullDisk()
        wall_ms = int(time.time() * 1000)
        self.node = Node(
            settings=NodeSettings.of(
                {"node.id": "1", "log.dirs": "data", "listeners": "PLAINTEXT://127.0.0.1:9092"}
            ),
            disk=self.disk,
            outbox=self.outbox,
            trace=NullTrace(),
            random=Random(1),
            wall_ms=lambda now_ms: wall_ms + now_ms,
        )
        self.node.start(0)
        self._settle()
        for peer in range(PEERS):
            self.node.on_connection_opened(peer, "127.0.0.1", 0)
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        request = encode_request(
            "CreateTopics", 7, {"topics": [topic]}, correlation_id=1, client_id="bench"
        )
        self.ask(request)
        self._sent = produce_frame(TOPIC, partition=0, value_bytes=SMALL_BYTES)[SIZE_BYTES:]
        self.frame = memoryview(bytearray(self._sent))
        self.tick(1)

    def ask(self, request: bytes | memoryview) -> bytes:
        """One request to its answer, syncs included."""
        requested = self.outbox.count
        self.node.on_frame(0, memoryview(bytearray(request)), 0)
        self.node.end_of_tick(0)
        self._settle()
        assert self.outbox.count == requested + 1, "no answer"
        part = self.outbox.last[0]
        assert isinstance(part, bytes)
        return part

    def tick(self, requests: int) -> None:
        """So many small Produces from different peers that arrive at once."""
        on_frame, frame, sent = self.node.on_frame, self.frame, self._sent
        for peer in range(requests):
            frame[:] = sent  # the node writes offsets into the frames that it is given
            on_frame(peer, frame, 0)
        self.node.end_of_tick(0)
        answer = self.outbox.last[0]
        assert isinstance(answer, bytes)
        assert answer[ERROR_AT : ERROR_AT + 2] == ANSWER_ERROR_IS, "the node refuses a Produce"

    def _settle(self) -> None:
        while self.disk.unsynced:
            unsynced, self.disk.unsynced = self.disk.unsynced, []
            for file in unsynced:
                self.node.on_synced(file, file.size_bytes, 0)
            self.node.end_of_tick(0)


def measure_steps(figures: Figures, *, calls: int) -> None:
    """Fill in the figures; the socket's share only if the running broker was measured before."""
    driven = DrivenNode()
    gc.collect()
    gc.freeze()
    gc.disable()  # nearly so in the running broker: its threshold is high
    try:
        _measure(driven, figures, calls)
    finally:
        gc.enable()
        gc.unfreeze()


def _measure(driven: DrivenNode, figures: Figures, calls: int) -> None:
    alone = _microseconds(lambda: driven.tick(1), calls=calls)
    together = _microseconds(lambda: driven.tick(PEERS), calls=max(1, calls // PEERS)) / PEERS
    decode = _microseconds(lambda: _decode(driven.frame), calls=calls)
    encode = _microseconds(_encode, calls=calls)
    write = _write(driven.frame, calls=calls)
    steps = {
        "decode (header and body)": decode,
        "decide (checks, offsets, indexes, high watermark)": together - decode - encode,
        "write (one write of the batch to its file)": write,
        "encode (answer and header)": encode,
    }
    for step, cost_us in steps.items():
        figures.add(_step(f"small Produce: {step}"), TIDELOG, cost_us)
    running_us = figures.median_of(unbatched_cost(), TIDELOG)
    if running_us is not None:
        rest_us = running_us - sum(steps.values())
        figures.add(
            _step("small Produce: socket (event loop, frames, kernel: the rest)"), TIDELOG, rest_us
        )
    figures.add(_step(f"whole node, {PEERS} requests in a tick, null disk"), TIDELOG, together)
    figures.add(_step("whole node, one request in a tick, null disk"), TIDELOG, alone)


def _step(title: str) -> Metric:
    return Metric(title=title, unit="µs/request", more_is_better=False)


def _decode(frame: memoryview) -> None:
    header = read_request_header(frame)
    decode_produce(frame[header.body_position :], header.api_version)


def _encode() -> None:
    body = encode_produce_answer(
        [(TOPIC, [ProducePartitionAnswer(0, 0, 1, -1, 0)])], PRODUCE_VERSION
    )
    header = response_header(0, PRODUCE_VERSION, 7)
    b"".join((len(body).to_bytes(SIZE_BYTES, "big"), header, body))


def _write(frame: memoryview, *, calls: int) -> float:
    """The cost of a small write that goes into the page cache."""
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-") as directory:
        disk = OsDisk([directory], descriptors_max=10, wake=lambda: None)
        file = disk.open(str(Path(directory, "00000000000000000000.log")))
        cost_us = _microseconds(lambda: file.append(frame), calls=calls)
        file.close()
    return cost_us


def _microseconds(call: Callable[[], object], *, calls: int) -> float:
    """The median over some rounds of the mean of many calls."""
    rounds = []
    for _ in range(ROUNDS):
        started_ns = time.process_time_ns()
        for _ in range(calls):
            call()
        rounds.append((time.process_time_ns() - started_ns) / calls / 1000)
    return median(rounds)
