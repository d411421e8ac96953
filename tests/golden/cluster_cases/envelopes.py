"""Envelope: requests of clients that a broker passes on to the active controller."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_talk import METADATA_TOPIC, ClusterTalk, controller
from tests.golden.plain import decode_answer, to_plain

LOCALHOST = bytes([127, 0, 0, 1])
ANONYMOUS = b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0" + b"\0"
"""Kafka's own form of a principal: a version, a type, a name, whether a token stood for it."""
CREATE_TOPICS = 19
VERSIONED = re.compile(r"\w+ v\d+")


def send(
    talk: ClusterTalk,
    version: int,
    what: str,
    inner: bytes,
    *,
    at: int | None = None,
    principal: bytes | None = ANONYMOUS,
    address: bytes = LOCALHOST,
) -> None:
    """An envelope with any content; `what` says in words, or as an API and version, what it is."""
    talk.label(ANONYMOUS, "User:ANONYMOUS")
    talk.label(LOCALHOST, "127.0.0.1")
    talk.ask(
        "Envelope",
        version,
        on=controller(talk.active_controller() if at is None else at),
        shown=opened(what, inner),
        request_data=talk.label(inner, what) if inner else inner,
        request_principal=principal,
        client_host_address=address,
    )


def opened(what: str, asked: bytes) -> Callable[[Any], Any]:
    """The answer with what is in it, if it is an answer to the API that was asked."""

    def show(plain: Any) -> Any:
        inner = plain["response_data"]
        if inner is None or not VERSIONED.fullmatch(what):
            return plain
        api, inner_version = what.split(" v")
        answer = to_plain(decode_answer(api, int(inner_version), inner), int(inner_version))
        is_for_it = inner[:4] == asked[4:8]  # the correlation id
        return {**plain, "response_data": {"is_for_the_request": is_for_it, "answer": answer}}

    return show


def creation(talk: ClusterTalk, version: int, short: str = "t") -> bytes:
    """A whole CreateTopics request."""
    topic = {"name": talk.name(short), "num_partitions": 1, "replication_factor": 3}
    return talk.encoded("CreateTopics", version, topics=[topic], timeout_ms=10_000)


def others(talk: ClusterTalk) -> dict[str, bytes]:
    """Requests that no broker passes on."""
    return {
        "Metadata v12": talk.encoded("Metadata", 12, topics=[]),
        "ApiVersions v0": talk.encoded("ApiVersions", 0),
        "AlterPartition v3": talk.encoded("AlterPartition", 3, broker_id=1),
        "Envelope v0": talk.encoded("Envelope", 0, request_data=b"x", request_principal=None),
    }


def nonsense(talk: ClusterTalk) -> dict[str, bytes]:
    """What is no request, or none that anybody could read to its end."""
    whole = creation(talk, 7)
    unknown = talk.header(999, 0, flexible=False)
    return {
        "nothing": b"",
        "three bytes": whole[:3],
        "half a header": whole[:9],
        "no such API": unknown,
        "an API that is gone": talk.header(4, 0, flexible=False),
        "half a body": whole[:-4],
        "a version to come": talk.header(CREATE_TOPICS, 99, flexible=True) + b"\0" * 20,
        "a version that is gone": talk.header(CREATE_TOPICS, 1, flexible=False) + b"\0" * 20,
    }


@cluster_case("Envelope", 0)
def with_a_topic_to_create(talk: ClusterTalk, version: int) -> None:
    """The answer is in the answer, with its header; in every version that the inner one has."""
    for inner_version in (2, 4, 7):
        inner = creation(talk, inner_version, short=f"v{inner_version}")
        send(talk, version, f"CreateTopics v{inner_version}", inner)
        send(talk, version, f"CreateTopics v{inner_version}", inner)


@cluster_case("Envelope", 0)
def with_other_requests_that_brokers_pass_on(talk: ClusterTalk, version: int) -> None:
    """Whatever only the active controller decides comes this way."""
    missing = talk.name("missing")
    for api, inner_version, fields in (
        ("DeleteTopics", 6, {"topics": [{"name": missing}], "timeout_ms": 10_000}),
        ("CreatePartitions", 3, {"topics": [{"name": missing, "count": 2}], "timeout_ms": 10_000}),
        ("ElectLeaders", 2, {"topic_partitions": [{"topic": missing, "partitions": [0]}]}),
        ("ListPartitionReassignments", 0, {"topics": [], "timeout_ms": 10_000}),
        ("UnregisterBroker", 0, {"broker_id": 99}),
    ):
        inner = talk.encoded(api, inner_version, **fields)
        send(talk, version, f"{api} v{inner_version}", inner)


@cluster_case("Envelope", 0)
def with_requests_that_nobody_passes_on(talk: ClusterTalk, version: int) -> None:
    """A controller does not answer in a broker's stead."""
    for what, inner in others(talk).items():
        send(talk, version, what, inner)


@cluster_case("Envelope", 0)
def with_nonsense(talk: ClusterTalk, version: int) -> None:
    """What cannot be read is refused, and the connection stays."""
    for what, inner in nonsense(talk).items():
        send(talk, version, what, inner)


@cluster_case("Envelope", 0)
def at_a_standby(talk: ClusterTalk, version: int) -> None:
    """A controller that is not active says so, if it can read what it is asked."""
    standby = talk.standby_controller()
    send(talk, version, "CreateTopics v7", creation(talk, 7), at=standby)
    quorum = [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]
    inner = talk.encoded("DescribeQuorum", 2, topics=quorum)
    send(talk, version, "DescribeQuorum v2", inner, at=standby)
    for what, inner in (others(talk) | nonsense(talk)).items():
        send(talk, version, what, inner, at=standby)


@cluster_case("Envelope", 0)
def without_a_sender(talk: ClusterTalk, version: int) -> None:
    """Nobody, somebody that cannot be read, and addresses that are none."""
    what = "ListPartitionReassignments v0"
    inner = talk.encoded("ListPartitionReassignments", 0, topics=[], timeout_ms=10_000)
    for principal in (None, b"", b"\0\0\xff\xff", b"\0\x09" + ANONYMOUS[2:]):
        send(talk, version, what, inner, principal=principal)
    for address in (b"", LOCALHOST + b"\x01"):
        send(talk, version, what, inner, address=address)
