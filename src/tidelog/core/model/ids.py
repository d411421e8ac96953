"""Typed ids: every number that means something has a type of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

BrokerId = NewType("BrokerId", int)
PartitionIndex = NewType("PartitionIndex", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
LeaderEpoch = NewType("LeaderEpoch", int)
Offset = NewType("Offset", int)
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
