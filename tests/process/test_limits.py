"""Every limit refuses with Kafka's error code, and costs nobody else anything."""

from __future__ import annotations

import struct

import pytest

from tests.process.fixtures import NewTopic, StartBroker
from tests.process.target import Target
from tests.process.waiting import wait_until
from tests.process.wire import WireClient, batch_of, produce_fields
from tidelog.core.model.errors import ErrorCode


@pytest.mark.parametrize("size", [100 * 2**20 + 1, 2**31 - 1, -1, -(2**31)])
def test_a_frame_over_the_limit_closes_its_connection(broker: Target, size: int) -> None:
    with WireClient(broker.address) as wire, WireClient(broker.address) as neighbour:
        neighbour.ask("ApiVersions", 0)
        wire.socket.sendall(struct.pack(">i", size) + b"x" * 100)
        assert wire.is_closed_by_broker()
        assert neighbour.ask("ApiVersions", 0).error_code == 0


def test_the_limit_of_a_request_can_be_set(start_broker: StartBroker) -> None:
    """socket.request.max.bytes counts the frame without its size."""
    broker = start_broker({"socket.request.max.bytes": 10_000})
    with WireClient(broker.address) as wire:
        wire.create_topic("orders")
        around = len(wire.frame("Produce", 9, **produce_fields("orders", batch_of(b"x" * 9_000))))
        fits = 9_000 + 10_000 - (around - 4)
        frame = wire.frame("Produce", 9, **produce_fields("orders", batch_of(b"x" * fits)))
        assert len(frame) - 4 == 10_000
        wire.socket.sendall(frame)
        assert wire.answer("Produce", 9).responses[0].partition_responses[0].error_code == 0
        frame = wire.frame("Produce", 9, **produce_fields("orders", batch_of(b"x" * (fits + 1))))
        assert len(frame) - 4 == 10_001
        wire.socket.sendall(frame)
        assert wire.is_closed_by_broker()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("x" * 249, ErrorCode.NONE),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (".", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("größe", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("../escape", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_topic_names_have_rules(wire: WireClient, name: str, error: ErrorCode) -> None:
    assert wire.create_topic_answer(name).error_code == error


@pytest.mark.parametrize(
    ("partitions", "error"),
    [
        (0, ErrorCode.INVALID_PARTITIONS),
        (-2, ErrorCode.INVALID_PARTITIONS),
        (10_001, ErrorCode.POLICY_VIOLATION),
        (2**31 - 1, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_numbers_of_partitions_have_limits(
    wire: WireClient, partitions: int, error: ErrorCode
) -> None:
    answer = wire.create_topic_answer(f"wide-{partitions}", partitions=partitions)
    assert answer.error_code == error


def test_more_replicas_than_brokers_are_refused(wire: WireClient) -> None:
    topic = {"name": "replicated", "num_partitions": 1, "replication_factor": 2}
    answer = wire.ask("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
    assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("setting", ["max.connections", "max.connections.per.ip"])
def test_connections_have_a_limit(start_broker: StartBroker, setting: str) -> None:
    """The one too many is closed; the others go on, and a free place can be taken."""
    broker = start_broker({setting: 5})

    def served() -> WireClient | None:
        client = WireClient(broker.address)
        try:
            client.ask("ApiVersions", 0)
        except (ConnectionError, BrokenPipeError):
            client.close()
            return None
        return client

    clients = [
        wait_until(served, "a place: that of the start-up probe is freed soon") for _ in range(5)
    ]
    with WireClient(broker.address) as excess:
        assert excess.is_closed_by_broker()
    for client in clients:
        assert client.ask("ApiVersions", 0).error_code == 0
    clients.pop().close()
    clients.append(wait_until(served, "the place that became free"))
    for client in clients:
        client.close()


def test_unknown_versions_and_apis_get_kafkas_answers(broker: Target, wire: WireClient) -> None:
    """ApiVersions of a version nobody knows is answered in version 0; any other closes."""
    wire.socket.sendall(struct.pack(">ihhihb", 11, 18, 99, 7, -1, 0))
    frame = wire.read_frame()
    assert struct.unpack_from(">ih", frame) == (7, ErrorCode.UNSUPPORTED_VERSION)
    for api_key, version in ((3, 99), (0, 2), (1, 3), (9999, 0), (-1, 0)):
        with WireClient(broker.address) as other:
            other.socket.sendall(struct.pack(">ihhihb", 11, api_key, version, 7, -1, 0))
            assert other.is_closed_by_broker(), (api_key, version)


def test_a_produce_with_bad_acks_is_refused(wire: WireClient, new_topic: NewTopic) -> None:
    topic = new_topic()
    answer = wire.produce(topic, batch_of(b"x"), acks=2)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert wire.end_offset(topic) == 0
