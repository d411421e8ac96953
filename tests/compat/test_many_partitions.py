"""One topic with a thousand partitions: made, described, written, read and deleted."""

from __future__ import annotations

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.clients import DELIVERY_S
from tests.process.fixtures import StartBroker
from tests.process.waiting import wait_until
from tests.process.wire import NO_GROUP, WireClient

COUNT = 1_000
Config = dict[str, str | int | float | bool]


def test_a_topic_with_a_thousand_partitions(start_broker: StartBroker) -> None:
    """Every partition takes a record and gives it back, also after a restart.

    Topics are not made by asking for them, or the deleted one may come back under another id:

      1. `admin` has asked for the topic by name, so librdkafka keeps an eye on it.
      2. The broker restarts. `admin` finds its connection gone and waits before it tries again.
      3. The topic is deleted.
      4. `admin` connects and asks for the topics that it knows, in words that create them.
    """
    broker = start_broker({"auto.create.topics.enable": False})
    servers: Config = {"bootstrap.servers": broker.address}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic("wide", COUNT, 1)])["wide"].result(DELIVERY_S)

    def all_led() -> bool:
        topic = admin.list_topics("wide", timeout=DELIVERY_S).topics["wide"]
        partitions = topic.partitions.values()
        return len(partitions) == COUNT and all(p.leader == 1 for p in partitions)

    wait_until(all_led, "a leader for every partition")
    places = _write_one_to_each(servers)
    assert places == dict.fromkeys(range(COUNT), 0)
    assert _read_one_from_each(servers) == {p: b"%d" % p for p in range(COUNT)}

    assert broker.stop() in (0, 143)
    broker.start()

    assert _read_one_from_each(servers) == {p: b"%d" % p for p in range(COUNT)}
    with WireClient(broker.address) as wire:
        answer = wire.ask("DeleteTopics", 6, topics=[{"name": "wide"}], timeout_ms=60_000)
        assert answer.responses[0].error_code == 0
    wait_until(
        lambda: "wide" not in AdminClient(servers).list_topics(timeout=DELIVERY_S).topics,
        "the topic's absence",
    )


def _write_one_to_each(servers: Config) -> dict[int, int]:
    places: dict[int, int] = {}

    def delivered(
        error: confluent_kafka.KafkaError | None, record: confluent_kafka.Message
    ) -> None:
        assert error is None, error
        partition, offset = record.partition(), record.offset()
        assert partition is not None and offset is not None
        places[partition] = offset

    producer = confluent_kafka.Producer({**servers, "enable.idempotence": True})
    for partition in range(COUNT):
        producer.produce("wide", b"%d" % partition, partition=partition, on_delivery=delivered)
    assert producer.flush(DELIVERY_S) == 0
    return places


def _read_one_from_each(servers: Config) -> dict[int, bytes]:
    consumer = confluent_kafka.Consumer({**servers, **NO_GROUP})
    consumer.assign([confluent_kafka.TopicPartition("wide", p, 0) for p in range(COUNT)])
    values: dict[int, bytes] = {}
    while len(values) < COUNT:
        found = consumer.consume(COUNT - len(values), timeout=DELIVERY_S)
        assert found, f"only {len(values)} of {COUNT}"
        for record in found:
            assert record.error() is None, record.error()
            partition, value = record.partition(), record.value()
            assert partition is not None and value is not None
            values[partition] = value
    consumer.close()
    return values
