"""A broker's log as happenings: whole lines only, each once, and nothing that is no event."""

from __future__ import annotations

import json
from pathlib import Path

from tidelog.lab.engine import Happening
from tidelog.lab.engines.broker_log import BrokerLog


def line(event: str, at_us: int, **fields: object) -> str:
    return json.dumps({"time": "t", "at_us": at_us, "level": "info", "event": event, **fields})


def test_events_come_in_order_with_tuples_for_lists(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = BrokerLog(path, story_us=lambda us: us * 2)
    assert log.of("Cut") == [], "there is no file yet"
    path.write_text(f"{line('Cut', 5, dropped=[[2, 3, 0]])}\n{line('Other', 6)}\n")
    assert log.of("Cut") == [Happening(10, "Cut", {"dropped": ((2, 3, 0),)})]
    assert log.of("Other") == [Happening(12, "Other", {})]


def test_a_line_counts_once_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = BrokerLog(path, story_us=lambda us: us)
    whole = line("Cut", 5) + "\n"
    for end in range(len(whole)):
        path.write_text(whole[:end])
        assert log.of("Cut") == []
    path.write_text(whole)
    assert len(log.of("Cut")) == 1
    assert len(log.of("Cut")) == 1


def test_a_traceback_is_no_event(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"Traceback (most recent call last):\n  5\n5\n{line('Cut', 5)}\n")
    assert [each.at_us for each in BrokerLog(path, story_us=lambda us: us).of("Cut")] == [5]
