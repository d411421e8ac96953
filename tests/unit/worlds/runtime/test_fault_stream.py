"""One direction of one connection under faults: stories as tables of what comes out when."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tidelog.faults.rules import read_rules
from tidelog.worlds.runtime.fault_stream import RESEND_MS, FaultStream, ItemKind
from tidelog.worlds.runtime.fault_table import FaultTable, LinkDirection

PEERS = {"127.0.0.1:9091": 1, "127.0.0.1:9092": 2}
CUT = {"what": "cut", "from": 1, "to": 2}
CUT_BACK = {"what": "cut", "from": 2, "to": 1}
HOLD = {"what": "hold", "from": 1, "to": 2, "purpose": "replica"}
DELAY = {"what": "delay", "from": 1, "to": 2, "delay_ms": 100}
DROP = {"what": "drop", "from": 1, "to": 2, "chance": 1}
LONG_MS = 1_000_000


class Story:
    """What goes in at once or later, and what comes out by when."""

    def __init__(self, *rules: dict[str, Any]) -> None:
        self.table = FaultTable(node_id=1, random=Random(1))
        self.stream: FaultStream[str] = FaultStream(self.table, LinkDirection(1, 2, "replica"))
        self.out: list[str] = []
        self.rules(*rules)

    def rules(self, *rules: dict[str, Any]) -> None:
        named = [{"id": f"r{number}", **rule} for number, rule in enumerate(rules)]
        self.table.replace(read_rules(named), PEERS)
        self.stream.on_table_changed()

    def put(self, *items: str, at_ms: int = 0, kind: ItemKind = ItemKind.FRAME) -> None:
        for item in items:
            if self.stream.passes(kind):
                self.out.append(item)
            else:
                self.stream.put(item, kind, at_ms, size_bytes=10)

    def by(self, at_ms: int) -> list[str]:
        """Everything that has come out until then."""
        while (item := self.stream.take(at_ms)) is not None:
            self.out.append(item)
        return self.out


@pytest.mark.parametrize(
    ("rules", "kind", "passes"),
    [
        ([], ItemKind.FRAME, True),
        ([CUT], ItemKind.FRAME, False),
        ([CUT], ItemKind.CONNECT, False),
        ([CUT], ItemKind.OPENED, False),
        ([CUT], ItemKind.CLOSED, False),
        ([CUT_BACK], ItemKind.FRAME, True),
        ([CUT_BACK], ItemKind.CONNECT, False),
        ([CUT_BACK], ItemKind.OPENED, True),
        ([CUT_BACK], ItemKind.CLOSED, True),
        ([HOLD], ItemKind.FRAME, False),
        ([HOLD], ItemKind.CONNECT, True),
        ([HOLD], ItemKind.OPENED, True),
        ([HOLD], ItemKind.CLOSED, True),
        ([DELAY], ItemKind.FRAME, False),
        ([DELAY], ItemKind.CONNECT, False),
        ([DROP], ItemKind.CLOSED, False),
    ],
)
def test_what_gets_through(rules: list[dict[str, Any]], kind: ItemKind, passes: bool) -> None:
    assert Story(*rules).stream.passes(kind) is passes


def test_a_cut_keeps_everything_in_order_and_its_end_lets_it_go() -> None:
    story = Story(CUT)
    story.put("a", "b")
    story.put("end", kind=ItemKind.CLOSED)
    assert story.by(LONG_MS) == []
    assert story.stream.next_due_ms() is None, "no time helps"
    assert (story.stream.held_frames, story.stream.held_bytes) == (2, 30)

    story.rules()
    assert not story.stream.passes(ItemKind.FRAME), "what comes now stands behind what waits"
    story.put("c")
    assert story.by(0) == ["a", "b", "end", "c"]
    assert (story.stream.held_frames, story.stream.held_bytes) == (0, 0)
    assert story.stream.passes(ItemKind.FRAME)


def test_a_delay_is_for_each_and_keeps_the_order() -> None:
    story = Story({**DELAY, "jitter_ms": 50})
    for number in range(20):
        story.put(str(number), at_ms=number)
    assert story.by(99) == []
    seen = [list(story.by(at_ms)) for at_ms in range(100, 171)]
    assert seen[-1] == [str(number) for number in range(20)]
    assert len({len(each) for each in seen}) > 3, "they do not come all at once"


def test_the_end_of_a_delay_is_the_end_of_waiting_for_it() -> None:
    story = Story({**DELAY, "delay_ms": LONG_MS})
    story.put("a", at_ms=5)
    assert story.stream.next_due_ms() == 5 + LONG_MS
    story.rules(DELAY)
    assert story.stream.next_due_ms() == 105
    story.rules()
    assert story.by(5) == ["a"]


def test_a_longer_delay_is_only_for_what_comes_after() -> None:
    story = Story(DELAY)
    story.put("a")
    story.rules({**DELAY, "delay_ms": LONG_MS})
    story.put("b")
    assert story.by(100) == ["a"]


def test_a_lost_frame_stalls_the_stream_until_it_is_sent_again() -> None:
    story = Story(DROP)
    story.put("a", "b")
    assert story.by(0) == []
    assert story.stream.next_due_ms() == RESEND_MS
    assert story.by(RESEND_MS) == []
    assert story.stream.next_due_ms() == 2 * RESEND_MS
    story.rules()
    assert story.by(RESEND_MS) == ["a", "b"]


def test_losses_now_and_then_change_no_order() -> None:
    story = Story({**DROP, "chance": 0.5})
    story.put(*(str(number) for number in range(50)))
    for at_ms in range(0, 100 * RESEND_MS, RESEND_MS):
        story.by(at_ms)
    assert story.out == [str(number) for number in range(50)]
    assert story.table.counts["r0"] > 10


def test_what_is_only_held_dies_with_its_sender() -> None:
    story = Story(HOLD)
    story.put("a", "b")
    story.put("end", kind=ItemKind.CLOSED)
    assert story.stream.next_due_ms() == 0
    assert story.by(0) == ["end"]
    assert story.stream.held_bytes == 0


def test_a_cut_hides_even_the_death_of_the_sender() -> None:
    story = Story(CUT, HOLD)
    story.put("a")
    story.put("end", kind=ItemKind.CLOSED)
    assert story.by(LONG_MS) == []
    story.rules(HOLD)
    assert story.by(LONG_MS) == ["end"]


def test_a_connect_that_was_interrupted_goes_first() -> None:
    story = Story(CUT_BACK)
    story.put("connect", kind=ItemKind.CONNECT)
    story.rules()
    assert story.by(0) == ["connect"]
    story.rules(CUT)
    story.put("request")
    story.stream.put_first("connect again", ItemKind.CONNECT, 7)
    story.rules()
    assert story.by(7) == ["connect", "connect again", "request"]


def test_a_stopped_stream_waits_for_its_reader() -> None:
    story = Story(CUT)
    story.put("a", "b")
    story.rules()
    story.stream.is_stopped = True
    assert story.by(0) == []
    assert story.stream.next_due_ms() is None
    story.stream.is_stopped = False
    assert story.by(0) == ["a", "b"]


def test_frames_that_wait_are_counted_for_their_rules() -> None:
    story = Story(CUT, HOLD)
    story.put("a", "b")
    story.put("end", kind=ItemKind.CLOSED)
    assert story.table.counts == {"r0": 2, "r1": 2}
