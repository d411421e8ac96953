"""Requests that are wrong before anybody looks at what they ask: keys, versions, lengths."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import batch
from tests.golden.cases.registry import case
from tests.golden.plain import API_KEYS
from tests.golden.talk import Talk, produce_fields

EDGE_VERSIONS = {
    "Produce": (2, 14),
    "Fetch": (3, 19),
    "ListOffsets": (0, 12),
    "Metadata": (-1, 14),
    "CreateTopics": (1, 8),
    "DeleteTopics": (0, 7),
    "DeleteRecords": (-1, 3),
    "InitProducerId": (-1, 7),
    "OffsetForLeaderEpoch": (1, 5),
    "DescribeConfigs": (0, 5),
    "CreatePartitions": (-1, 4),
    "IncrementalAlterConfigs": (-1, 2),
    "DescribeCluster": (-1, 3),
    "DescribeProducers": (-1, 1),
    "DescribeTopicPartitions": (-1, 1),
}
"""The version below the lowest and the one above the highest that are served."""

SMALL: dict[str, dict[str, Any]] = {
    "Produce": {"transactional_id": None, "acks": -1, "timeout_ms": 1, "topic_data": []},
    "Fetch": {"max_wait_ms": 0, "min_bytes": 0, "topics": []},
    "ListOffsets": {"replica_id": -1, "topics": []},
    "Metadata": {"topics": []},
    "CreateTopics": {"topics": []},
    "DeleteTopics": {"topic_names": [], "timeout_ms": 1},
    "DeleteRecords": {"topics": [], "timeout_ms": 1},
    "InitProducerId": {"transactional_id": None, "transaction_timeout_ms": 1},
    "OffsetForLeaderEpoch": {"topics": []},
    "DescribeConfigs": {"resources": []},
    "CreatePartitions": {"topics": [], "timeout_ms": 1},
    "IncrementalAlterConfigs": {"resources": []},
    "DescribeCluster": {},
    "DescribeProducers": {"topics": []},
    "DescribeTopicPartitions": {"topics": [{"name": "no-such-topic"}]},
}
LOWEST = {
    "Produce": 3,
    "Fetch": 4,
    "ListOffsets": 1,
    "Metadata": 1,
    "CreateTopics": 2,
    "DeleteTopics": 1,
    "DeleteRecords": 0,
    "InitProducerId": 0,
    "OffsetForLeaderEpoch": 2,
    "DescribeConfigs": 1,
    "CreatePartitions": 0,
    "IncrementalAlterConfigs": 0,
    "DescribeCluster": 0,
    "DescribeProducers": 0,
    "DescribeTopicPartitions": 0,
}


def declare_edges(api: str) -> None:
    """The same four cases for every API."""

    @case(api)
    def version_too_low(talk: Talk) -> None:
        """A version below those that are served."""
        version = EDGE_VERSIONS[api][0]
        talk.throw(f"v{version}", talk.header(API_KEYS[api], version, flexible=False) + bytes(40))

    @case(api)
    def version_too_high(talk: Talk) -> None:
        """A version above those that are served."""
        version = EDGE_VERSIONS[api][1]
        talk.throw(f"v{version}", talk.header(API_KEYS[api], version, flexible=True) + bytes(40))

    @case(api)
    def truncated_body(talk: Talk) -> None:
        """A request that ends too early."""
        whole = talk.encoded(api, LOWEST[api], **SMALL[api])
        talk.throw("one byte too few", whole[:-1], answer_as=(api, LOWEST[api]))

    @case(api)
    def trailing_bytes(talk: Talk) -> None:
        """A request with bytes after its end."""
        whole = talk.encoded(api, LOWEST[api], **SMALL[api])
        talk.throw("three bytes too many", whole + bytes(3), answer_as=(api, LOWEST[api]))


for _api in EDGE_VERSIONS:
    declare_edges(_api)


@case("ApiVersions")
def unknown_api_key(talk: Talk) -> None:
    """An API key that nobody has heard of."""
    talk.throw("api key 5000", talk.header(5000, 0, flexible=False) + bytes(20))


@case("ApiVersions")
def negative_api_key(talk: Talk) -> None:
    """A negative API key."""
    talk.throw("api key -1", talk.header(-1, 0, flexible=False) + bytes(20))


@case("ApiVersions")
def api_key_of_another_listener(talk: Talk) -> None:
    """Vote belongs to controllers, not to clients."""
    talk.throw("Vote v0", talk.header(52, 0, flexible=True) + bytes(20))


@case("ApiVersions")
def api_key_that_was_removed(talk: Talk) -> None:
    """LeaderAndIsr is gone since Kafka 4.0."""
    talk.throw("api key 4", talk.header(4, 5, flexible=True) + bytes(20))


@case("ApiVersions")
def empty_frame(talk: Talk) -> None:
    """A frame of zero bytes."""
    talk.throw("nothing", b"")


@case("ApiVersions")
def frame_shorter_than_a_header(talk: Talk) -> None:
    """A frame of three bytes."""
    talk.throw("three bytes", b"\x00\x12\x00")


@case("ApiVersions")
def frame_of_negative_size(talk: Talk) -> None:
    """A negative size."""
    talk.throw_bytes("size -1", (-1).to_bytes(4, "big", signed=True) + bytes(30))


@case("ApiVersions")
def frame_above_the_limit(talk: Talk) -> None:
    """A size above socket.request.max.bytes is refused before the bytes come."""
    talk.throw_bytes("size 104857601", (104_857_601).to_bytes(4, "big") + bytes(30))


@case("ApiVersions")
def client_id_longer_than_the_frame(talk: Talk) -> None:
    """A client id that goes beyond its frame."""
    data = bytearray(talk.header(18, 0, flexible=False))
    data[8:10] = (5000).to_bytes(2, "big")
    talk.throw("client id of 5000 bytes", bytes(data))


@case("ApiVersions")
def null_client_id(talk: Talk) -> None:
    """A client without a name."""
    data = bytearray(talk.header(18, 0, flexible=False)[:10])
    data[8:10] = b"\xff\xff"
    talk.throw("a null client id", bytes(data), answer_as=("ApiVersions", 0))


@case("ApiVersions")
def client_id_of_length_minus_two(talk: Talk) -> None:
    """A client id of a negative length other than -1."""
    data = bytearray(talk.header(18, 0, flexible=False)[:10])
    data[8:10] = b"\xff\xfe"
    talk.throw("a client id of length -2", bytes(data), answer_as=("ApiVersions", 0))


@case("Metadata")
def count_beyond_the_frame(talk: Talk) -> None:
    """A count of topics that the frame cannot hold."""
    data = talk.header(3, 1, flexible=False) + (2**31 - 1).to_bytes(4, "big")
    talk.throw("two thousand million topics", data)


@case("Metadata")
def flexible_count_beyond_the_frame(talk: Talk) -> None:
    """The same as a compact array."""
    data = talk.header(3, 13, flexible=True) + b"\xff\xff\xff\xff\x0f"
    talk.throw("four thousand million topics", data)


@case("Metadata")
def name_that_is_not_utf8(talk: Talk) -> None:
    """Bytes that are no text in place of a topic's name."""
    body = (1).to_bytes(4, "big") + (2).to_bytes(2, "big") + b"\xff\xfe"
    data = talk.header(3, 1, flexible=False) + body
    talk.throw("a name of 0xfffe", data, answer_as=("Metadata", 1))


@case("Produce")
def records_longer_than_the_frame(talk: Talk) -> None:
    """A length of records that goes beyond the frame."""
    whole = bytearray(talk.encoded("Produce", 3, **produce_fields(talk.name(), batch("a"))))
    at = len(whole) - len(batch("a")) - 4
    whole[at : at + 4] = (2**30).to_bytes(4, "big")
    talk.throw("records of a gigabyte", bytes(whole))


@case("Produce")
def records_of_length_minus_five(talk: Talk) -> None:
    """A negative length of records other than null."""
    whole = bytearray(talk.encoded("Produce", 3, **produce_fields(talk.name(), batch("a"))))
    at = len(whole) - len(batch("a")) - 4
    whole[at : at + 4] = (-5).to_bytes(4, "big", signed=True)
    talk.throw("records of -5 bytes", bytes(whole), answer_as=("Produce", 3))


@case("Produce")
def without_the_version_that_is_only_advertised(talk: Talk) -> None:
    """Version 0 is advertised for old clients and refused when used."""
    body = (1).to_bytes(2, "big") + (1000).to_bytes(4, "big") + bytes(4)
    talk.throw("Produce v0", talk.header(0, 0, flexible=False) + body)
