"""Where reading begins and ends, and how a record looks."""

from __future__ import annotations

import json

import pytest

from tidelog.cli.consume.plan import Reading, as_json_line, as_line, first_offset, print_fields
from tidelog.cli.option_values import EARLIEST, LATEST, Start
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.core.model.ids import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def record(partition: TopicPartition, offset: int) -> ConsumerRecord:
    return ConsumerRecord(
        partition, offset, 5, 1_000, b"k", b"v", [("h", b"1"), ("n", None)], 7, 0, 3
    )


@pytest.mark.parametrize(
    ("start", "first"),
    [
        (EARLIEST, 10),
        (LATEST, 20),
        (Start(before_end=3), 17),
        (Start(before_end=99), 10),
        (Start(offset=10), 10),
        (Start(offset=20), 20),
    ],
)
def test_the_first_offset(start: Start, first: int) -> None:
    assert first_offset(start, log_start_offset=10, end_offset=20) == first


@pytest.mark.parametrize("offset", [9, 21])
def test_an_offset_outside_is_refused(offset: int) -> None:
    with pytest.raises(ValueError, match=f"offset {offset} is not between 10 and 20"):
        first_offset(Start(offset=offset), log_start_offset=10, end_offset=20)


def test_a_partition_is_read_up_to_its_end_and_not_beyond() -> None:
    reading = Reading({P0: 2, P1: 1})
    taken = reading.takes([record(P0, 0), record(P0, 1), record(P0, 2), record(P1, 0)])
    assert [(each.partition.index, each.offset) for each in taken] == [(0, 0), (0, 1), (1, 0)]
    assert reading.open_partitions({P0: 1, P1: 1}) == [P0]
    assert reading.open_partitions({P0: 3, P1: 1}) == [], "markers are behind the last record"


def test_without_an_end_it_is_followed() -> None:
    reading = Reading({P0: None})
    assert reading.takes([record(P0, 10**9)])
    assert reading.open_partitions({P0: 10**9 + 1}) == [P0]


def test_after_so_many_records_it_is_over() -> None:
    reading = Reading({P0: None, P1: None}, records_max=2)
    assert len(reading.takes([record(P0, 0), record(P1, 0), record(P0, 1)])) == 2
    assert reading.takes([record(P0, 2)]) == []
    assert reading.open_partitions({P0: 1, P1: 1}) == []


def test_a_log_that_was_cut_has_an_earlier_end() -> None:
    reading = Reading({P0: 10, P1: None})
    reading.shorten(P0, 7)
    reading.shorten(P1, 7)
    assert reading.end_of(P0) == 7 and reading.end_of(P1) is None
    reading.shorten(P0, 9)
    assert reading.end_of(P0) == 7


def test_a_line_has_the_fields_and_then_the_value() -> None:
    assert as_line(record(P0, 4), ()) == b"v\n"
    fields = print_fields("topic,partition,offset,epoch,timestamp,key,headers")
    assert as_line(record(P0, 4), fields) == b"orders\t0\t4\t5\t1000\tk\th=1,n=null\tv\n"
    bare = record(P0, 4)._replace(key=None, value=None, leader_epoch=None)
    assert as_line(bare, ("key", "epoch")) == b"null\tnull\tnull\n"
    with pytest.raises(ValueError, match="'ofset' is none of topic"):
        print_fields("offset,ofset")


def test_a_json_line_says_which_bytes_are_no_text() -> None:
    told = json.loads(as_json_line(record(P1, 4)._replace(value=b"\xff", key="é".encode())))
    assert told == {
        "topic": "orders",
        "partition": 1,
        "offset": 4,
        "leader_epoch": 5,
        "timestamp_ms": 1_000,
        "key": "é",
        "value": {"base64": "/w=="},
        "headers": [["h", "1"], ["n", None]],
        "producer_id": 7,
        "producer_epoch": 0,
        "sequence": 3,
    }
