"""Bounds of a node, with their units, and how they agree with each other.

A bound that has to agree with no other stands beside the code that keeps it.
"""

from __future__ import annotations

KIB = 2**10
MIB = 2**20

# Frames and connections
REQUEST_BYTES_MAX = 100 * MIB
"""Kafka's default of `socket.request.max.bytes`: a larger frame closes its connection."""
UNANSWERED_REQUESTS_MAX = 64
"""Per connection; with that many unanswered requests nothing more is read from it."""
RECEIVE_BUFFER_BYTES = 64 * KIB
"""What a connection starts with; it grows only as bytes arrive."""
PARTIAL_FRAMES_BYTES_MAX = 256 * MIB
"""For the begun frames of all connections together."""
STARTUP_GATE_BYTES_MAX = 16 * MIB
"""For the requests of all connections that wait until a starting broker knows its cluster."""
STARTUP_GATE_REQUEST_BYTES = 1 * KIB
"""What each of them is counted for, beside its body."""
MATERIALISED_ANSWER_BYTES_MAX = 256 * KIB
"""Of one connection's answers, read from files into memory but not sent yet."""
FETCH_SESSIONS_MAX = 1_000

# Batches
BATCH_BYTES_MAX = 1 * MIB + 12
"""Kafka's default of `message.max.bytes`: one MiB and the prefix that it does not count."""
DECOMPRESSED_BATCH_BYTES_MAX = 100 * MIB
"""What the records of one batch may unpack to; beyond it the batch is called corrupt."""
BATCH_RECORDS_MAX = 2**18
"""In one batch of a producer, and as many record headers in all of them: a leader looks at each,
and serves nobody meanwhile."""
DEDUP_BATCHES = 5
"""Remembered per producer and partition, so that a retry is recognised."""
PRODUCER_REQUESTS_IN_FLIGHT_MAX = 5
"""What an idempotent client may have on the wire to one broker."""
PRODUCER_IDS_PER_BLOCK = 1_000

# Topics
TOPIC_NAME_CHARACTERS_MAX = 249
"""With "-", a partition number and ".log" still a file name that every file system takes."""
PARTITIONS_PER_REQUEST_MAX = 10_000
"""New partitions that one CreateTopics or CreatePartitions may ask for."""
DESCRIBED_PARTITIONS_MAX = 2_000
"""Kafka's default of `max.request.partition.size.limit`."""

# Time
HEARTBEAT_INTERVAL_MS = 2_000
SESSION_TIMEOUT_MS = 9_000

# Fields of the protocol
INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
SEQUENCE_MODULUS = 2**31
"""Sequences run from 0 to 2**31 - 1 and then from 0 again."""
PRODUCER_EPOCH_MAX = 2**15 - 1
EPOCH_PER_TRANSACTION = 2
"""The transaction version from which on every transaction has a producer epoch of its own."""

assert BATCH_BYTES_MAX < REQUEST_BYTES_MAX, "a request can carry the largest batch"
assert REQUEST_BYTES_MAX < PARTIAL_FRAMES_BYTES_MAX, "one connection can always complete its frame"
assert RECEIVE_BUFFER_BYTES < REQUEST_BYTES_MAX
assert MATERIALISED_ANSWER_BYTES_MAX <= 1 * MIB
assert BATCH_BYTES_MAX <= DECOMPRESSED_BATCH_BYTES_MAX
assert DEDUP_BATCHES >= PRODUCER_REQUESTS_IN_FLIGHT_MAX, "a retry must still be recognisable"
assert UNANSWERED_REQUESTS_MAX > PRODUCER_REQUESTS_IN_FLIGHT_MAX
assert 3 * HEARTBEAT_INTERVAL_MS <= SESSION_TIMEOUT_MS, "two lost heartbeats are not a death"
