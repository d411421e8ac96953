"""Ids that many rooms share.

A topic id has a type of its own, so that it is not mistaken for one of the other ids of sixteen
bytes: directories, processes, clusters. Broker ids, offsets and epochs are plain `int`s: what they
mean is in the full names of parameters and fields (`leader_epoch`, `log_end_offset`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NewType

TopicId = NewType("TopicId", bytes)
"""Sixteen bytes; shown to people in Kafka's url-safe base64 form."""

ZERO_TOPIC_ID = TopicId(bytes(16))
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of one topic, by name."""

    topic: str
    index: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


class ProducerIdAndEpoch(NamedTuple):
    """Who numbers batches: a producer id never travels without its producer epoch."""

    producer_id: int
    producer_epoch: int
