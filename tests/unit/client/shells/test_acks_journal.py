"""The journal says what a producer was told, line by line."""

from __future__ import annotations

import hashlib
import io
import json

import pytest

from tidelog.client.producer.outcome import (
    SendOk,
    SendOutcome,
    SendRefused,
    SendTicket,
    SendUnknown,
)
from tidelog.client.shells.acks_journal import AcksJournal, OutcomeCounts, entry, text_of
from tidelog.core.model.ids import TopicPartition


def completed_ticket(outcome: SendOutcome, *, value: bytes | None = b"paid") -> SendTicket:
    ticket = SendTicket(
        "orders", value, key=b"k", wanted_index=2, headers=(), timestamp_ms=77, then=None
    )
    ticket.complete(outcome, 0)
    return ticket


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (SendOk(12), ("ok", 12, None, None)),
        (SendOk(None), ("ok", None, None, None)),
        (SendRefused("TIMED_OUT", "too late"), ("refused", None, "TIMED_OUT", "too late")),
        (SendUnknown("NETWORK_EXCEPTION", "cut"), ("unknown", None, "NETWORK_EXCEPTION", "cut")),
    ],
)
def test_a_line_says_what_was_told(
    outcome: SendOutcome, words: tuple[str, int | None, str | None, str | None]
) -> None:
    line = entry(3, completed_ticket(outcome), sent_us=5, answered_us=9)
    assert (line["outcome"], line["offset"], line["error"], line["reason"]) == words
    assert line["value_sha256"] == hashlib.sha256(b"paid").hexdigest()
    named = ("number", "key", "partition", "timestamp_ms", "sent_us", "answered_us")
    assert [line[name] for name in named] == [3, "k", 2, 77, 5, 9]


def test_the_partition_that_was_chosen_counts() -> None:
    ticket = completed_ticket(SendOk(0), value=None)
    ticket.partition = TopicPartition("orders", 4)
    line = entry(0, ticket, sent_us=0, answered_us=0)
    assert line["partition"] == 4 and line["value_sha256"] is None


def test_a_journal_begins_with_the_run_and_ends_with_the_counts() -> None:
    file = io.StringIO()
    journal, counts = AcksJournal(file), OutcomeCounts()
    journal.begin(run="r", topic="orders", topic_id="id", acks="all", is_idempotent=True)
    outcomes: list[SendOutcome] = [SendOk(0), SendRefused("A", "one"), SendRefused("A", "two")]
    for number, outcome in enumerate(outcomes):
        counts.add(outcome)
        journal.write_outcome(number, completed_ticket(outcome), sent_us=0, answered_us=1)
    counts.add(SendUnknown("B", "three"))
    journal.end(counts)

    first, *lines, last = [json.loads(line) for line in file.getvalue().splitlines()]
    assert (first["journal"], first["version"], first["acks"]) == ("tidelog-acks", 1, "all")
    assert [each["number"] for each in lines] == [0, 1, 2]
    assert last["end"] == {"ok": 1, "refused": 2, "unknown": 1, "errors": {"A": 2, "B": 1}}
    assert counts.reasons == {"A": "one", "B": "three"} and counts.total == 4


def test_bytes_that_are_no_text_say_so() -> None:
    assert [text_of(each) for each in (None, b"x", b"\xff")] == [None, "x", {"base64": "/w=="}]


def test_a_run_with_transactions_says_how_each_ended() -> None:
    file = io.StringIO()
    journal = AcksJournal(file)
    journal.begin(
        run="r",
        topic="orders",
        topic_id=None,
        acks="all",
        is_idempotent=True,
        transactional_id="shop-1",
    )
    journal.write_outcome(0, completed_ticket(SendOk(4)), sent_us=0, answered_us=1, transaction="1")
    journal.transaction_ended("1", "aborted", answered_us=2)

    first, counts, ended = [json.loads(line) for line in file.getvalue().splitlines()]
    assert first["transactional_id"] == "shop-1" and first["began_us"] > 0
    assert (counts["number"], counts["transaction"]) == (0, "1")
    assert ended == {"transaction": "1", "outcome": "aborted", "answered_us": 2}
