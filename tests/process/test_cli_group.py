"""`tidelog group` and `tidelog consume --group` on three brokers."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.process.client_verbs import CommandLine, next_line
from tests.process.cluster import ProcessCluster
from tests.process.waiting import wait_until

WITHIN_S = 60.0
SHORT_SESSION = ("--consumer-property", "session.timeout.ms=6000")

pytestmark = pytest.mark.xdist_group("cli-group")  # one cluster, not one per worker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    # As the profile of `tidelog up` does: a group starts with its first member.
    settings = {"group.initial.rebalance.delay.ms": 0}
    directory = tmp_path_factory.mktemp("cluster")
    with ProcessCluster(directory=directory, settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def tidelog(cluster: ProcessCluster) -> CommandLine:
    return CommandLine(cluster.bootstrap_servers)


def make(tidelog: CommandLine, topic: str, *, partitions: int = 1, records: int = 0) -> None:
    tidelog.ok("topic", "create", topic, "--partitions", str(partitions))
    if records:
        write(tidelog, topic, range(records))


def write(tidelog: CommandLine, topic: str, numbers: range) -> None:
    lines = "".join(f"k{number}:{topic} {number}\n" for number in numbers)
    tidelog.ok("produce", topic, "--key-separator", ":", stdin=lines)


def read_once(tidelog: CommandLine, topic: str, group: str, *more: str) -> list[str]:
    """What a member reads up to the end that the topic has."""
    said = tidelog.ok("consume", topic, "--group", group, "--exit", *more)
    return said.output.splitlines()


def described(tidelog: CommandLine, group: str) -> Any:
    [found] = tidelog.ok("group", "describe", group, "--json").document["groups"]
    return found


def test_what_was_printed_is_committed(tidelog: CommandLine) -> None:
    """A group goes on where it was, and its lag says how much is left."""
    make(tidelog, "printed", partitions=2, records=6)
    assert len(read_once(tidelog, "printed", "mail", "--max-messages", "4")) == 4
    found = described(tidelog, "mail")
    assert (found["state"], found["lag"], found["members"]) == ("Empty", 2, [])
    assert sum(each["committed"] for each in found["partitions"]) == 4
    assert sum(each["log_end"] for each in found["partitions"]) == 6

    assert len(read_once(tidelog, "printed", "mail")) == 2
    assert read_once(tidelog, "printed", "mail") == []
    assert described(tidelog, "mail")["lag"] == 0
    assert len(read_once(tidelog, "printed", "other")) == 6
    assert read_once(tidelog, "printed", "late", "--offset", "latest") == []


def test_two_share_a_topic_and_one_is_killed(tidelog: CommandLine) -> None:
    """kill -9: after its session the other reads everything, from what was committed."""
    make(tidelog, "shared", partitions=4)
    arguments = ("consume", "shared", "--group", "both", "--json", *SHORT_SESSION)
    processes = [tidelog.start(*arguments) for _ in range(2)]
    try:
        wait_until(lambda: shares(tidelog, "both") == [2, 2], "both", within_s=WITHIN_S)
        write(tidelog, "shared", range(40))
        wait_until(
            lambda: described(tidelog, "both")["lag"] == 0, "everything read", within_s=WITHIN_S
        )
        killed, survivor = processes
        killed.kill()
        killed.wait()
        write(tidelog, "shared", range(40, 60))
        wait_until(lambda: shares(tidelog, "both") == [4], "the rest", within_s=WITHIN_S)
        wait_until(
            lambda: described(tidelog, "both")["lag"] == 0, "everything read", within_s=WITHIN_S
        )
        survivor.terminate()
        output, errors = survivor.communicate(timeout=WITHIN_S)
        assert survivor.returncode == 0, errors
        survivor_lines = [json.loads(line) for line in output.splitlines()]
        assert killed.stdout is not None
        killed_lines = [json.loads(line) for line in killed.stdout.read().splitlines()]
    finally:
        end(processes)
    seen = [{each["partition"] for each in lines} for lines in (killed_lines, survivor_lines)]
    assert seen[1] == {0, 1, 2, 3} and len(seen[0]) == 2
    values = [each["value"] for each in (*killed_lines, *survivor_lines)]
    assert sorted(set(values)) == sorted(f"shared {number}" for number in range(60))
    assert len(values) == 60, "nothing was read twice: all of it was committed before the kill"
    assert described(tidelog, "both")["state"] == "Empty"


def shares(tidelog: CommandLine, group: str) -> list[int]:
    """How many partitions each member has, if the group is stable."""
    said = tidelog("group", "describe", group, "--json")
    if said.code != 0:
        return []
    [found] = said.document["groups"]
    if found["state"] != "Stable":
        return []
    return sorted(len(each["partitions"]) for each in found["members"])


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    for each in processes:
        if each.poll() is None:
            each.kill()
        each.communicate()


def test_a_group_with_members_is_neither_reset_nor_deleted(tidelog: CommandLine) -> None:
    make(tidelog, "busy", records=3)
    member = tidelog.start("consume", "busy", "--group", "busy-group")
    try:
        assert next_line(member) == b"busy 0\n"
        to_earliest = ("group", "reset", "busy-group", "--topic", "busy", "--to-earliest")
        for more in ((), ("--execute",)):
            refused = tidelog(*to_earliest, *more)
            assert refused.code == 1
            assert refused.errors.startswith("tidelog group reset: NON_EMPTY_GROUP: ")
            assert len(refused.errors.splitlines()) == 1
        refused = tidelog("group", "delete", "busy-group")
        assert refused.code == 1
        said = "tidelog group delete: NON_EMPTY_GROUP: group busy-group has members"
        assert refused.errors.startswith(said)
        text = tidelog.ok("group", "describe", "busy-group").output
        assert "tidelog-consume" in text and "127.0.0.1" in text
        assert "busy-0" in tidelog.ok("group", "describe", "busy-group", "--members").output
        assert len(tidelog.ok("group", "describe", "busy-group", "--state").output.split("\n")) == 2
        member.terminate()
        _, errors = member.communicate(timeout=WITHIN_S)
        assert (member.returncode, errors) == (0, b"")
    finally:
        end([member])
    tidelog.ok("group", "delete", "busy-group")
    assert tidelog("group", "describe", "busy-group").code == 1


def test_reset(tidelog: CommandLine) -> None:
    """Each way to say where; without --execute nothing moves."""
    make(tidelog, "moved", records=10)
    read_once(tidelog, "moved", "mover")
    moment_ms = time.time_ns() // 1_000_000
    write(tidelog, "moved", range(10, 15))

    def reset(*more: str) -> Any:
        said = tidelog.ok("group", "reset", "mover", "--topic", "moved", *more, "--json").document
        [step] = said["partitions"]
        return step["new_offset"]

    def committed() -> int:
        [partition] = described(tidelog, "mover")["partitions"]
        found = partition["committed"]
        assert isinstance(found, int)
        return found

    assert reset("--to-earliest") == 0
    assert reset("--to-earliest", "--dry-run") == 0
    assert committed() == 10
    for more, offset in (
        (("--to-latest",), 15),
        (("--to-earliest",), 0),
        (("--to-offset", "7"), 7),
        (("--shift-by", "-3"), 4),
        (("--shift-by", "-30"), 0),
        (("--to-offset", "99"), 15),
        (("--to-datetime", str(moment_ms)), 10),
    ):
        assert reset(*more, "--execute") == offset, more
        assert committed() == offset, more
    assert len(read_once(tidelog, "moved", "mover")) == 5
    every = tidelog.ok("group", "reset", "mover", "--all-topics", "--shift-by", "-1", "--execute")
    assert "moved" in every.output
    assert len(read_once(tidelog, "moved", "mover")) == 1
    tidelog.ok("group", "reset", "born", "--topic", "moved:0", "--to-offset", "12", "--execute")
    assert len(read_once(tidelog, "moved", "born")) == 3


def test_list_and_delete(tidelog: CommandLine) -> None:
    make(tidelog, "listed", records=1)
    for group in ("list-a", "list-b"):
        read_once(tidelog, "listed", group)

    def names(*more: str) -> set[str]:
        groups = tidelog.ok("group", "list", *more, "--json").document["groups"]
        return {each["group"] for each in groups if each["group"].startswith("list-")}

    assert names() == names("--state", "Empty,Stable") == names("--type", "classic")
    assert names() == {"list-a", "list-b"}
    assert names("--state", "Stable") == names("--type", "share") == set()
    deleted = tidelog.ok("group", "delete", "list-a", "list-b", "--json").lines
    assert [each["deleted"] for each in deleted] == [True, True]
    assert names() == set()
    missing = tidelog("group", "delete", "list-a")
    assert missing.code == 1
    expected = "tidelog group delete: GROUP_ID_NOT_FOUND: group list-a does not exist\n"
    assert missing.errors == expected
    tidelog.ok("group", "delete", "--if-exists", "list-a")
