"""`tidelog consume` on a real broker: where it begins, where it ends, and what it shows."""

from __future__ import annotations

import signal
from datetime import UTC, datetime

import pytest

from tests.process.client_verbs import CommandLine, next_line
from tests.process.fixtures import NewTopic
from tests.process.wire import WireClient

WITHIN_S = 60.0


@pytest.fixture
def tidelog(bootstrap: str) -> CommandLine:
    return CommandLine(bootstrap)


@pytest.fixture
def numbers(tidelog: CommandLine, new_topic: NewTopic) -> str:
    """A topic with 0 to 9 in partition 0, and `x` in partition 1."""
    topic = new_topic(partitions=2)
    lines = "".join(f"k{number}:{number}\n" for number in range(10))
    tidelog.ok("produce", topic, "--partition", "0", "--key-separator", ":", stdin=lines)
    tidelog.ok("produce", topic, "--partition", "1", stdin="x\n")
    return topic


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("--partition 0 --exit", "0123456789"),
        ("--partition 0 --exit --from-beginning", "0123456789"),
        ("--partition 0,1 --exit --offset -1", "9x"),
        ("--partition 0 --exit --offset 7", "789"),
        ("--partition 0 --exit --offset -3", "789"),
        ("--partition 0 --exit --offset -99", "0123456789"),
        ("--partition 0 --exit --offset latest", ""),
        ("--partition 0 --exit --offset 10", ""),
        ("--partition 0 --max-messages 3", "012"),
        ("--partition 0 --offset 4 --max-messages 2", "45"),
        ("--partition 0 --until-offset 4", "0123"),
        ("--partition 0 --offset 2 --until-offset 4", "23"),
        ("--partition 0 --exit --until-offset 99 --offset 8", "89"),
        ("--exit --until-offset 1", "0x"),
        ("--exit --isolation-level read_committed --partition 0", "0123456789"),
        ("--exit --from-time 2999-01-01T00:00:00Z", ""),
        ("--exit --from-time 0 --partition 1", "x"),
    ],
)
def test_where_it_begins_and_ends(
    tidelog: CommandLine, numbers: str, arguments: str, shown: str
) -> None:
    said = tidelog.ok("consume", numbers, *arguments.split())
    assert sorted(said.output.split()) == list(shown) and not said.errors


def test_from_a_time(tidelog: CommandLine, numbers: str) -> None:
    """The time of the record in the middle, as milliseconds and as a date."""
    records = tidelog.ok("consume", numbers, "--partition", "0", "--exit", "--json").lines
    middle_ms = records[5]["timestamp_ms"]
    wanted = [each["value"] for each in records if each["timestamp_ms"] >= middle_ms]
    date = datetime.fromtimestamp(middle_ms / 1_000, UTC).isoformat(timespec="milliseconds")
    for text in (str(middle_ms), date):
        said = tidelog.ok("consume", numbers, "--partition", "0", "--exit", "--from-time", text)
        assert said.output.split() == wanted


def test_what_is_printed(tidelog: CommandLine, numbers: str) -> None:
    only = ("consume", numbers, "--partition", "0", "--until-offset", "1")
    assert tidelog.ok(*only, "--print", "partition,offset,epoch,key").output == "0\t0\t0\tk0\t0\n"
    [told] = tidelog.ok(*only, "--json").lines
    named = ("topic", "partition", "offset", "leader_epoch", "key", "value", "headers", "sequence")
    assert [told[name] for name in named] == [numbers, 0, 0, 0, "k0", "0", [], 0]


def test_a_rack_and_settings_of_the_client_are_taken(tidelog: CommandLine, numbers: str) -> None:
    said = tidelog.ok(
        *("consume", numbers, "--exit", "--client-rack", "a"),
        *("--consumer-property", "max.poll.records=1", "--consumer-property", "check.crcs=false"),
    )
    assert len(said.output.split()) == 11


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("--partition", "2"), 1, "UNKNOWN_TOPIC_OR_PARTITION: {} has partitions 0 to 1, not 2"),
        (("--offset", "11", "--partition", "0"), 1, "OFFSET_OUT_OF_RANGE: {}-0: offset 11 is not"),
        (("--group", "g", "--partition", "0"), 2, "--group: no --partition"),
        (("--group-protocol", "consumer"), 2, "--group-protocol: only with --group"),
        (("--consumer-property", "group.id=g"), 2, "group.id is not a setting of this client"),
    ],
)
def test_mistakes(
    tidelog: CommandLine, numbers: str, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    said = tidelog("consume", numbers, "--exit", *arguments)
    assert said.code == code and not said.output
    assert said.errors.startswith(f"tidelog consume: {complaint.format(numbers)}"), said.errors


def test_reading_creates_no_topic(tidelog: CommandLine) -> None:
    said = tidelog("consume", "never-made")
    assert said.code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION: topic never-made does not exist" in said.errors


def test_deleted_records_are_no_longer_the_beginning(
    tidelog: CommandLine, numbers: str, wire: WireClient
) -> None:
    wire.ask(
        "DeleteRecords",
        2,
        topics=[{"name": numbers, "partitions": [{"partition_index": 0, "offset": 6}]}],
        timeout_ms=30_000,
    )
    said = tidelog.ok("consume", numbers, "--partition", "0", "--exit")
    assert said.output.split() == ["6", "7", "8", "9"]
    refused = tidelog("consume", numbers, "--partition", "0", "--exit", "--offset", "2")
    assert refused.code == 1 and "offset 2 is not between 6 and 10" in refused.errors


def test_it_follows_until_ctrl_c(tidelog: CommandLine, numbers: str) -> None:
    """What is written while it reads is shown at once; the signal is its normal end."""
    process = tidelog.start("consume", numbers, "--partition", "1")
    assert next_line(process) == b"x\n"
    tidelog.ok("produce", numbers, "--partition", "1", stdin="later\n")
    assert next_line(process) == b"later\n"
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, rest, errors) == (0, b"", b"")


def test_a_reader_that_went_away_ends_it_quietly(tidelog: CommandLine, numbers: str) -> None:
    """`| head -1`: the next record that comes finds nobody."""
    process = tidelog.start("consume", numbers, "--partition", "1")
    assert next_line(process) == b"x\n"
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    tidelog.ok("produce", numbers, "--partition", "1", stdin="unheard\n")
    assert process.wait(WITHIN_S) == 0
    with process.stderr as errors:
        assert errors.read() == b""
