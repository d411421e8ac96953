"""Topic ids: sixteen random bytes in the shape of a version 4 uuid, as Kafka makes them."""

from __future__ import annotations

from collections.abc import Container
from random import Random

from tidelog.core.model.ids import TopicId

_DASH_IN_BASE64 = 62
"""An id whose text begins with "-" would look like an option on a command line."""


def new_uuid(random: Random) -> bytes:
    """A random version 4 uuid whose base64 text does not begin with a dash."""
    while True:
        number = random.getrandbits(128)
        number = number & ~(0xF << 76) | (0x4 << 76)
        number = number & ~(0x3 << 62) | (0x2 << 62)
        if number >> 122 != _DASH_IN_BASE64:
            return number.to_bytes(16, "big")


def new_topic_id(random: Random, *, taken: Container[TopicId]) -> TopicId:
    """An id that no topic has."""
    while True:
        topic_id = TopicId(new_uuid(random))
        if topic_id not in taken:
            return topic_id
