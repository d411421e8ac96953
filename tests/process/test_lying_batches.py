"""Batches that lie about their records, sent to a live broker: refused, unnoticed by readers."""

from __future__ import annotations

import confluent_kafka
import pytest

from tests.lying_batches import CODEC_LIES, CODECS, CONTENT_LIES, sound
from tests.process.fixtures import NewTopic, StartBroker
from tests.process.target import Target
from tests.process.waiting import PATIENCE_S
from tests.process.wire import NO_GROUP, WireClient
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.records import NewRecord, build

VALUES = ["before", "first", "second", "third", "behind"]


def one_record(value: str) -> bytes:
    return bytes(build([NewRecord(value.encode(), timestamp_ms=1_600_000_000_000)]))


def read_by_librdkafka(address: str, topic: str, count: int) -> list[tuple[int, str]]:
    """The first records, by a consumer that checks sums and stops at whatever is wrong."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "check.crcs": True, "enable.partition.eof": True, **NO_GROUP}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[tuple[int, str]] = []
    try:
        while len(found) < count:
            record = consumer.poll(PATIENCE_S)
            assert record is not None, f"nothing more came after {found}"
            assert record.error() is None, (record.error(), found)
            value, offset = record.value(), record.offset()
            assert value is not None and offset is not None
            found.append((offset, value.decode()))
    finally:
        consumer.close()
    return found


@pytest.mark.scenario("X-48")
@pytest.mark.parametrize("codec", CODECS)
def test_every_lie_is_refused_and_readers_get_what_lies_before_and_behind(
    broker: Target, wire: WireClient, new_topic: NewTopic, codec: str
) -> None:
    """Refused as Kafka refuses them, with nothing stored, in this codec."""
    topic = new_topic()
    number = CODECS[codec]
    assert wire.produce(topic, one_record("before")).error_code == 0

    for lie, make in CONTENT_LIES.items():
        answer = wire.produce(topic, make(number))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1), lie
    for lie, make in CODEC_LIES.items() if number else ():
        answer = wire.produce(topic, make(number))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1), lie
    assert wire.produce(topic, sound(number)).base_offset == 1
    assert wire.produce(topic, one_record("behind")).base_offset == 4

    assert read_by_librdkafka(broker.address, topic, 5) == list(enumerate(VALUES))


@pytest.mark.scenario("X-48")
def test_a_broker_that_believes_headers_stores_them(start_broker: StartBroker) -> None:
    """What the check is for: a reader cannot take them apart, and does not come past them."""
    target = start_broker({"tidelog.records.validation": "header"})
    lie = CONTENT_LIES["a value goes beyond its record"](CODECS["gzip"])
    with WireClient(target.address) as wire:
        wire.create_topic("believed")
        assert wire.produce("believed", one_record("before")).error_code == 0
        assert wire.produce("believed", lie).base_offset == 1
        assert wire.produce("believed", one_record("behind")).base_offset == 4
        with pytest.raises(CorruptBatch):
            wire.read_all("believed")
