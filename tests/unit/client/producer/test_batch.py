"""Batches: how large they are, what their parts are, and numbers that wrap."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.client.producer.batch import (
    BatchSequence,
    ProducerBatch,
    record_bytes_max,
)
from tidelog.client.producer.outcome import SendOk, SendRefused, SendTicket, SendUnknown
from tidelog.client.producer.sequences import Sequences, sequence_after
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.wire.compression import Compression
from tidelog.core.wire.record_batch import read_header
from tidelog.core.wire.records import iterate

P0 = TopicPartition("t", 0)
IDENTITY = ProducerIdAndEpoch(7, 0)


def ticket(value: bytes | None, **more: object) -> SendTicket:
    wanted = {"key": None, "headers": (), "timestamp_ms": 0, **more}
    return SendTicket("t", value, wanted_index=0, then=None, **wanted)  # type: ignore[arg-type]


def batch_of(*tickets: SendTicket, batch_size: int = 1 << 30) -> ProducerBatch:
    batch = ProducerBatch(P0, reserved_bytes=0, now_ms=0)
    for each in tickets:
        assert batch.try_append(each, batch_size=batch_size)
    return batch


a_ticket = st.builds(
    ticket,
    st.none() | st.binary(max_size=300),
    key=st.none() | st.binary(max_size=200),
    headers=st.lists(st.tuples(st.text(max_size=70), st.none() | st.binary(max_size=70))),
    timestamp_ms=st.integers(0, 2**40),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(a_ticket, min_size=1, max_size=80))
def test_a_batch_knows_its_size_without_being_built(tickets: list[SendTicket]) -> None:
    batch = batch_of(*tickets)
    assert batch.size_bytes == len(batch.encoded(Compression.NONE))


@settings(max_examples=60, deadline=None)
@given(a_ticket)
def test_a_record_alone_is_never_larger_than_it_was_said_to_be(one: SendTicket) -> None:
    assert len(batch_of(one).encoded(Compression.NONE)) <= record_bytes_max(one)


def test_a_batch_takes_its_first_record_whatever_its_size_and_then_no_more_than_fit() -> None:
    batch = ProducerBatch(P0, reserved_bytes=0, now_ms=0)
    assert batch.try_append(ticket(b"x" * 500), batch_size=100)
    assert batch.is_closed
    assert not batch.try_append(ticket(b"y"), batch_size=100)
    assert batch.count == 1


def test_parts_have_the_same_records_in_the_same_order_and_share_the_numbers() -> None:
    whole = batch_of(*(ticket(bytes([each]) * 100) for each in range(10)))
    sequences = Sequences()
    sequences.identify(IDENTITY)
    sequences.leave(whole)
    parts = whole.parts(batch_size=400)
    sequences.split(whole, parts)

    values = [record.value for part in parts for record in iterate(part.encoded(Compression.NONE))]
    assert values == [bytes([each]) * 100 for each in range(10)]
    headers = [read_header(part.encoded(Compression.NONE)) for part in parts]
    assert len(parts) > 2 and [header.base_sequence for header in headers] == [
        sum(part.count for part in parts[:place]) for place in range(len(parts))
    ]
    sequences.check()


@pytest.mark.parametrize(
    ("sequence", "count", "expected"),
    [(0, 5, 5), (2**31 - 1, 1, 0), (2**31 - 3, 5, 2)],
)
def test_sequences_wrap_to_zero(sequence: int, count: int, expected: int) -> None:
    assert sequence_after(sequence, count) == expected


def test_acknowledgements_across_the_wrap_leave_no_gap() -> None:
    sequences = Sequences()
    sequences.identify(IDENTITY)
    first, second = batch_of(ticket(b"a"), ticket(b"b")), batch_of(ticket(b"c"))
    sequences.leave(first)
    known = sequences._partitions[P0]
    first.number(BatchSequence(IDENTITY, 2**31 - 1))
    known.next_sequence, known.acked_end = 1, 2**31 - 1
    sequences.leave(second)
    assert second.numbered == BatchSequence(IDENTITY, 1)

    sequences.completed(first)
    sequences.given_up(second)
    assert known.acked_end == 1
    assert sequences.heal() == (P0,), "the second left a gap"
    assert sequences.identity == ProducerIdAndEpoch(7, 1)


def test_only_the_first_in_line_is_retried_and_new_ones_wait_for_the_unresolved() -> None:
    sequences = Sequences()
    sequences.identify(IDENTITY)
    one, two, three = (batch_of(ticket(b"x")) for _ in range(3))
    sequences.leave(one)
    sequences.leave(two)

    assert sequences.may_leave(one) and not sequences.may_leave(two)
    assert sequences.may_leave(three), "new ones may follow"
    sequences.given_up(one)
    assert sequences.may_leave(two) and not sequences.may_leave(three)
    sequences.completed(two)
    assert sequences.heal() == () and sequences.may_leave(three), "it had been written after all"


def test_five_are_in_flight_at_most() -> None:
    sequences = Sequences()
    sequences.identify(IDENTITY)
    for _ in range(5):
        sequences.leave(batch_of(ticket(b"x")))
    assert not sequences.may_leave(batch_of(ticket(b"x")))


def test_an_out_of_order_batch_waits_for_those_before_it_and_is_a_gap_if_there_are_none() -> None:
    out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    sequences = Sequences()
    sequences.identify(IDENTITY)
    one, two = batch_of(ticket(b"x")), batch_of(ticket(b"y"))
    sequences.leave(one)
    sequences.leave(two)

    assert sequences.may_retry(two, out_of_order) and sequences.heal() == ()
    assert sequences.may_retry(one, out_of_order) and sequences.heal() == (P0,)
    assert one.numbered == BatchSequence(ProducerIdAndEpoch(7, 1), 0)
    assert two.numbered == BatchSequence(ProducerIdAndEpoch(7, 1), 1)
    assert sequences.may_retry(two, out_of_order) and sequences.heal() == (), "still the old bytes"


def test_outcomes_tell_what_is_certain() -> None:
    written, refused, unknown = ticket(b"a"), ticket(b"b"), ticket(b"c")
    batch_of(written).done(base_offset=5, append_time_ms=9, now_ms=0)
    batch_of(refused).failed("E", "why", 0)
    doubtful = batch_of(unknown)
    doubtful.may_be_written = True
    doubtful.failed("E", "why", 0)

    assert written.outcome == SendOk(5, 9)
    assert refused.outcome == SendRefused("E", "why")
    assert unknown.outcome == SendUnknown("E", "why")
