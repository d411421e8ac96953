"""How much memory members may cost whom: bounds that Kafka does not have.

Whoever can reach a coordinator can join any group, so every thing that a join makes is bounded, per
group where a refusal must not meet others, and per partition where the oldest can be dropped: its
owner asks again. What is dropped was given to somebody who never came back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidelog.core.model.limits import KIB, MIB

MEMBER_BYTES: Final = KIB
"""What a member costs that says nothing: its ids, its deadlines, its place in tables."""
GROUP_BYTES_MAX: Final = 16 * MIB
"""All members of a group, with what they say of themselves. A generation has to fit into a batch of
1 MiB, so a group cannot be near this in earnest. Beyond it: GROUP_MAX_SIZE_REACHED."""
PENDING_PER_GROUP_MAX: Final = 2_000
"""Ids of a group that were given out and not used yet. Beyond it: GROUP_MAX_SIZE_REACHED."""
PENDING_PER_PARTITION_MAX: Final = 10_000
"""The same of all groups of a partition. Beyond it the oldest id is not known any more."""
UNUSED_GROUPS_MAX: Final = 10_000
"""Classic groups of a partition that never had a member or an offset. Beyond it the oldest ends."""
EXPRESSIONS_PER_GROUP_MAX: Final = 32
"""Regular expressions of a group, each with the names that it matches. Beyond it:
INVALID_REQUEST."""

assert PENDING_PER_GROUP_MAX < PENDING_PER_PARTITION_MAX, "one group does not drop others' ids"
assert MEMBER_BYTES < GROUP_BYTES_MAX


def member_cost(parts: Iterable[str | bytes | None]) -> int:
    """What a member costs that says this of itself."""
    return MEMBER_BYTES + sum(len(each) for each in parts if each is not None)
