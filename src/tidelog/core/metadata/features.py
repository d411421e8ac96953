"""Features: which levels this software could run, and which a new cluster agrees on.

A client learns its protocol from the agreed levels (the Java producer, for instance, takes the
transaction protocol from `transaction.version`), so these are promises like API versions are.
"""

from __future__ import annotations

from collections.abc import Mapping

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"

SUPPORTED: dict[str, tuple[int, int]] = {
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    TRANSACTION_VERSION: (0, 2),
}
"""The lowest and the highest level of each feature, as in Kafka 4.3."""

BOOTSTRAP: dict[str, int] = {
    METADATA_VERSION: 30,
    ELIGIBLE_LEADER_REPLICAS_VERSION: 1,
    GROUP_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""What a new cluster writes; the metadata version comes first, as readers need it for the rest."""

KRAFT_VERSION_LEVEL = 1
"""Not a metadata record: in Kafka a control record of the quorum says it."""

assert all(SUPPORTED[name][0] <= level <= SUPPORTED[name][1] for name, level in BOOTSTRAP.items())


def finalized(agreed: Mapping[str, int]) -> dict[str, int]:
    """The agreed levels as clients see them: by name, without those that are off."""
    levels = {**agreed, KRAFT_VERSION: KRAFT_VERSION_LEVEL}
    return {name: levels[name] for name in sorted(levels) if levels[name] != 0}
