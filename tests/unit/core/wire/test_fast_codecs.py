"""The hand-written Produce and Fetch say exactly what their schema tables say."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.wire.any_message import structs
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.fast_fields import Endpoint
from tidelog.core.wire.fetch_fast import (
    NEW_LEADERS_FROM,
    UNKNOWN_HIGH_WATERMARK,
    FetchPartitionAnswer,
    decode_fetch,
    encode_fetch_answer,
)
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.messages.api_00_produce import ProduceRequest, ProduceResponse
from tidelog.core.wire.messages.api_01_fetch import FetchRequest, FetchResponse
from tidelog.core.wire.produce_fast import (
    ProducePartitionAnswer,
    decode_produce,
    encode_produce_answer,
)
from tidelog.core.wire.schema import ZERO_UUID

few = settings(max_examples=12)
PRODUCE = range(3, 14)
FETCH = range(4, 19)


def topic_of(item: Any, version: int, *, ids_from: int = 13) -> Any:
    name = item.name if hasattr(item, "name") else item.topic
    return item.topic_id if version >= ids_from else name


@pytest.mark.parametrize("version", PRODUCE)
@few
@given(data=st.data())
def test_produce_requests_decode_as_their_schema_does(version: int, data: st.DataObject) -> None:
    message = data.draw(structs(ProduceRequest, version))
    call = decode_produce(memoryview(encode(message, version)), version)

    assert call.transactional_id == message.transactional_id
    assert (call.acks, call.timeout_ms) == (message.acks, message.timeout_ms)
    expected = [
        (topic_of(t, version), [(p.index, p.records) for p in t.partition_data])
        for t in message.topic_data
    ]
    assert call.topics == expected


@pytest.mark.parametrize("version", PRODUCE)
@few
@given(data=st.data())
def test_produce_answers_encode_as_their_schema_does(version: int, data: st.DataObject) -> None:
    message = data.draw(structs(ProduceResponse, version))
    message.throttle_time_ms = 0
    topics = []
    for topic in message.responses:
        answers = []
        for p in topic.partition_responses:
            leader = (p.current_leader.leader_id, p.current_leader.leader_epoch)
            errors = [(e.batch_index, e.batch_index_error_message) for e in p.record_errors]
            answers.append(
                ProducePartitionAnswer(
                    p.index, p.error_code, p.base_offset, p.log_append_time_ms,
                    p.log_start_offset, p.error_message, errors,
                    None if leader == (-1, -1) else leader,
                )
            )  # fmt: skip
        topics.append((topic_of(topic, version), answers))
    endpoints = [Endpoint(e.node_id, e.host, e.port, e.rack) for e in message.node_endpoints]

    assert encode_produce_answer(topics, version, endpoints=endpoints) == encode(message, version)


@pytest.mark.parametrize("version", FETCH)
@few
@given(data=st.data())
def test_fetch_requests_decode_as_their_schema_does(version: int, data: st.DataObject) -> None:
    message = data.draw(structs(FetchRequest, version))
    call = decode_fetch(memoryview(encode(message, version)), version)

    replica_id = message.replica_state.replica_id if version >= 15 else message.replica_id
    assert call.replica_id == replica_id
    assert call.replica_epoch == message.replica_state.replica_epoch
    assert call[2:8] == (
        message.max_wait_ms, message.min_bytes, message.max_bytes,
        message.isolation_level, message.session_id, message.session_epoch,
    )  # fmt: skip
    expected = []
    for topic in message.topics:
        partitions = [
            (p.partition, p.current_leader_epoch, p.fetch_offset, p.last_fetched_epoch,
             p.log_start_offset, p.partition_max_bytes,
             None if p.replica_directory_id == ZERO_UUID else p.replica_directory_id,
             None if p.high_watermark == UNKNOWN_HIGH_WATERMARK else p.high_watermark)
            for p in topic.partitions
        ]  # fmt: skip
        expected.append((topic_of(topic, version), partitions))
    assert call.topics == expected
    assert call.forgotten == [
        (topic_of(t, version), t.partitions) for t in message.forgotten_topics_data
    ]
    assert (call.rack_id, call.cluster_id) == (message.rack_id, message.cluster_id)


@pytest.mark.parametrize("version", FETCH)
@few
@given(data=st.data())
def test_fetch_answers_encode_as_their_schema_does(version: int, data: st.DataObject) -> None:
    message = data.draw(structs(FetchResponse, version))
    message.throttle_time_ms = 0
    topics = []
    for topic in message.responses:
        answers = []
        for p in topic.partitions:
            if p.records is None:
                p.records = b""
            if version < NEW_LEADERS_FROM:
                p.current_leader.leader_id = p.current_leader.leader_epoch = -1
            leader = (p.current_leader.leader_id, p.current_leader.leader_epoch)
            diverging = (p.diverging_epoch.epoch, p.diverging_epoch.end_offset)
            snapshot = (p.snapshot_id.end_offset, p.snapshot_id.epoch)
            aborted = p.aborted_transactions
            answers.append(
                FetchPartitionAnswer(
                    p.partition_index, p.error_code, p.high_watermark, p.last_stable_offset,
                    p.log_start_offset,
                    None if aborted is None else [(a.producer_id, a.first_offset) for a in aborted],
                    p.records, len(p.records),
                    None if diverging == (-1, -1) else diverging,
                    None if leader == (-1, -1) else leader,
                    p.preferred_read_replica,
                    None if snapshot == (-1, -1) else snapshot,
                )
            )  # fmt: skip
        topics.append((topic_of(topic, version), answers))
    endpoints = [Endpoint(e.node_id, e.host, e.port, e.rack) for e in message.node_endpoints]

    parts = encode_fetch_answer(
        topics,
        version,
        error_code=message.error_code,
        session_id=message.session_id,
        endpoints=endpoints,
    )
    assert b"".join(parts) == encode(message, version)  # type: ignore[arg-type]


def test_a_leader_is_named_only_where_its_address_can_be_told() -> None:
    answer = FetchPartitionAnswer(0, 6, -1, -1, -1, current_leader=(2, 5))

    for version in (15, 16):
        parts = encode_fetch_answer([(bytes(16), [answer])], version)
        body = memoryview(b"".join(parts))  # type: ignore[arg-type]
        leader = decode(FetchResponse, body, version).responses[0].partitions[0].current_leader
        assert leader.leader_id == (2 if version == 16 else -1)


DECODERS = [(decode_produce, ProduceRequest, v) for v in (3, 8, 9, 13)] + [
    (decode_fetch, FetchRequest, v) for v in (4, 7, 11, 12, 18)
]


@pytest.mark.parametrize(("decode_fast", "message", "version"), DECODERS)
@few
@given(data=st.data())
def test_a_request_cut_short_is_refused_and_bytes_after_its_end_are_ignored(
    decode_fast: Any, message: Any, version: int, data: st.DataObject
) -> None:
    frame = encode(data.draw(structs(message, version)), version)
    cut_at = data.draw(st.integers(0, len(frame) - 1))

    with pytest.raises(MalformedMessage):
        decode_fast(memoryview(frame[:cut_at]), version)

    whole = decode_fast(memoryview(frame), version)
    assert decode_fast(memoryview(frame + b"\0\xff\1"), version) == whole


@pytest.mark.parametrize(("decode_fast", "message", "version"), DECODERS)
@few
@given(data=st.data())
def test_a_changed_byte_is_refused_or_read_but_never_anything_else(
    decode_fast: Any, message: Any, version: int, data: st.DataObject
) -> None:
    frame = bytearray(encode(data.draw(structs(message, version)), version))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))

    with contextlib.suppress(MalformedMessage):
        decode_fast(memoryview(frame), version)


@pytest.mark.parametrize(("decode_fast", "version"), [(d, v) for d, _, v in DECODERS])
def test_a_count_that_cannot_fit_is_refused_before_anything_is_made(
    decode_fast: Any, version: int
) -> None:
    frame = memoryview(b"\xff\xff\xff\xff\x07" * 8)

    with pytest.raises(MalformedMessage):
        decode_fast(frame, version)
