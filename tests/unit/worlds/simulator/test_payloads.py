"""Payloads come back as they were made, and damage shows."""

from __future__ import annotations

import pytest

from tidelog.core.wire.records import NewRecord, build
from tidelog.judge.history import Seen, Sequence32
from tidelog.worlds.simulator.payloads import from_value, read_answer, to_value


@pytest.mark.parametrize("size_bytes", [0, 1, 9, 100])
def test_a_payload_survives_its_value(size_bytes: int) -> None:
    value = to_value("plain-1.42", size_bytes)
    assert from_value(value) == "plain-1.42"
    assert len(value) >= size_bytes


def test_any_changed_byte_gives_a_name_that_nobody_wrote() -> None:
    value = to_value("a.1", 40)
    for position in range(len(value)):
        changed = bytearray(value)
        changed[position] ^= 1
        assert from_value(bytes(changed)) != "a.1"
    assert from_value(None) == "(null)"
    assert from_value(value[:2]).startswith("(garbled")


def test_an_answer_gives_whole_batches_and_their_numbers() -> None:
    numbered = build(
        [NewRecord(value=to_value(name, 0)) for name in ("a", "b")],
        base_offset=5,
        producer_id=7,
        producer_epoch=0,
        base_sequence=2**31 - 1,
    )
    plain = build([NewRecord(value=to_value("c", 0))], base_offset=7)

    seen, corrupt_offset = read_answer(bytes(numbered + plain + plain[:30]), next_offset=5)

    assert corrupt_offset is None
    assert seen == (
        Seen(5, "a", Sequence32(7, 0, 2**31 - 1)),
        Seen(6, "b", Sequence32(7, 0, 0)),
        Seen(7, "c"),
    )


def test_a_wrong_checksum_and_nonsense_are_named_by_their_offset() -> None:
    good = build([NewRecord(value=to_value("a", 0))], base_offset=5)
    bad = build([NewRecord(value=to_value("b", 0))], base_offset=6)
    bad[-1] ^= 1
    assert read_answer(bytes(good + bad), next_offset=5) == ((Seen(5, "a"),), 6)
    assert read_answer(bytes(good) + bytes(100), next_offset=5) == ((Seen(5, "a"),), 6)
