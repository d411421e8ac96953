"""`tidelog produce` on a real broker: records with all their parts, and an account of each."""

from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path

import pytest

from tests.process.client_verbs import CommandLine
from tests.process.fixtures import NewTopic
from tests.process.waiting import wait_until

WITHIN_S = 60.0


@pytest.fixture
def tidelog(bootstrap: str) -> CommandLine:
    return CommandLine(bootstrap)


def test_lines_with_keys_headers_and_nulls(tidelog: CommandLine, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    said = tidelog.ok(
        *("produce", topic, "--key-separator", ":", "--null-marker", "NULL", "--partition", "1"),
        *("--header", "from=here", "--header", "x=", "--compression", "zstd", "--json"),
        stdin="order-1:paid\norder-2:NULL\nNULL:nobody's\n",
    )
    assert said.errors.startswith("ok 3, refused 0, unknown 0; ")
    told = said.document
    assert (told["topic"], told["sent"], told["ok"], told["errors"]) == (topic, 3, 3, {})

    records = tidelog.ok("consume", topic, "--exit", "--json").lines
    assert [(each["key"], each["value"]) for each in records] == [
        ("order-1", "paid"),
        ("order-2", None),
        (None, "nobody's"),
    ]
    assert {each["partition"] for each in records} == {1}
    assert all(each["headers"] == [["from", "here"], ["x", ""]] for each in records)
    assert [each["sequence"] for each in records] == [0, 1, 2], "idempotent by default"


def test_a_file_with_bytes_that_are_no_text(
    tidelog: CommandLine, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    file = tmp_path / "lines"
    file.write_bytes(b"caf\xe9\r\n\nlast")
    tidelog.ok("produce", topic, "--file", str(file), "--acks", "1")
    records = tidelog.ok("consume", topic, "--exit", "--json").lines
    assert [each["value"] for each in records] == [{"base64": "Y2Fm6Q=="}, "", "last"]
    assert records[0]["producer_id"] is None, "acks=1 is not idempotent"


def test_generated_load_and_its_journal(
    tidelog: CommandLine, new_topic: NewTopic, tmp_path: Path
) -> None:
    """The journal and the log tell the same story, record by record."""
    topic = new_topic(partitions=3)
    journal = tmp_path / "acks.jsonl"
    said = tidelog.ok(
        *("produce", topic, "--count", "500", "--size", "64", "--rate", "2000"),
        *("--linger-ms", "1", "--journal", str(journal), "--json"),
    )
    assert said.document["ok"] == 500 and said.document["bytes"] == 500 * 64

    begin, *lines, end = [json.loads(line) for line in journal.read_text().splitlines()]
    assert (begin["journal"], begin["topic"], begin["acks"]) == ("tidelog-acks", topic, "all")
    assert begin["idempotence"] is True
    assert end["end"] == {"ok": 500, "refused": 0, "unknown": 0, "errors": {}}
    assert sorted(each["number"] for each in lines) == list(range(500))
    assert all(each["sent_us"] <= each["answered_us"] for each in lines)

    records = tidelog.ok("consume", topic, "--exit", "--json").lines
    in_log = {
        (each["partition"], each["offset"]): hashlib.sha256(each["value"].encode()).hexdigest()
        for each in records
    }
    assert in_log == {(each["partition"], each["offset"]): each["value_sha256"] for each in lines}

    tidelog.ok("produce", topic, "--count", "1", "--journal", str(journal))
    assert len(journal.read_text().splitlines()) == 505, "a second run is added"


def test_without_acks_nobody_says_where_it_went(
    tidelog: CommandLine, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    journal = tmp_path / "acks.jsonl"
    tidelog.ok("produce", topic, "--acks", "0", "--count", "1", "--journal", str(journal))
    told = json.loads(journal.read_text().splitlines()[1])
    assert (told["outcome"], told["offset"]) == ("ok", None)


def test_refused_records_are_counted_and_the_code_is_1(
    tidelog: CommandLine, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic(max_message_bytes="1000")
    journal = tmp_path / "acks.jsonl"
    said = tidelog(
        "produce", topic, "--count", "2", "--size", "5000", "--json", "--journal", str(journal)
    )
    assert said.code == 1
    assert said.document["refused"] == 2
    assert said.document["errors"] == {"MESSAGE_TOO_LARGE": 2}
    assert "tidelog produce: MESSAGE_TOO_LARGE (2 of 2 records): " in said.errors
    assert "ok 0, refused 2, unknown 0; " in said.errors
    lines = [json.loads(line) for line in journal.read_text().splitlines()[1:-1]]
    assert {(each["outcome"], each["error"]) for each in lines} == {
        ("refused", "MESSAGE_TOO_LARGE")
    }


def test_a_bad_line_ends_it_after_what_came_before(
    tidelog: CommandLine, new_topic: NewTopic
) -> None:
    topic = new_topic()
    said = tidelog("produce", topic, "--key-separator", "::", stdin="a::1\nb:2\nc::3\n")
    assert said.code == 1
    assert "tidelog produce: line 2 has no '::' between key and value" in said.errors
    assert "ok 1, refused 0, unknown 0; " in said.errors
    assert tidelog.ok("consume", topic, "--exit").output == "1\n"


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("--partition", "7"), 1, "UNKNOWN_TOPIC_OR_PARTITION: {} has only partition 0, not 7"),
        (("--producer-property", "no.such=1"), 2, "no.such is not a setting of this client"),
        (("--acks", "1", "--idempotence"), 2, "acks must be all with enable.idempotence"),
        (("--journal", "no/such/directory/file"), 2, "--journal: "),
        (("--transactional-id", "x"), 2, "--transactional-id needs --transaction N"),
        (("--transaction", "5", "--acks", "1"), 2, "transactional.id needs enable.idempotence"),
        (
            ("--producer-property", "transactional.id=x"),
            2,
            "transactional.id and --transaction N go together",
        ),
    ],
)
def test_mistakes(
    tidelog: CommandLine,
    new_topic: NewTopic,
    arguments: tuple[str, ...],
    code: int,
    complaint: str,
) -> None:
    topic = new_topic()
    said = tidelog("produce", topic, "--count", "1", *arguments)
    assert said.code == code
    assert said.errors.startswith(f"tidelog produce: {complaint.format(topic)}"), said.errors


def test_writing_creates_no_topic(tidelog: CommandLine) -> None:
    said = tidelog("produce", "never-made", stdin="x\n")
    assert said.code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION: topic never-made does not exist" in said.errors
    listed = tidelog.ok("topic", "list", "--json").document["topics"]
    assert "never-made" not in [each["topic"] for each in listed]


def test_ctrl_c_reports_what_was_sent(
    tidelog: CommandLine, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Its input is still open: the signal ends the reading, not the sending."""
    topic = new_topic()
    process = tidelog.start("produce", topic, "--json", "--journal", "acks", directory=tmp_path)
    assert process.stdin is not None
    process.stdin.write(b"one\ntwo\n")
    process.stdin.flush()
    journal = tmp_path / "acks"
    wait_until(
        lambda: journal.exists() and len(journal.read_text().splitlines()) == 3,
        "two outcomes",
        within_s=WITHIN_S,
    )
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, errors
    assert b"interrupted" in errors and b"ok 2, refused 0, unknown 0; " in errors
    assert json.loads(output)["ok"] == 2
    assert "end" in json.loads(journal.read_text().splitlines()[-1])


def test_transactions_are_read_whole_or_not_at_all(
    tidelog: CommandLine, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic(partitions=2)
    journal = tmp_path / "acks.jsonl"
    said = tidelog.ok(
        *("produce", topic, "--count", "25", "--transaction", "10"),
        *("--journal", str(journal), "--json"),
    )
    assert said.errors.startswith("ok 25, refused 0, unknown 0; 3 transactions committed; ")
    assert said.document["transactions"] == {"committed": 3, "aborted": 0, "unknown": 0}
    lines = [json.loads(line) for line in journal.read_text().splitlines()[1:-1]]
    ends = [each["outcome"] for each in lines if "number" not in each]
    assert ends == ["committed"] * 3

    process = tidelog.start("produce", topic, "--transaction", "10")
    assert process.stdin is not None
    process.stdin.write(b"one\ntwo\n")
    process.stdin.flush()
    consume = ("consume", topic, "--exit", "--json")
    wait_until(
        lambda: len(tidelog.ok(*consume).lines) == 27,
        "records of the open transaction",
        within_s=WITHIN_S,
    )
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 1, errors
    assert b"ok 0, refused 2, unknown 0; 0 transactions committed, 1 aborted; " in errors
    assert len(tidelog.ok(*consume, "--isolation-level", "read_committed").lines) == 25
