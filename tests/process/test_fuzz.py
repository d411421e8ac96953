"""Hostile bytes: no frame and no batch ends the broker, grows its memory or harms a neighbour."""

from __future__ import annotations

import random
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.golden.plain import API_KEYS, request_of
from tests.process.target import IS_KAFKA, Target, running_target
from tests.process.waiting import PATIENCE_S
from tests.process.wire import WireClient, batch_of, fetch_fields, produce_fields
from tidelog.core.wire.exchange import request_frame
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.record_batch import renew_crc

GROWTH_BYTES_MAX = 48 * 2**20
GIVE_UP_S = 5.0
"""A broker may rightly go on waiting; then we go away."""
TOPIC, NEIGHBOUR = "fuzzed", "neighbour"


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Target]:
    with running_target({"auto.create.topics.enable": False}) as broker:
        with WireClient(broker.address) as wire:
            wire.create_topic(TOPIC)
            wire.create_topic(NEIGHBOUR)
            wire.produce(NEIGHBOUR, batch_of(b"untouched"))
        yield broker


def throw(broker: Target, data: bytes) -> None:
    """Send the bytes, say that no more will come, and wait until the broker is done with us."""
    with socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S) as connection:
        connection.settimeout(GIVE_UP_S)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
        except (ConnectionError, TimeoutError, BrokenPipeError):
            pass


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def random_frame(chance: random.Random) -> bytes:
    """Noise of some length, behind a size that may lie."""
    body = chance.randbytes(chance.choice((0, 1, 7, 8, 9, 14, 60, 500)))
    if chance.random() < 0.3:
        return struct.pack(">i", chance.choice((-1, 2**31 - 1, len(body) + 5, 99 << 20))) + body
    return framed(body)


def plausible_frame(chance: random.Random) -> bytes:
    """A real header of a served API in some version, and noise as its body."""
    api_key = chance.choice(list(API_KEYS.values()))
    version = chance.choice([*MESSAGES[api_key][0].versions, 99])
    head = struct.pack(">hhihb", api_key, version, chance.getrandbits(31), -1, 0)
    return framed(head + chance.randbytes(chance.randrange(200)))


def sound_frame(api: str, version: int, **fields: Any) -> bytes:
    return request_frame(request_of(api, fields), version, correlation_id=1, client_id="wire")


def sound_requests() -> list[bytes]:
    """Requests that the broker would answer, to be damaged."""
    topic = {"name": "new", "num_partitions": 1, "replication_factor": 1}
    resource = {"resource_type": 2, "resource_name": TOPIC}
    listed = [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    deleted = [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 0}]}]
    producers = [{"name": TOPIC, "partition_indexes": [0]}]
    return [
        sound_frame("Produce", 9, **produce_fields(TOPIC, batch_of(b"a", b"b"))),
        sound_frame("Produce", 3, **produce_fields(TOPIC, batch_of(b"a"))),
        sound_frame("Fetch", 11, **fetch_fields(TOPIC, 0)),
        sound_frame("Fetch", 4, **fetch_fields(TOPIC, 0)),
        sound_frame("ListOffsets", 7, replica_id=-1, topics=listed),
        sound_frame("Metadata", 12, topics=[{"name": TOPIC}]),
        sound_frame("CreateTopics", 7, topics=[topic], timeout_ms=100, validate_only=True),
        sound_frame("DeleteRecords", 2, topics=deleted, timeout_ms=100),
        sound_frame("DescribeConfigs", 4, resources=[resource]),
        sound_frame("IncrementalAlterConfigs", 1, resources=[resource], validate_only=True),
        sound_frame("DescribeProducers", 0, topics=producers),
        sound_frame("DescribeTopicPartitions", 0, topics=[{"name": TOPIC}]),
        sound_frame("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000),
    ]


SOUND = sound_requests()


def damaged_frame(chance: random.Random) -> bytes:
    """A sound request with flipped bits, a wild length inside, or its end cut off."""
    body = bytearray(chance.choice(SOUND)[4:])
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(8, len(body))
        match chance.randrange(3):
            case 0:
                body[at] ^= 1 << chance.randrange(8)
            case 1:
                wild = chance.choice(
                    (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00")
                )
                body[at : at + 4] = wild
            case 2:
                del body[at:]
                break
    return framed(bytes(body))


def damaged_batch(chance: random.Random) -> bytes:
    """A sound Produce of a batch that is not: damaged below a checksum that fits, or not."""
    values = [chance.randbytes(chance.randrange(40)) for _ in range(chance.randrange(1, 5))]
    batch = bytearray(batch_of(*values, compression=chance.randrange(5)))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(batch))
        batch[at : at + 1] = chance.randbytes(chance.choice((0, 1, 1, 1, 4)))
    if chance.random() < 0.8 and len(batch) > 61:
        struct.pack_into(">i", batch, 8, len(batch) - 12)
        batch[16] = 2
        renew_crc(memoryview(batch), 0)
    return sound_frame("Produce", 9, **produce_fields(TOPIC, bytes(batch)))


MAKERS: list[Callable[[random.Random], bytes]] = [
    random_frame,
    plausible_frame,
    damaged_frame,
    damaged_batch,
]


def campaign(broker: Target, maker: Callable[[random.Random], bytes], cases: int) -> None:
    """Throw a tenth to warm up, then the rest: no crash, no growth, and a neighbour is served."""
    if IS_KAFKA and maker is random_frame:
        pytest.skip("Apache Kafka allocates what a frame promises, and runs out of memory")
    chance = random.Random(maker.__name__)
    with WireClient(broker.address) as neighbour:
        for _ in range(cases // 10):
            throw(broker, maker(chance))
        before_bytes = broker.resident_bytes()
        for _ in range(cases):
            throw(broker, maker(chance))
        assert broker.is_running
        assert neighbour.ask("ApiVersions", 0).error_code == 0
        assert [record.value for record in neighbour.read_all(NEIGHBOUR)] == [b"untouched"]
        growth_bytes = broker.resident_bytes() - before_bytes
    if not IS_KAFKA:
        assert growth_bytes < GROWTH_BYTES_MAX, f"grew by {growth_bytes >> 20} MiB"


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_hostile_bytes_do_no_harm(fuzzed: Target, maker: Callable[[random.Random], bytes]) -> None:
    campaign(fuzzed, maker, 400)


@pytest.mark.long
@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_many_hostile_bytes_do_no_harm(
    fuzzed: Target, maker: Callable[[random.Random], bytes]
) -> None:
    campaign(fuzzed, maker, 5_000)


def test_a_batch_that_unpacks_to_a_giant_is_refused(fuzzed: Target) -> None:
    """A small compressed batch with 300 MiB inside: its records are never unpacked whole."""
    giant = zlib.compressobj(9, zlib.DEFLATED, 31)
    chunk = bytes(1 << 20)
    packed = b"".join([giant.compress(chunk) for _ in range(300)]) + giant.flush()
    assert len(packed) < 1 << 20
    batch = bytearray(batch_of(b"x", compression=1)[:61]) + packed
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    renew_crc(memoryview(batch), 0)
    with WireClient(fuzzed.address) as wire:
        wire.create_topic("compacted", configs={"cleanup.policy": "compact"})
        assert wire.produce("compacted", bytes(batch)).error_code != 0
        assert wire.end_offset("compacted") == 0
    assert fuzzed.is_running
    if not IS_KAFKA:
        assert fuzzed.resident_bytes() < 400 * 2**20
