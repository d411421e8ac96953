"""Options of Spark's Kafka source: what they mean, and the message for each wrong one."""

from __future__ import annotations

import pytest

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.bounds import AtOffsets, AtTime, AtTimes, Edge
from tidelog.spark.source.errors import OptionError
from tidelog.spark.source.options import (
    Assign,
    SourceOptions,
    Subscribe,
    SubscribePattern,
    batch_options,
    check_options,
    stream_options,
)

ORDERS = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def batch(**more: str) -> SourceOptions:
    return batch_options({**ORDERS, **more})


def stream(**more: str) -> SourceOptions:
    return stream_options({**ORDERS, **more})


def test_defaults_are_sparks_except_for_the_isolation_level() -> None:
    found = batch()
    assert (found.start, found.end) == (Edge.EARLIEST, Edge.LATEST)
    assert stream().start is Edge.LATEST
    assert found.fails_on_data_loss and not found.includes_headers
    assert found.is_read_committed, "Spark's own source would read what is aborted, too"
    assert found.partitions_min is None and found.trigger_offsets_max is None
    assert found.poll_timeout_ms == 120_000
    assert found.trigger_delay_max_ms == 15 * 60_000
    assert (found.offset_retries, found.offset_retry_interval_ms) == (3, 1_000)
    assert found.warnings == ()


def test_case_does_not_matter_in_names() -> None:
    found = batch_options(
        {
            "KAFKA.Bootstrap.Servers": "localhost:9092",
            "SUBSCRIBE": "orders",
            "STARTINGOFFSETS": "Earliest",
            "includeheaders": "TRUE",
        }
    )
    assert found.start is Edge.EARLIEST and found.includes_headers


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"subscribe": " orders , payments,orders,"}, Subscribe(("orders", "payments"))),
        ({"subscribePattern": " ord.* "}, SubscribePattern("ord.*")),
        ({"assign": '{"orders": [1, 0]}'}, Assign(frozenset({P0, P1}))),
    ],
)
def test_what_is_read(given: dict[str, str], expected: object) -> None:
    options = {"kafka.bootstrap.servers": "localhost:9092", **given}
    assert batch_options(options).subscription == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": "earliest"}, Edge.EARLIEST),
        ({"startingOffsets": " LATEST "}, Edge.LATEST),
        (
            {"startingOffsets": '{"orders":{"0":5,"1":-2}}'},
            AtOffsets("startingOffsets", {P0: 5, P1: -2}),
        ),
        ({"startingTimestamp": "1000"}, AtTime("startingTimestamp", 1_000)),
        (
            {"startingOffsetsByTimestamp": '{"orders":{"0":1000}}'},
            AtTimes("startingOffsetsByTimestamp", {P0: 1_000}),
        ),
        # A time goes before times, and times before offsets.
        (
            {
                "startingTimestamp": "1",
                "startingOffsetsByTimestamp": '{"orders":{"0":2}}',
                "startingOffsets": "earliest",
            },
            AtTime("startingTimestamp", 1),
        ),
        (
            {"startingOffsetsByTimestamp": '{"orders":{"0":2}}', "startingOffsets": "earliest"},
            AtTimes("startingOffsetsByTimestamp", {P0: 2}),
        ),
    ],
)
def test_where_a_stream_begins(given: dict[str, str], expected: object) -> None:
    assert stream(**given).start == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"endingOffsets": "latest"}, Edge.LATEST),
        ({"endingOffsets": '{"orders":{"0":-1}}'}, AtOffsets("endingOffsets", {P0: -1})),
        ({"endingTimestamp": "7"}, AtTime("endingTimestamp", 7)),
        (
            {"endingOffsetsByTimestamp": '{"orders":{"1":9}}'},
            AtTimes("endingOffsetsByTimestamp", {P1: 9}),
        ),
    ],
)
def test_where_a_batch_ends(given: dict[str, str], expected: object) -> None:
    assert batch(**given).end == expected


def test_numbers_and_times() -> None:
    found = stream(
        minPartitions="12",
        maxRecordsPerPartition="1000",
        maxOffsetsPerTrigger="500",
        minOffsetsPerTrigger="100",
        maxTriggerDelay="30s",
        failOnDataLoss="false",
        **{"kafkaConsumer.pollTimeoutMs": "5000", "fetchOffset.numRetries": "7"},
    )
    assert (found.partitions_min, found.partition_records_max) == (12, 1_000)
    assert (found.trigger_offsets_max, found.trigger_offsets_min) == (500, 100)
    assert found.trigger_delay_max_ms == 30_000
    assert not found.fails_on_data_loss
    assert (found.poll_timeout_ms, found.offset_retries) == (5_000, 7)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("250", 250),
        ("250ms", 250),
        ("2s", 2000),
        ("3m", 180000),
        ("3min", 180000),
        ("1h", 3600000),
        ("1d", 86400000),
        ("5000us", 5),
    ],
)
def test_times_are_written_as_in_spark(text: str, expected_ms: int) -> None:
    assert stream(maxTriggerDelay=text).trigger_delay_max_ms == expected_ms


def test_settings_of_the_client_are_passed_on() -> None:
    found = batch(
        **{
            "kafka.max.partition.fetch.bytes": "123456",
            "kafka.client.id": "reader",
            "kafka.isolation.level": "read_uncommitted",
        }
    )
    assert found.client.given["max.partition.fetch.bytes"] == "123456"
    assert not found.is_read_committed
    assert found.client.of_admin() == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "reader",
    }


WRONG_EVERYWHERE = [
    # Which topics
    ({"subscribe": None}, "exactly one of subscribe, subscribePattern, assign"),
    ({"assign": '{"orders":[0]}'}, "both subscribe and assign"),
    ({"subscribe": " , "}, "subscribe names no topic"),
    ({"subscribe": None, "subscribePattern": " "}, "subscribePattern is empty"),
    ({"subscribe": None, "subscribePattern": "or(ders"}, "subscribePattern 'or(ders' is no"),
    ({"subscribe": None, "assign": "orders"}, 'assign must be like {"topicA":[0,1]'),
    ({"subscribe": None, "assign": '{"orders":[-1]}'}, "assign must be like"),
    ({"subscribe": None, "assign": '{"orders":{"0":1}}'}, "assign must be like"),
    ({"subscribe": None, "assign": "{}"}, "assign names no partition"),
    # The client
    ({"kafka.bootstrap.servers": None}, "kafka.bootstrap.servers must be given"),
    ({"kafka.bootstrap.servers": "localhost"}, "kafka.bootstrap.servers: 'localhost' is not"),
    ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset is not supported: use"),
    ({"kafka.key.deserializer": "x"}, "kafka.key.deserializer is not supported"),
    ({"kafka.value.deserializer": "x"}, "kafka.value.deserializer is not supported"),
    ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit is not supported"),
    ({"kafka.interceptor.classes": "x"}, "kafka.interceptor.classes is not supported"),
    ({"kafka.security.protocol": "SASL_SSL"}, "kafka.security.protocol is not supported"),
    ({"kafka.ssl.truststore.location": "x"}, "kafka.ssl.truststore.location is not supported"),
    ({"kafka.sasl.mechanism": "PLAIN"}, "kafka.sasl.mechanism is not supported"),
    ({"kafka.isolation.level": "none"}, "kafka.isolation.level='none' is refused"),
    ({"kafka.fetch.max.wait.ms": "soon"}, "kafka.fetch.max.wait.ms='soon' is refused"),
    # Where to begin
    ({"startingOffsets": "first"}, "startingOffsets must be earliest, latest or like"),
    ({"startingOffsets": "{"}, "startingOffsets must be like"),
    ({"startingOffsets": '{"orders":[1]}'}, "startingOffsets must be like"),
    ({"startingOffsets": '{"orders":{"x":1}}'}, "startingOffsets must be like"),
    ({"startingOffsets": '{"orders":{"0":"1"}}'}, "startingOffsets must be like"),
    ({"startingOffsets": '{"orders":{"0":true}}'}, "startingOffsets must be like"),
    ({"startingOffsets": '{"orders":{"0":-3}}'}, "startingOffsets of orders-0 is -3"),
    ({"startingTimestamp": "noon"}, "startingTimestamp must be a time in milliseconds"),
    ({"startingTimestamp": "-1"}, "startingTimestamp must be a time in milliseconds"),
    ({"startingOffsetsByTimestamp": "5"}, "startingOffsetsByTimestamp must be like"),
    (
        {"startingOffsetsByTimestamp": '{"orders":{"0":-1}}'},
        "startingOffsetsByTimestamp must have times",
    ),
    ({"startingOffsetsByTimestampStrategy": "guess"}, "must be error or latest"),
    # Numbers
    ({"minPartitions": "0"}, "minPartitions must be a whole number, at least 1"),
    ({"minPartitions": "many"}, "minPartitions must be a whole number"),
    ({"minPartitions": str(2**31)}, "minPartitions must be a whole number"),
    ({"maxRecordsPerPartition": "-4"}, "maxRecordsPerPartition must be a whole number"),
    ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be a whole number"),
    ({"maxOffsetsPerTrigger": "1.5"}, "maxOffsetsPerTrigger must be a whole number"),
    ({"minOffsetsPerTrigger": "x"}, "minOffsetsPerTrigger must be a whole number"),
    (
        {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
        "minOffsetsPerTrigger (5) is more than maxOffsetsPerTrigger (4)",
    ),
    ({"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a time like"),
    ({"maxTriggerDelay": "5 weeks"}, "maxTriggerDelay must be a time like"),
    ({"failOnDataLoss": "yes"}, "failOnDataLoss must be true or false"),
    ({"includeHeaders": "1"}, "includeHeaders must be true or false"),
    ({"kafkaConsumer.pollTimeoutMs": "0"}, "kafkaConsumer.pollTimeoutMs must be"),
    ({"fetchOffset.numRetries": "-1"}, "fetchOffset.numRetries must be"),
    ({"fetchOffset.retryIntervalMs": "x"}, "fetchOffset.retryIntervalMs must be"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_EVERYWHERE, ids=lambda each: str(each)[:60])
def test_a_wrong_option_is_named(changes: dict[str, str | None], message: str) -> None:
    """The same for a batch, for a stream, and before it is known which."""
    given = {name: text for name, text in {**ORDERS, **changes}.items() if text is not None}
    for read in (batch_options, stream_options, check_options):
        with pytest.raises(OptionError) as refused:
            read(given)
        assert message in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets may not be latest in a batch"),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, "startingOffsets may not be latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets may not be earliest"),
        ({"endingOffsets": '{"orders":{"0":-2}}'}, "endingOffsets may not be earliest"),
        ({"endingOffsets": "end"}, "endingOffsets must be earliest, latest or like"),
        ({"endingTimestamp": "x"}, "endingTimestamp must be a time"),
        ({"endingOffsetsByTimestamp": "x"}, "endingOffsetsByTimestamp must be like"),
        (
            {"startingTimestamp": "5", "endingTimestamp": "4"},
            "startingTimestamp is after endingTimestamp",
        ),
        (
            {
                "startingOffsets": '{"orders":{"0":5}}',
                "endingOffsets": '{"orders":{"0":4}}',
            },
            "startingOffsets of orders-0 (5) is after its endingOffsets (4)",
        ),
        (
            {
                "startingOffsets": '{"orders":{"0":5}}',
                "endingOffsets": '{"orders":{"1":9}}',
            },
            "startingOffsets and endingOffsets differ in their partitions: orders-0, orders-1",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"orders":{"0":5}}',
                "endingOffsetsByTimestamp": '{"orders":{"0":4}}',
            },
            "startingOffsetsByTimestamp of orders-0 (5) is after its endingOffsetsByTimestamp",
        ),
    ],
)
def test_what_a_batch_may_not_be_told(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as refused:
        batch(**given)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is only for batches"):
        stream(**{name: "latest"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger has no effect on a batch"),
        ({"minOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger has no effect on a batch"),
        ({"maxTriggerDelay": "5s"}, "maxTriggerDelay has no effect on a batch"),
        ({"kafka.group.id": "mine"}, "kafka.group.id has no effect"),
        ({"kafka.session.timeout.ms": "5"}, "kafka.session.timeout.ms has no effect"),
        (
            {"groupIdPrefix": "mine"},
            "groupIdPrefix has no effect: this source joins no consumer group",
        ),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"zebra": "1"}, "zebra is not an option of this source"),
    ],
)
def test_what_has_no_effect_is_a_warning(given: dict[str, str], message: str) -> None:
    [warning] = batch(**given).warnings
    assert message in warning


def test_plain_connections_may_be_asked_for() -> None:
    assert batch(**{"kafka.security.protocol": "plaintext"}).warnings == ()
