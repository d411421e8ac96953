"""Which partition of an internal topic a group or a transactional id belongs to.

Kafka's rule, so that its tools and a log written by it agree: the hash of a string in Java.
"""

from __future__ import annotations

from array import array


def java_string_hash(text: str) -> int:
    """The 32-bit number that Java computes over the units of UTF-16."""
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    number = 0
    for unit in units:
        number = (31 * number + unit) & 0xFFFF_FFFF
    return number - 2**32 if number >= 2**31 else number


def partition_of(key: str, partitions_count: int) -> int:
    """The smallest number has no absolute value in Java; Kafka takes 0 for it."""
    number = java_string_hash(key)
    return 0 if number == -(2**31) else abs(number) % partitions_count
