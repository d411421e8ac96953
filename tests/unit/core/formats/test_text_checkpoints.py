"""Text checkpoints: what is complete is read exactly, what is not is noticed or left out."""

from __future__ import annotations

import pytest

from tidelog.core.formats.text_checkpoints import (
    CorruptCheckpoint,
    decode_offsets,
    encode_offsets,
    lines_so_far,
    parse_leader_epoch,
    parse_offset,
    write_lines,
)
from tidelog.core.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 3)


def test_offsets_come_back_as_they_were_written() -> None:
    offsets = {ORDERS: 7, TopicPartition("a-b", 0): 0}

    assert decode_offsets(encode_offsets(offsets)) == offsets
    assert decode_offsets(b"") == {}


@pytest.mark.parametrize(
    "content",
    [b"0\n1\norders 3 7", b"0\n2\norders 3 7\n", b"1\n0\n", b"\0\0", write_lines(["orders 3"])],
    ids=["torn", "fewer lines", "another version", "zeros", "no offset"],
)
def test_a_checkpoint_that_was_not_written_to_its_end_is_noticed(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        decode_offsets(content)


def test_whoever_reads_beside_a_broker_takes_the_lines_that_are_there() -> None:
    assert lines_so_far(b"0\n2\norders 3 7\norde") == ["orders 3 7", "orde"]
    assert lines_so_far(b"") == []
    assert parse_offset("orders 3 7") == (ORDERS, 7)
    assert parse_offset("orde") is None
    assert parse_leader_epoch("4 90") == (4, 90)
    assert parse_leader_epoch("4") is None
