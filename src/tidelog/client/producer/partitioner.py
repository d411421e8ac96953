"""Which partition a record goes to: by its key's hash, or by staying with one for a while."""

from __future__ import annotations

from random import Random

from tidelog.client.cluster_metadata import ClusterMetadata

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_SHIFT = 24
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key, as an unsigned 32-bit number."""
    length = len(data)
    mixed = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
        mixed = mixed * _FACTOR & _MASK ^ word
    if whole < length:
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    mixed = (mixed ^ mixed >> 13) * _FACTOR & _MASK
    return mixed ^ mixed >> 15


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The same key always goes to the same partition, as long as their number does not change."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class StickyPartitioner:
    """For records without a key: one partition until it got a batch's worth, then another."""

    def __init__(self, *, batch_size: int, random: Random) -> None:
        self._batch_size = batch_size
        self._random = random
        self._chosen: dict[str, int] = {}
        self._given_bytes: dict[str, int] = {}

    def choose(self, topic: str, metadata: ClusterMetadata) -> int:
        chosen = self._chosen.get(topic)
        if chosen is None:
            chosen = self._chosen[topic] = self._next(topic, metadata)
            self._given_bytes[topic] = 0
        return chosen

    def gave(self, topic: str, size_bytes: int, *, batch_is_full: bool) -> None:
        """It got so much more. A partition is left in the middle of a batch only if it must be."""
        given = self._given_bytes[topic] = self._given_bytes[topic] + size_bytes
        if given >= 2 * self._batch_size or (given >= self._batch_size and batch_is_full):
            del self._chosen[topic]

    def _next(self, topic: str, metadata: ClusterMetadata) -> int:
        partitions = metadata.topics[topic].partitions
        led = sorted(index for index, each in partitions.items() if each.leader_id is not None)
        return self._random.choice(led or sorted(partitions))
