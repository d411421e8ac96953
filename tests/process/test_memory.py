"""Memory follows neither what clients promise to send nor how slowly they read."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from typing import Any

import pytest

from tests.process.fixtures import StartBroker
from tests.process.target import IS_KAFKA, Target
from tests.process.wire import WireClient, batch_of, fetch_fields, whole_records
from tidelog.core.wire.codec import decode
from tidelog.core.wire.messages import MESSAGES

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka allocates what a frame promises")

MIB = 2**20
RESIDENT_BYTES_MAX = 400 * MIB
FRAME_BYTES = 100 * MIB
QUIET_S = 1.0


def _stuck_in_a_frame(broker: Target, count: int) -> list[socket.socket]:
    """Connections that send as much of a 100 MB frame as they may, all but its last byte."""
    chooser = selectors.DefaultSelector()
    sockets = []
    piece = bytes(256 * 1024)
    for _ in range(count):
        client = socket.create_connection((broker.host, broker.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        client.sendall(struct.pack(">i", FRAME_BYTES) + struct.pack(">hhih", 0, 3, 1, -1))
        client.setblocking(False)
        chooser.register(client, selectors.EVENT_WRITE, FRAME_BYTES - 11)
        sockets.append(client)
    last_progress_s = time.monotonic()
    while chooser.get_map() and time.monotonic() < last_progress_s + QUIET_S:
        for key, _ in chooser.select(timeout=QUIET_S):
            ready = key.fileobj
            assert isinstance(ready, socket.socket)
            try:
                sent = ready.send(piece[: key.data])
            except BlockingIOError:
                continue
            except ConnectionError:
                chooser.unregister(ready)
                continue
            last_progress_s = time.monotonic()
            if key.data == sent:
                chooser.unregister(ready)
            else:
                chooser.modify(ready, selectors.EVENT_WRITE, key.data - sent)
    return sockets


class SlowReader:
    """Asks for much, takes the first bytes of the answer, and perhaps the rest much later."""

    def __init__(self, broker: Target, topic: str, bytes_max: int) -> None:
        self._wire = WireClient(broker.address, receive_buffer_bytes=32 * 1024)
        self._wire.send("Fetch", 11, **fetch_fields(topic, 0, bytes_max=bytes_max))
        self._begun = b""

    def begin(self) -> None:
        self._begun = self._wire.read_exactly(1024)

    def read_on(self) -> bytes:
        """The whole answer without its size."""
        (size,) = struct.unpack_from(">i", self._begun)
        return self._begun[4:] + self._wire.read_exactly(size - 1020)

    def close(self) -> None:
        self._wire.close()


def _fill(wire: WireClient, topic: str, size_bytes: int) -> None:
    wire.create_topic(topic)
    for n in range(size_bytes // MIB + 1):
        answer = wire.produce(topic, batch_of(bytes([n % 256]) * (MIB - 100)))
        assert answer.error_code == 0


def _check(broker: Target, *, stuck: int, slow: int, fetch_bytes: int) -> None:
    with WireClient(broker.address) as wire:
        _fill(wire, "large", fetch_bytes)
        frames = _stuck_in_a_frame(broker, stuck)
        readers = [SlowReader(broker, "large", fetch_bytes) for _ in range(slow)]
        for reader in readers:
            reader.begin()

        assert wire.produce("large", batch_of(b"still served")).error_code == 0
        assert wire.fetch("large", 0).error_code == 0
        _check_memory(broker)
        _check_answer(readers[0].read_on(), fetch_bytes)
        _check_memory(broker)
        for frame in frames:
            frame.close()
        for reader in readers:
            reader.close()


def _check_memory(broker: Target) -> None:
    assert broker.is_running
    assert broker.resident_peak_bytes() < RESIDENT_BYTES_MAX


def _check_answer(frame: bytes, fetch_bytes: int) -> None:
    """All batches that fit are there, whole and in order."""
    answer: Any = decode(MESSAGES[1][1], memoryview(frame), 11, 4)
    records = whole_records(answer.responses[0].partitions[0].records)
    assert [record.offset for record in records] == list(range(len(records)))
    assert len(records) * MIB > fetch_bytes - 2 * MIB
    for record in records:
        assert record.value == bytes([record.offset % 256]) * (MIB - 100)


def test_fifty_stuck_frames_and_twenty_slow_readers(start_broker: StartBroker) -> None:
    _check(start_broker(), stuck=50, slow=20, fetch_bytes=50 * MIB)


@pytest.mark.long
def test_five_hundred_stuck_frames_and_two_hundred_slow_readers(start_broker: StartBroker) -> None:
    _check(start_broker(), stuck=500, slow=200, fetch_bytes=50 * MIB)
