"""Produce with batches whose records are not what their header or their codec says."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.batches import GZIP, OLD_TIME_MS, SNAPPY, ZSTD, NewRecord, built, damaged
from tests.golden.cases.asking import fetch, list_offsets, produce
from tests.golden.cases.registry import case
from tests.golden.talk import Talk
from tests.lying_batches import CODEC_LIES, CODECS, CONTENT_LIES, plain_records, sound, with_payload

HOUR_MS = 3_600_000
LOG_APPEND_TIME = 0x08
COMPRESSED = tuple(codec for codec in CODECS.values() if codec)


def refused_in(
    talk: Talk, version: int, codecs: tuple[int, ...], lie: Callable[[int], bytes]
) -> None:
    """A sound batch, the lie in each codec, and how much the log holds afterwards."""
    topic = talk.new_topic()
    produce(talk, version, topic, sound())
    for codec in codecs:
        produce(talk, version, topic, lie(codec))
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", 3, 13)
def too_few_records_in_every_codec(talk: Talk, version: int) -> None:
    """The batch holds fewer records than its header counts."""
    refused_in(talk, version, tuple(CODECS.values()), CONTENT_LIES["fewer records than counted"])


@case("Produce", 13)
def too_many_records_in_every_codec(talk: Talk, version: int) -> None:
    """The batch holds more records than its header counts."""
    refused_in(talk, version, tuple(CODECS.values()), CONTENT_LIES["more records than counted"])


@case("Produce", 13)
def a_byte_behind_the_records_in_every_codec(talk: Talk, version: int) -> None:
    """One byte is left when all records were read."""
    lie = CONTENT_LIES["a byte behind the last record"]
    refused_in(talk, version, tuple(CODECS.values()), lie)


@case("Produce", 13)
def no_records_in_every_codec(talk: Talk, version: int) -> None:
    """The header counts three records, and there are none."""
    refused_in(talk, version, tuple(CODECS.values()), CONTENT_LIES["no records at all"])


@case("Produce", 13)
def a_record_cut_short_in_every_codec(talk: Talk, version: int) -> None:
    """The last record has fewer bytes than it says."""
    refused_in(talk, version, tuple(CODECS.values()), CONTENT_LIES["the last record is cut short"])


@case("Produce", 13)
def a_key_beyond_the_batch_in_every_codec(talk: Talk, version: int) -> None:
    """A key that is longer than all that follows."""
    refused_in(talk, version, tuple(CODECS.values()), CONTENT_LIES["a key goes beyond the batch"])


@case("Produce", 13)
def a_negative_number_of_headers_in_every_codec(talk: Talk, version: int) -> None:
    """A record with -1 headers."""
    refused_in(talk, version, tuple(CODECS.values()), CONTENT_LIES["a negative number of headers"])


@case("Produce", 13)
def record_lengths_in_a_compressed_batch(talk: Talk, version: int) -> None:
    """Records whose own length is too large, too small or negative, inside gzip."""
    for lie in (
        "a record goes beyond the batch",
        "a record ends before its fields",
        "a record of negative size",
    ):
        topic = talk.new_topic(lie.split()[2])
        produce(talk, version, topic, CONTENT_LIES[lie](GZIP))
        list_offsets(talk, 7, topic.name, -1)


@case("Produce", 13)
def a_record_of_negative_size(talk: Talk, version: int) -> None:
    """The same, uncompressed."""
    refused_in(talk, version, (0,), CONTENT_LIES["a record of negative size"])


@case("Produce", 13)
def an_offset_delta_twice(talk: Talk, version: int) -> None:
    """Two records of one batch with the same offset."""
    refused_in(talk, version, (0,), CONTENT_LIES["an offset delta twice"])


@case("Produce", 13)
def a_negative_offset_delta_in_a_compressed_batch(talk: Talk, version: int) -> None:
    """A record before the first one of its batch."""
    refused_in(talk, version, COMPRESSED, CONTENT_LIES["a negative offset delta"])


@case("Produce", 13)
def plain_records_in_every_codec(talk: Talk, version: int) -> None:
    """Records that are said to be compressed, and are not."""
    lie = CODEC_LIES["plain records that are said to be compressed"]
    refused_in(talk, version, COMPRESSED, lie)


@case("Produce", 13)
def noise_in_every_codec(talk: Talk, version: int) -> None:
    """Bytes that no codec ever wrote."""
    refused_in(talk, version, COMPRESSED, CODEC_LIES["noise"])


@case("Produce", 13)
def a_stream_cut_short_in_every_codec(talk: Talk, version: int) -> None:
    """The compressed bytes end too early."""
    refused_in(talk, version, COMPRESSED, CODEC_LIES["a stream that is cut short"])


@case("Produce", 13)
def the_wrong_codec(talk: Talk, version: int) -> None:
    """What one codec wrote under the name of the next one."""
    refused_in(talk, version, COMPRESSED, CODEC_LIES["the wrong codec"])


@case("Produce", 13)
def sound_in_every_codec(talk: Talk, version: int) -> None:
    """The same batch without a lie is stored as it came."""
    topic = talk.new_topic()
    for codec in CODECS.values():
        produce(talk, version, topic, sound(codec))
    fetch(talk, 13, topic)


@case("Produce", 13)
def snappy_without_framing(talk: Talk, version: int) -> None:
    """One raw block, as librdkafka writes it."""
    from cramjam import snappy

    topic = talk.new_topic()
    block = bytes(snappy.compress_raw(plain_records()))
    produce(talk, version, topic, with_payload(block, SNAPPY))
    fetch(talk, 13, topic)


@case("Produce", 13)
def max_timestamp_is_put_right(talk: Talk, version: int) -> None:
    """A largest timestamp that no record has is replaced by that of the records."""
    topic = talk.new_topic()
    for codec in CODECS.values():
        records = [NewRecord(value=b"v", timestamp_ms=OLD_TIME_MS + at) for at in (5, 900, 3)]
        produce(
            talk,
            version,
            topic,
            damaged(built(records, compression=codec), max_timestamp_ms=OLD_TIME_MS + 77),
        )
    fetch(talk, 13, topic)


@case("Produce", 13)
def a_timestamp_that_the_header_hides(talk: Talk, version: int) -> None:
    """The header's largest timestamp is fine, a record's is too far in the future."""
    now_ms = talk.clock_ms()
    times = (now_ms, now_ms + 2 * HOUR_MS)
    for codec in (0, GZIP):
        records = [NewRecord(value=b"v", timestamp_ms=time_ms) for time_ms in times]
        hidden = damaged(built(records, compression=codec), max_timestamp_ms=now_ms)
        topic = talk.new_topic(f"t{codec}")
        produce(talk, version, topic, hidden)
        list_offsets(talk, 7, topic.name, -1)


@case("Produce", 13)
def a_timestamp_that_only_the_header_has(talk: Talk, version: int) -> None:
    """The header's largest timestamp is in the future, those of the records are not."""
    now_ms = talk.clock_ms()
    topic = talk.new_topic()
    lie = damaged(
        built([NewRecord(value=b"v", timestamp_ms=OLD_TIME_MS)]),
        max_timestamp_ms=now_ms + 2 * HOUR_MS,
    )
    produce(talk, version, topic, lie)
    fetch(talk, 13, topic)


@case("Produce", 8, 13)
def without_a_key_and_in_the_future(talk: Talk, version: int) -> None:
    """Each bad record is named; one bad timestamp among them decides the code."""
    topic = talk.new_topic(configs={"cleanup.policy": "compact"})
    now_ms = talk.clock_ms()
    records = [
        NewRecord(key=b"k", value=b"v", timestamp_ms=now_ms),
        NewRecord(value=b"v", timestamp_ms=now_ms + 2 * HOUR_MS),
        NewRecord(key=b"k", value=b"v", timestamp_ms=now_ms + 2 * HOUR_MS),
        NewRecord(value=b"v", timestamp_ms=now_ms),
    ]
    produce(talk, version, topic, built(records))


@case("Produce", 13)
def log_append_time_from_a_client_where_the_broker_sets_it(talk: Talk, version: int) -> None:
    """Clients must not claim that the broker set the time, least of all where it does."""
    topic = talk.new_topic(configs={"message.timestamp.type": "LogAppendTime"})
    lie = damaged(sound(), attributes=LOG_APPEND_TIME)
    produce(talk, version, topic, lie)
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", 13)
def a_batch_that_unpacks_to_101_mebibytes(talk: Talk, version: int) -> None:
    """A sound batch of one record that is very large and very regular."""
    topic = talk.new_topic()
    records = [NewRecord(value=bytes(101 * 2**20), timestamp_ms=OLD_TIME_MS)]
    produce(talk, version, topic, built(records, compression=ZSTD))
    list_offsets(talk, 7, topic.name, -1)
