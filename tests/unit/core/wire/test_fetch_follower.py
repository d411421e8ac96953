"""The follower's side of Fetch says and hears exactly what the schema tables say."""

from __future__ import annotations

import contextlib
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.wire.any_message import full, structs
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.fast_fields import Endpoint
from tidelog.core.wire.fetch_fast import (
    UNKNOWN_HIGH_WATERMARK,
    FetchedPartition,
    decode_fetch,
    encode_fetch_answer,
)
from tidelog.core.wire.fetch_fast import FetchPartitionAnswer as LeaderAnswer
from tidelog.core.wire.fetch_follower import (
    AnsweredPartition,
    FetchAnswer,
    decode_fetch_answer,
    encode_fetch_call,
)
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.messages.api_01_fetch import FetchRequest, FetchResponse
from tidelog.core.wire.schema import ZERO_UUID
from tidelog.core.wire.varint import unsigned_varint

few = settings(max_examples=25)
CALLS = range(15, 19)
ANSWERS = range(13, 19)
TOPIC = bytes(range(16))


def unless(value: Any, absent: Any) -> Any:
    return None if value == absent else value


def encode_by_hand(message: Any, version: int) -> bytes:
    """The same request from plain values, as a follower has them."""
    topics = []
    for topic in message.topics:
        partitions = [
            FetchedPartition(
                p.partition, p.current_leader_epoch, p.fetch_offset, p.last_fetched_epoch,
                p.log_start_offset, p.partition_max_bytes,
                unless(p.replica_directory_id, ZERO_UUID),
                unless(p.high_watermark, UNKNOWN_HIGH_WATERMARK),
            )
            for p in topic.partitions
        ]  # fmt: skip
        topics.append((topic.topic_id, partitions))
    body = encode_fetch_call(
        topics,
        version,
        replica_id=message.replica_state.replica_id,
        replica_epoch=message.replica_state.replica_epoch,
        wait_ms_max=message.max_wait_ms,
        bytes_min=message.min_bytes,
        bytes_max=message.max_bytes,
        session_id=message.session_id,
        session_epoch=message.session_epoch,
        forgotten=[(t.topic_id, t.partitions) for t in message.forgotten_topics_data],
        cluster_id=message.cluster_id,
    )
    return bytes(body)


@pytest.mark.parametrize("version", CALLS)
@few
@given(data=st.data())
def test_a_followers_request_encodes_as_its_schema_does(version: int, data: st.DataObject) -> None:
    message = data.draw(structs(FetchRequest, version))
    message.isolation_level = 0
    message.rack_id = ""

    assert encode_by_hand(message, version) == encode(message, version)


@pytest.mark.parametrize(("version", "known"), [(17, None), (18, 7)])
def test_the_leader_reads_what_the_follower_wrote(version: int, known: int | None) -> None:
    """The high watermark travels from version 18 on; everything else is the same before."""
    partition = FetchedPartition(2, 5, 100, 4, 10, 1_000_000, b"d" * 16, 7)
    body = encode_fetch_call(
        [(TOPIC, [partition])],
        version,
        replica_id=3,
        replica_epoch=77,
        wait_ms_max=500,
        bytes_min=1,
        bytes_max=10_000_000,
        session_id=9,
        session_epoch=12,
        forgotten=[(TOPIC, [0, 1])],
        cluster_id="tide",
    )
    call = decode_fetch(memoryview(body), version)

    assert call == (
        3, 77, 500, 1, 10_000_000, 0, 9, 12,
        [(TOPIC, [partition._replace(high_watermark=known)])], [(TOPIC, [0, 1])], "", "tide",
    )  # fmt: skip


def plain_answer(message: Any) -> FetchAnswer:
    """What the generated codec read, in the shape of the decoder by hand."""
    topics = []
    for topic in message.responses:
        partitions = []
        for p in topic.partitions:
            aborted = p.aborted_transactions
            partitions.append(
                AnsweredPartition(
                    p.partition_index, p.error_code, p.high_watermark, p.last_stable_offset,
                    p.log_start_offset,
                    None if aborted is None else [(a.producer_id, a.first_offset) for a in aborted],
                    p.preferred_read_replica,
                    p.records,
                    unless((p.diverging_epoch.epoch, p.diverging_epoch.end_offset), (-1, -1)),
                    unless((p.current_leader.leader_id, p.current_leader.leader_epoch), (-1, -1)),
                    unless((p.snapshot_id.end_offset, p.snapshot_id.epoch), (-1, -1)),
                )
            )  # fmt: skip
        topics.append((topic.topic_id, partitions))
    endpoints = [Endpoint(e.node_id, e.host, e.port, e.rack) for e in message.node_endpoints]
    return FetchAnswer(
        message.throttle_time_ms, message.error_code, message.session_id, topics, endpoints
    )


@pytest.mark.parametrize("version", ANSWERS)
@few
@given(data=st.data())
def test_an_answer_decodes_as_its_schema_does(version: int, data: st.DataObject) -> None:
    message = data.draw(structs(FetchResponse, version))

    decoded = decode_fetch_answer(memoryview(encode(message, version)), version)

    assert decoded == plain_answer(message)


def test_the_follower_reads_what_the_leader_wrote() -> None:
    answer = LeaderAnswer(
        1, 0, 40, 30, 5, records=b"batch", records_bytes=5, diverging=(3, 25),
        current_leader=(2, 6), snapshot_id=(20, 2), preferred_read_replica=3,
    )  # fmt: skip
    endpoints = [Endpoint(2, "node-2", 9092, "rack-b")]
    parts = encode_fetch_answer(
        [(TOPIC, [answer])], 18, session_id=9, error_code=0, endpoints=endpoints
    )
    body = b"".join(parts)  # type: ignore[arg-type]

    answered = AnsweredPartition(
        1, 0, 40, 30, 5, None, 3, memoryview(b"batch"), (3, 25), (2, 6), (20, 2)
    )
    assert decode_fetch_answer(memoryview(body), 18) == (0, 0, 9, [(TOPIC, [answered])], endpoints)


def test_records_are_slices_of_the_answer() -> None:
    answer = LeaderAnswer(0, 0, 1, 1, 0, records=b"batch", records_bytes=5)
    parts = encode_fetch_answer([(TOPIC, [answer])], 18)
    body = bytearray(b"".join(parts))  # type: ignore[arg-type]
    ((_, (partition,)),) = decode_fetch_answer(memoryview(body), 18).topics
    assert partition.records is not None
    assert bytes(partition.records) == b"batch"

    start = body.index(b"batch")
    body[start : start + 5] = b"chalk"

    assert bytes(partition.records) == b"chalk"


@pytest.mark.parametrize("version", ANSWERS)
@few
@given(data=st.data())
def test_an_answer_cut_short_is_refused(version: int, data: st.DataObject) -> None:
    frame = encode(data.draw(structs(FetchResponse, version)), version)
    cut_at = data.draw(st.integers(0, len(frame) - 1))

    with pytest.raises(MalformedMessage):
        decode_fetch_answer(memoryview(frame[:cut_at]), version)


@pytest.mark.parametrize("version", ANSWERS)
@few
@given(data=st.data())
def test_a_changed_byte_is_refused_or_read_as_the_schema_reads_it(
    version: int, data: st.DataObject
) -> None:
    """Where both decoders accept the bytes, they hear the same."""
    frame = bytearray(encode(full(FetchResponse, version), version))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))

    with contextlib.suppress(MalformedMessage):
        by_hand = decode_fetch_answer(memoryview(frame), version)
        message = decode(FetchResponse, memoryview(frame), version)
        assert by_hand == plain_answer(message)


HUGE = unsigned_varint(2**31)
HEAD = bytes(10)
HOSTILE = [
    HEAD + HUGE,
    HEAD + b"\x02" + TOPIC + HUGE,
    HEAD + b"\x02" + TOPIC + b"\x02" + bytes(30) + HUGE,
    HEAD + b"\x02" + TOPIC + b"\x02" + bytes(30) + b"\x00" + bytes(4) + HUGE,
    HEAD + b"\x01" + HUGE,
    HEAD + b"\x01" + b"\x01\x00" + unsigned_varint(5) + HUGE,
]


@pytest.mark.parametrize("data", HOSTILE)
def test_a_hostile_count_or_length_allocates_nothing(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_fetch_answer(memoryview(data), 18)  # what the error needs is made once
    frame = memoryview(data + bytes(100_000))

    tracemalloc.start()
    with pytest.raises(MalformedMessage):
        decode_fetch_answer(frame, 18)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 10_000
