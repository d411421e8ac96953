"""Settings of clients: Java's defaults and rules, and messages that say what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.client.config import Address, client_config
from tidelog.client.consumer.config import Reset, consumer_config
from tidelog.client.producer.config import producer_config
from tidelog.client.settings import ConfigError
from tidelog.core.wire.compression import Compression

BOOTSTRAP = {"bootstrap.servers": "a:9092"}


@pytest.mark.scenario("N26")
def test_a_producers_defaults_are_those_of_the_java_client() -> None:
    config = producer_config(BOOTSTRAP)

    assert config.is_idempotent and config.acks == -1
    assert config.in_flight_max == config.client.in_flight_max == 5
    assert (config.delivery_timeout_ms, config.client.request_timeout_ms) == (120_000, 30_000)
    assert (config.buffer_memory, config.max_block_ms) == (32 * 2**20, 60_000)
    assert (config.linger_ms, config.batch_size) == (5, 16_384)
    assert (config.retries, config.request_bytes_max) == (2**31 - 1, 2**20)
    assert (config.client.retry_backoff_ms, config.client.retry_backoff_max_ms) == (100, 1_000)
    assert (config.client.reconnect_backoff_ms, config.client.reconnect_backoff_max_ms) == (
        50,
        1_000,
    )
    assert config.compression == Compression.NONE
    assert config.client.metadata_max_age_ms == 300_000


def test_a_consumers_defaults_are_those_of_the_java_client() -> None:
    config = consumer_config(BOOTSTRAP)

    assert config.reset == Reset.LATEST and not config.is_read_committed
    assert (config.fetch_bytes_min, config.fetch_wait_ms) == (1, 500)
    assert (config.fetch_bytes_max, config.partition_bytes_max) == (50 * 2**20, 2**20)
    assert config.poll_records_max == 500 and config.checks_crcs


@pytest.mark.scenario("N25", "N26")
@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"enable.idempotence": True, "acks": "1"}, "acks must be all"),
        ({"enable.idempotence": True, "acks": "0"}, "acks must be all"),
        ({"enable.idempotence": True, "retries": 0}, "retries must not be 0"),
        ({"max.in.flight.requests.per.connection": 6}, "must be at most 5"),
        (
            {"enable.idempotence": "true", "max.in.flight.requests.per.connection": 6},
            "must be at most 5 with enable.idempotence, not 6",
        ),
        ({"acks": "2"}, "one of all, -1, 0, 1"),
        ({"transactional.id": "a", "acks": "1"}, "transactional.id needs enable.idempotence"),
        ({"transactional.id": "a", "enable.idempotence": False}, "needs enable.idempotence"),
        ({"transactional.id": ""}, "transactional.id must not be empty"),
        ({"tidelog.transaction.protocol": "new"}, "one of auto, classic"),
        ({"delivery.timeout.ms": 30_000}, "linger.ms + request.timeout.ms, which is 30005"),
        ({"linger.ms": -1}, "at least 0"),
        ({"batch.size": "many"}, "whole number"),
        ({"compression.type": "brotli"}, "one of none, gzip, snappy, lz4, zstd"),
        ({"bootstrap.servers": "a"}, "'a' is not host:port"),
        ({"bootstrap.servers": "a:0"}, "is not host:port"),
        ({"bootstrap.servers": ""}, "at least one"),
        ({"acknowledgements": "all"}, "acknowledgements is not a setting"),
    ],
)
def test_a_producer_refuses_what_the_java_client_refuses(
    given: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        producer_config({**BOOTSTRAP, **given})
    assert complaint in str(refused.value)


@pytest.mark.scenario("N25")
@pytest.mark.parametrize("given", [{"acks": "1"}, {"acks": "0"}, {"retries": 0}])
def test_idempotence_that_nobody_asked_for_turns_itself_off(given: dict[str, Any]) -> None:
    assert not producer_config({**BOOTSTRAP, **given}).is_idempotent


def test_without_idempotence_any_number_may_be_in_flight() -> None:
    given = {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1_000}
    assert producer_config({**BOOTSTRAP, **given}).in_flight_max == 1_000


def test_a_delivery_timeout_that_nobody_chose_gives_way_to_a_long_request_timeout() -> None:
    config = producer_config({**BOOTSTRAP, "request.timeout.ms": 200_000, "linger.ms": 1_000})
    assert config.delivery_timeout_ms == 201_000


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"auto.offset.reset": "middle"}, "one of earliest, latest, none"),
        ({"isolation.level": "serializable"}, "read_committed"),
        ({"max.poll.records": 0}, "at least 1"),
        ({"group.protocol": "classic"}, "is not a setting"),
    ],
)
def test_a_consumer_refuses_what_it_does_not_know(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        consumer_config({**BOOTSTRAP, **given})
    assert complaint in str(refused.value)


def test_addresses_come_as_text_or_as_a_list() -> None:
    expected = (Address("a", 9092), Address("::1", 9093))
    assert client_config({"bootstrap.servers": "a:9092, [::1]:9093"}).bootstrap == expected
    assert client_config({"bootstrap.servers": ["a:9092", "[::1]:9093"]}).bootstrap == expected
