"""Produce to topics whose settings matter: timestamps, compaction, compression."""

from __future__ import annotations

from tests.golden.batches import GZIP, LZ4, NewRecord, batch, built, damaged, keyed
from tests.golden.cases.asking import fetch, list_offsets, produce
from tests.golden.cases.registry import case
from tests.golden.talk import Talk

EDGES = (3, 13)
HOUR_MS = 3_600_000


@case("Produce", 3, 8, 13)
def log_append_time(talk: Talk, version: int) -> None:
    """With LogAppendTime the answer tells the broker's time, and the batch carries it."""
    topic = talk.new_topic(configs={"message.timestamp.type": "LogAppendTime"})
    produce(talk, version, topic, batch("a", "b"))
    fetch(talk, 13, topic)


@case("Produce", 13)
def log_append_time_for_an_odd_timestamp(talk: Talk, version: int) -> None:
    """With LogAppendTime no timestamp of a client is out of bounds."""
    topic = talk.new_topic(configs={"message.timestamp.type": "LogAppendTime"})
    produce(talk, version, topic, batch("a", timestamp_ms=talk.clock_ms() + 5 * HOUR_MS))
    produce(talk, version, topic, batch("a", compression=GZIP))
    fetch(talk, 13, topic)


@case("Produce", *EDGES)
def timestamp_in_the_future(talk: Talk, version: int) -> None:
    """More than an hour ahead of the broker's clock is refused."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a", timestamp_ms=talk.clock_ms() + 2 * HOUR_MS))
    produce(talk, version, topic, batch("a", timestamp_ms=talk.clock_ms() + HOUR_MS // 2))


@case("Produce", 8, 13)
def one_timestamp_of_three_in_the_future(talk: Talk, version: int) -> None:
    """The answer names the record that made its batch be refused."""
    now_ms = talk.clock_ms()
    times = (now_ms, now_ms + 2 * HOUR_MS, now_ms)
    records = [NewRecord(value=b"v", timestamp_ms=time_ms) for time_ms in times]
    produce(talk, version, talk.new_topic(), built(records))


@case("Produce", *EDGES)
def timestamp_too_old(talk: Talk, version: int) -> None:
    """message.timestamp.before.max.ms refuses what is older."""
    topic = talk.new_topic(configs={"message.timestamp.before.max.ms": str(HOUR_MS)})
    produce(talk, version, topic, batch("a", timestamp_ms=talk.clock_ms() - 2 * HOUR_MS))
    produce(talk, version, topic, batch("a", timestamp_ms=talk.clock_ms() - HOUR_MS // 2))


@case("Produce", 13)
def timestamp_too_old_in_a_compressed_batch(talk: Talk, version: int) -> None:
    """Bounds hold inside compressed batches, too."""
    topic = talk.new_topic(configs={"message.timestamp.before.max.ms": str(HOUR_MS)})
    old_ms = talk.clock_ms() - 2 * HOUR_MS
    produce(talk, version, topic, batch("a", timestamp_ms=old_ms, compression=GZIP))


@case("Produce", 13)
def without_a_timestamp(talk: Talk, version: int) -> None:
    """A record without a timestamp (-1) has none afterwards."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a", timestamp_ms=-1))
    fetch(talk, 13, topic)


@case("Produce", 13)
def without_a_timestamp_where_old_ones_are_refused(talk: Talk, version: int) -> None:
    """No timestamp is never too old."""
    topic = talk.new_topic(configs={"message.timestamp.before.max.ms": str(HOUR_MS)})
    produce(talk, version, topic, batch("a", timestamp_ms=-1))


@case("Produce", 13)
def negative_timestamp(talk: Talk, version: int) -> None:
    """A timestamp below -1."""
    produce(talk, version, talk.new_topic(), batch("a", timestamp_ms=-5))


@case("Produce", 3, 8, 13)
def compacted_topic_without_a_key(talk: Talk, version: int) -> None:
    """A record without a key cannot be compacted."""
    topic = talk.new_topic(configs={"cleanup.policy": "compact"})
    produce(talk, version, topic, keyed(("k", "v"), (None, "w"), ("l", None), (None, "x")))
    produce(talk, version, topic, keyed(("k", "v"), ("", None)))
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", 13)
def compacted_topic_without_a_key_compressed(talk: Talk, version: int) -> None:
    """Nor can one inside a compressed batch."""
    topic = talk.new_topic(configs={"cleanup.policy": "compact,delete"})
    produce(talk, version, topic, keyed(("k", "v"), (None, "w"), compression=LZ4))


@case("Produce", 13)
def topic_compressed_by_the_broker(talk: Talk, version: int) -> None:
    """With compression.type=gzip the broker compresses what came without compression."""
    topic = talk.new_topic(configs={"compression.type": "gzip"})
    produce(talk, version, topic, batch("a", "b"))
    fetch(talk, 13, topic)


@case("Produce", 13)
def topic_uncompressed_by_the_broker(talk: Talk, version: int) -> None:
    """With compression.type=uncompressed the broker unpacks."""
    topic = talk.new_topic(configs={"compression.type": "uncompressed"})
    produce(talk, version, topic, batch("a", "b", compression=GZIP))
    fetch(talk, 13, topic)


@case("Produce", 13)
def topic_recompressed_from_garbage(talk: Talk, version: int) -> None:
    """A batch that cannot be unpacked cannot be recompressed."""
    topic = talk.new_topic(configs={"compression.type": "lz4"})
    produce(talk, version, topic, damaged(batch("a"), attributes=GZIP))


@case("Produce", 13)
def settings_changed_meanwhile(talk: Talk, version: int) -> None:
    """A changed max.message.bytes holds for the next batch."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a" * 300))
    talk.alter(topic, max_message_bytes="200")
    produce(talk, version, topic, batch("a" * 300))


@case("Produce", 13)
def to_a_topic_made_again(talk: Talk, version: int) -> None:
    """The id of a deleted topic stays unknown when its name is used again."""
    old = talk.new_topic()
    talk.quietly("DeleteTopics", 6, topics=[{"name": old.name}], timeout_ms=5000)
    talk.wait_until_gone(old.name)
    new = talk.new_topic()
    produce(talk, version, old, batch("a"))
    produce(talk, version, new, batch("b"))


@case("Produce", 13)
def segments_roll(talk: Talk, version: int) -> None:
    """Small segments change nothing that a client can see."""
    topic = talk.new_topic(configs={"segment.bytes": "1048576"})
    produce(talk, version, topic, batch("a"))
    produce(talk, version, topic, batch("b"))
    fetch(talk, 13, topic)


@case("Produce", 13)
def batch_larger_than_a_segment(talk: Talk, version: int) -> None:
    """A batch that no segment can hold."""
    configs = {"segment.bytes": "1048576", "max.message.bytes": "2000000"}
    topic = talk.new_topic(configs=configs)
    produce(talk, version, topic, batch("a" * 1_100_000))
    produce(talk, version, topic, batch("b"))
