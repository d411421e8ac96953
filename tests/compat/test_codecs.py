"""Every client writes with every codec, and every client reads what every other wrote."""

from __future__ import annotations

import pytest

from tests.compat.clients import (
    CODECS,
    HAS_KCAT,
    LIBRARIES,
    Client,
    Consumed,
    JavaConsole,
    Kcat,
    Message,
)
from tests.process.target import Target
from tests.process.wire import WireClient
from tidelog.core.wire.record_batch import batches, crc_is_valid

EVERYBODY: tuple[Client, ...] = (*LIBRARIES, Kcat())
HERE: tuple[Client, ...] = EVERYBODY if HAS_KCAT else LIBRARIES


def written(writer: Client, codec: str) -> list[Message]:
    """A key and a value, no key, a tombstone, and something worth compressing."""
    mark = f"{writer.name}/{codec}"
    headers = (("written-by", mark.encode()), ("second", b"2"))
    return [
        Message(f"{mark} with a key".encode(), b"key", headers),
        Message(f"{mark} without a key".encode(), None, headers),
        Message(None, f"{mark} gone".encode(), headers),
        Message(mark.encode() * 400, b"long", headers),
    ]


def fill(address: str, topic: str, writers: tuple[Client, ...]) -> list[Message]:
    """Everybody writes with every codec to one partition."""
    expected = []
    for writer in writers:
        for codec in CODECS:
            messages = written(writer, codec)
            writer.produce(address, topic, codec, messages)
            expected += messages
    return expected


def check(consumed: list[Consumed], expected: list[Message]) -> None:
    """The same records in the same order at 0, 1, 2, ..."""
    assert [one.offset for one in consumed] == list(range(len(expected)))
    seen = [(m.key, m.value, m.headers) for m in (one.message for one in consumed)]
    assert seen == [(m.key, m.value, m.headers) for m in expected]


@pytest.fixture(scope="session")
def mixed(broker: Target) -> tuple[str, list[Message]]:
    """A partition that every client but Java's wrote to with every codec.

    Java's tests of this file may come long before or after the others: it lives as long as the
    broker that it is on.
    """
    with WireClient(broker.address) as wire:
        wire.create_topic("mixed")
    return "mixed", fill(broker.address, "mixed", HERE)


@pytest.mark.parametrize("reader", EVERYBODY, ids=lambda client: client.name)
def test_a_client_reads_what_all_clients_wrote_with_all_codecs(
    reader: Client, bootstrap: str, mixed: tuple[str, list[Message]]
) -> None:
    topic, expected = mixed
    check(reader.consume(bootstrap, topic, len(expected)), expected)


def test_batches_stay_compressed_as_their_producers_sent_them(
    wire: WireClient, mixed: tuple[str, list[Message]]
) -> None:
    """compression.type=producer: the broker keeps each codec and each checksum."""
    topic, expected = mixed
    view = memoryview(wire.fetch(topic, 0, bytes_max=16 << 20).records)
    codecs = []
    for position, header in batches(view):
        assert crc_is_valid(view, position, header)
        codecs += [CODECS[header.compression]] * header.records_count
    assert len(codecs) == len(expected)
    # A client may leave a batch as it is when compression would not make it smaller; of each four
    # records the last one is long.
    for at, writer in enumerate(HERE):
        assert codecs[20 * at + 3 : 20 * at + 20 : 4] == list(CODECS), writer.name


@pytest.mark.java
def test_java_writes_with_every_codec_and_every_client_reads_it(
    bootstrap: str, wire: WireClient
) -> None:
    wire.create_topic("from-java")
    expected = fill(bootstrap, "from-java", (JavaConsole(),))
    for reader in HERE:
        check(reader.consume(bootstrap, "from-java", len(expected)), expected)


@pytest.mark.java
def test_java_reads_what_all_clients_wrote_with_all_codecs(
    bootstrap: str, mixed: tuple[str, list[Message]]
) -> None:
    topic, expected = mixed
    check(JavaConsole().consume(bootstrap, topic, len(expected)), expected)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_the_broker_compresses_anew_where_the_topic_says_so(codec: str, wire: WireClient) -> None:
    """compression.type=<codec>: whatever the producer sends, this codec is in the log."""
    topic = f"recompressed-{codec}"
    wire.create_topic(topic, configs={"compression.type": codec})
    messages = written(LIBRARIES[0], "none")
    address = "{}:{}".format(*wire.socket.getpeername())
    for client, sent_as in zip(LIBRARIES, ("none", "gzip", "zstd"), strict=True):
        client.produce(address, topic, sent_as, messages)
    view = memoryview(wire.fetch(topic, 0, bytes_max=16 << 20).records)
    assert {CODECS[header.compression] for _, header in batches(view)} == {codec}
    check(LIBRARIES[1].consume(address, topic, 12), messages * 3)
