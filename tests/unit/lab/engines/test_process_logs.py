"""What processes write, read back: a log as happenings, a gate's journal as requests and answers.

Whole lines only, each once, and nothing that is no event.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tidelog.core.wire.codec import encode
from tidelog.core.wire.headers import request_header, response_header
from tidelog.core.wire.messages.api_60_describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidelog.lab.engine import Happening
from tidelog.lab.engines.process_logs import BrokerLog, RequestJournal

KEY = DescribeClusterRequest.api_key
VERSION = 1


def lines(
    *, at_us: int, connection: int, client: str, correlation_id: int = 1, is_answered: bool = True
) -> str:
    header = request_header(KEY, VERSION, correlation_id=correlation_id, client_id=client)
    request = bytes(header) + bytes(encode(DescribeClusterRequest(), VERSION))
    head = response_header(KEY, VERSION, correlation_id=correlation_id)
    body = encode(DescribeClusterResponse(cluster_id="c", controller_id=connection), VERSION)
    known = {
        "connection": connection,
        "client_id": client,
        "api_key": KEY,
        "version": VERSION,
        "correlation_id": correlation_id,
    }
    text = [("request", at_us, request), ("answer", at_us + 5, bytes(head) + bytes(body))]
    return "".join(
        json.dumps(
            known
            | {"at_us": us, "direction": word, "frame": base64.b64encode(frame).decode("ascii")}
        )
        + "\n"
        for word, us, frame in text[: 2 if is_answered else 1]
    )


def journal(tmp_path: Path, text: str) -> RequestJournal:
    path = tmp_path / "requests"
    path.write_text(text)
    return RequestJournal(path, story_us=lambda us: us * 2)


def test_a_request_has_its_answer_and_its_peer(tmp_path: Path) -> None:
    text = lines(at_us=10, connection=7, client="node-3")
    (seen,) = journal(tmp_path, text).of(KEY, since_us=0, peer=None)
    assert (seen.at_us, seen.answered_us, seen.peer, seen.version) == (20, 30, 3, VERSION)
    assert isinstance(seen.request, DescribeClusterRequest)
    assert isinstance(seen.answer, DescribeClusterResponse)
    assert seen.answer.controller_id == 7


def test_requests_are_chosen_by_kind_peer_and_time(tmp_path: Path) -> None:
    text = lines(at_us=10, connection=1, client="node-3")
    text += lines(at_us=20, connection=2, client="node-x")
    text += lines(at_us=30, connection=3, client="node-3", is_answered=False)
    found = journal(tmp_path, text)
    assert [each.peer for each in found.of(KEY, since_us=0, peer=None)] == [3, "node-x", 3]
    assert [each.at_us for each in found.of(KEY, since_us=0, peer=3)] == [20, 60]
    (last,) = found.of(KEY, since_us=21, peer=3)
    assert (last.answer, last.answered_us) == (None, None)
    assert found.of(KEY + 1, since_us=0, peer=None) == []


def test_an_answer_belongs_to_the_last_request_with_its_number(tmp_path: Path) -> None:
    """A restarted node counts its connections anew."""
    text = lines(at_us=10, connection=1, client="a", is_answered=False)
    text += lines(at_us=20, connection=1, client="b")
    first, second = journal(tmp_path, text).of(KEY, since_us=0, peer=None)
    assert (first.peer, first.answer) == ("a", None)
    assert (second.peer, second.answered_us) == ("b", 50)


def event_line(event: str, at_us: int, **fields: object) -> str:
    return json.dumps({"time": "t", "at_us": at_us, "level": "info", "event": event, **fields})


def test_events_come_in_order_with_tuples_for_lists(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = BrokerLog(path, story_us=lambda us: us * 2)
    assert log.of("Cut") == [], "there is no file yet"
    path.write_text(f"{event_line('Cut', 5, dropped=[[2, 3, 0]])}\n{event_line('Other', 6)}\n")
    assert log.of("Cut") == [Happening(10, "Cut", {"dropped": ((2, 3, 0),)})]
    assert log.of("Other") == [Happening(12, "Other", {})]


def test_a_line_counts_once_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = BrokerLog(path, story_us=lambda us: us)
    whole = event_line("Cut", 5) + "\n"
    for end in range(len(whole)):
        path.write_text(whole[:end])
        assert log.of("Cut") == []
    path.write_text(whole)
    assert len(log.of("Cut")) == 1
    assert len(log.of("Cut")) == 1


def test_a_traceback_is_no_event(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"Traceback (most recent call last):\n  5\n5\n{event_line('Cut', 5)}\n")
    assert [each.at_us for each in BrokerLog(path, story_us=lambda us: us).of("Cut")] == [5]
