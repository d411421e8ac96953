"""Topics that Spark reads and copies: how many records of which size, and who writes them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

from bench.clusters import Cluster
from bench.librdkafka import Producer
from bench.topics import check_records, create_topic

PARTITIONS = 6
KEY_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Records with values of about one size."""

    name: str
    value_bytes: int
    read_records: int
    written_records: int
    """Fewer, for every write is read again to be counted."""
    are_equal: bool = False
    """Whether all values have that very size; else half to one and a half times as much."""

    def times(self, volume: float) -> Load:
        read, written = int(self.read_records * volume), int(self.written_records * volume)
        return replace(self, read_records=read, written_records=written)


LOADS = (
    Load(name="100 B", value_bytes=100, read_records=6_000_000, written_records=2_000_000),
    Load(name="1 KiB", value_bytes=1_024, read_records=2_400_000, written_records=800_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How often, and how much."""

    name: str
    warm_ups: int
    rounds: int
    volume: float


FULL = Effort(name="full", warm_ups=2, rounds=5, volume=1.0)
QUICK = Effort(name="quick", warm_ups=1, rounds=3, volume=0.3)
TINY = Effort(name="tiny", warm_ups=0, rounds=1, volume=0.002)


class Varied(Producer):
    """Writes values of half to one and a half times a size, with keys, by which they spread."""

    def __init__(self, address: str, topic: str, value_bytes: int) -> None:
        super().__init__(address, topic, b"v" * (2 * value_bytes))
        keys = b"".join(b"key %08d" % number for number in range(len(self._messages)))
        self._keys = ctypes.create_string_buffer(keys, len(keys))
        for number, message in enumerate(self._messages):
            message.len = value_bytes // 2 + number * 7_919 % value_bytes
            message.key = ctypes.addressof(self._keys) + number * KEY_BYTES
            message.key_len = KEY_BYTES


def filled_topic(cluster: Cluster, load: Load, records: int) -> str:
    """With librdkafka's defaults, a copy of everything on every broker."""
    topic = create_topic(cluster, partitions=PARTITIONS)
    made = (
        Producer(cluster.address, topic, b"v" * load.value_bytes)
        if load.are_equal
        else Varied(cluster.address, topic, load.value_bytes)
    )
    with made as producer:
        producer.meet()
        producer.produce(records)
        producer.flush()
    check_records(cluster, topic, records=records)
    return topic
