"""Log lines: events as text or JSON, one line each, not more than a stranger may cause."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.core.controller.events import ElectionKind, LeaderElected
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.events import LogDirectoryFailed, NodeStarted
from tidelog.worlds.runtime.events import ConnectionDropped, ConnectionOpened
from tidelog.worlds.runtime.log_lines import LogLines

LAST_KNOWN = ElectionKind.LAST_KNOWN
NOON_NS = 1_700_000_000_123_456_789


def lines_of(*events: object, form: str = "text", level: str = "info") -> list[str]:
    written: list[str] = []
    log = LogLines(
        form=form,
        level=level,
        write=written.append,
        wall_ns=lambda: NOON_NS,
        monotonic_ns=lambda: 5_000_999,
    )
    for event in events:
        log.emit(event)
    return written


def test_an_event_is_one_line_of_text() -> None:
    [line] = lines_of(NodeStarted(node_id=1, topics=2, partitions=3))
    assert line == "2023-11-14T22:13:20.123Z INFO    NodeStarted node_id=1 topics=2 partitions=3\n"


def test_a_value_with_blanks_or_line_breaks_is_quoted() -> None:
    [line] = lines_of(LogDirectoryFailed(directory="/a b", reason='x="\n"', partitions=0))
    assert 'directory="/a b"' in line
    assert r'reason="x=\"\n\""' in line
    assert line.count("\n") == 1


def test_an_event_is_one_object_of_json() -> None:
    [line] = lines_of(NodeStarted(node_id=1, topics=2, partitions=3), form="json")
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.123Z",
        "at_us": 5_000,
        "level": "info",
        "event": "NodeStarted",
        "node_id": 1,
        "topics": 2,
        "partitions": 3,
    }


@dataclass(frozen=True)
class Odd:
    data: bytes
    names: tuple[str, ...]
    members: frozenset[str]
    nothing: None


class Named(NamedTuple):
    value: int


def test_values_that_json_does_not_know_become_text() -> None:
    [line] = lines_of(Odd(data=bytes(16), names=(), members=frozenset(), nothing=None))
    assert "data=AAAAAAAAAAAAAAAAAAAAAA " in line, "an id, as Kafka shows it"
    odd = Odd(data=b"\x01\xff", names=("a", "b"), members=frozenset({"y", "x"}), nothing=None)
    [line] = lines_of(odd, form="json")
    values = json.loads(line)
    assert values["data"] == "01ff"
    assert values["names"] == ["a", "b"]
    assert values["members"] == ["x", "y"]
    assert values["nothing"] is None
    [text] = lines_of(Named(5))
    assert text.endswith("Named value=5\n")


def test_a_member_of_a_closed_set_goes_by_its_name() -> None:
    class Refused(NamedTuple):
        error: ErrorCode

    [line] = lines_of(Refused(ErrorCode.NOT_CONTROLLER))
    assert line.endswith(" Refused error=NOT_CONTROLLER\n")


def test_a_word_of_a_closed_set_is_written_as_it_is() -> None:
    event = LeaderElected(topic="t", partition=0, leader=1, leader_epoch=2, kind=LAST_KNOWN)
    [line] = lines_of(event)
    assert line.endswith(" kind=last-known\n")


def test_quiet_events_are_for_those_who_ask() -> None:
    event = ConnectionOpened(connection=1, peer="::1")
    assert lines_of(event) == []
    [line] = lines_of(event, level="debug")
    assert "DEBUG   ConnectionOpened" in line
    assert lines_of(NodeStarted(node_id=1, topics=0, partitions=0), level="error") == []


def test_events_that_strangers_cause_are_limited_per_second_and_counted() -> None:
    written: list[str] = []
    now = [NOON_NS]
    log = LogLines(write=written.append, wall_ns=lambda: now[0])
    drop = ConnectionDropped(connection=1, peer="10.0.0.1", reason="bad frame")
    for _ in range(500):
        log.emit(drop)
    assert len(written) == 50

    now[0] += 1_000_000_000
    log.emit(drop)

    assert "LinesLeftOut event=ConnectionDropped count=450" in written[50]
    assert "ConnectionDropped" in written[51]
