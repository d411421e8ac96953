"""A range reader's settings: a consumer's, with defaults for reading much of one partition."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.client.consumer.config import ConsumerConfig, consumer_config
from tidelog.client.settings import Given

FETCH_BYTES = 8 * 2**20
"""Of one fetch: more saves little, and two of them are in memory at a time."""
STALLED_MS = 120_000
_DEFAULTS: Given = {
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "max.partition.fetch.bytes": FETCH_BYTES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeConfig:
    """What ranges are read with; `stalled_ms` without anything new is too long."""

    consumer: ConsumerConfig
    stalled_ms: int


def range_config(given: Given, *, stalled_ms: int = STALLED_MS) -> RangeConfig:
    """Settings of a consumer by Kafka's names; ConfigError says what is wrong with them."""
    return RangeConfig(consumer=consumer_config({**_DEFAULTS, **given}), stalled_ms=stalled_ms)
