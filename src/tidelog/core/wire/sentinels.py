"""Kafka's numbers that mean "none", "all" or "the latest": one name for each meaning.

They are for messages, API files and clients. Deeper in core what is absent is None.
"""

from __future__ import annotations

from typing import Final

# Who

NO_NODE: Final = -1
"""No leader, no controller, no coordinator, or no particular node."""
NO_PORT: Final = -1
CONSUMER_REPLICA_ID: Final = -1
"""The replica id of a reader that is no replica."""
DEBUGGING_REPLICA_ID: Final = -2
"""The replica id of a reader that may ask any replica and sees up to the log end."""

# Offsets and times

UNKNOWN_OFFSET: Final = -1
UNKNOWN_VOLUME_BYTES: Final = -1
NO_TIMESTAMP: Final = -1
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
"""The record with the largest timestamp."""
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6
UP_TO_HIGH_WATERMARK: Final = -1
"""DeleteRecords: everything that is committed."""

# Epochs and sequences

NO_LEADER_EPOCH: Final = -1
UNKNOWN_BROKER_EPOCH: Final = -1
NO_SESSION: Final = 0
INITIAL_SESSION_EPOCH: Final = 0
"""A fetch that begins a session."""
FINAL_SESSION_EPOCH: Final = -1
"""A fetch that ends its session, or wants none."""
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_COORDINATOR_EPOCH: Final = -1

# Requests

ACKS_ALL: Final = -1
"""Every in-sync replica must have the batch."""
BROKER_DEFAULT: Final = -1
"""CreateTopics: as many partitions or replicas as the broker's settings say."""


def next_session_epoch(session_epoch: int) -> int:
    """1, 2, ... and after the largest 32-bit number 1 again: 0 and -1 have meanings."""
    return 1 if session_epoch == 2**31 - 1 else session_epoch + 1
