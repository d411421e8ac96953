"""Wall clocks that lie: sessions do not listen to them, and records are only held against them."""

from __future__ import annotations

from struct import Struct

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import batches
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import CONTROLLER, A, B, C, ok, same_logs
from tidelog.lab.story import story

HOUR_MS = 3_600_000
TIME_INDEX_ENTRY = Struct(">qi")
"""Timestamp and offset relative to the segment's base, in Kafka's format."""
SESSIONS_MS = 20_000
"""Three sessions and more."""


@story("X-35")
def clocks_jump_and_no_broker_is_fenced(lab: Lab) -> None:
    """The leader's clock jumps an hour ahead, a follower's an hour back, the controller's both."""
    orders(lab)
    before = lab.desc()
    lab.engine.move_clock(A, by_ms=HOUR_MS)
    lab.engine.move_clock(B, by_ms=-HOUR_MS)
    lab.engine.move_clock(CONTROLLER, by_ms=HOUR_MS)
    lab.pass_ms(SESSIONS_MS)
    lab.engine.move_clock(CONTROLLER, by_ms=-2 * HOUR_MS)
    lab.pass_ms(SESSIONS_MS)
    lab.step("X-35", "sessions run on the monotonic clock: nobody was fenced, nothing moved")
    lab.same("fenced", lab.happenings(CONTROLLER, "BrokerFenced"), [])
    lab.same("the partition", lab.desc(), before)
    lab.step("X-35", "a leader that is an hour ahead takes honest records")
    lab.same("the answer", lab.writer("honest").write("now"), ok(10))
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-35")
def a_leader_set_back_refuses_honest_records(lab: Lab) -> None:
    """A record may be an hour ahead of its leader's clock, and not more."""
    orders(lab)
    lab.engine.move_clock(A, by_ms=-HOUR_MS)
    lab.step("X-35", "an hour back: what honest clocks say is just not too far ahead")
    lab.same("the answer", lab.writer("honest").write("an hour ahead"), ok(10))
    lab.engine.move_clock(A, by_ms=-1_000)
    lab.step("X-35", "a second more: INVALID_TIMESTAMP, though the writer is right")
    refused = lab.writer("wronged").write("refused")
    lab.same("the answer", refused.error, ErrorCode.INVALID_TIMESTAMP)
    lab.same("end(A)", lab.end(A), 11)

    lab.stop(A)
    lab.until_led(B)
    lab.step("X-35", "the same record is right for a leader with a right clock")
    lab.same("the answer of B", lab.writer("honest").write("refused"), ok(11))
    lab.start(A)
    lab.until_isr(A, B, C)
    lab.step("X-35", "a follower with a wrong clock copies it all the same")
    same_logs(lab, A, B, C)


@story("X-35")
def the_time_index_stays_in_order(lab: Lab) -> None:
    """The leader stamps the records itself, and its clock jumps back and forth between them."""
    lab.cluster()
    lab.create(
        "orders",
        (A, B, C),
        message_timestamp_type="LogAppendTime",
        internal_segment_bytes="400",
        index_interval_bytes="70",
    )
    writer = lab.writer("writer")
    for number, jump_ms in enumerate((0, HOUR_MS, -2 * HOUR_MS, HOUR_MS) * 6):
        lab.engine.move_clock(A, by_ms=jump_ms)
        assert writer.write(f"m{number}").is_ok
    lab.until_quiet()
    stamps = [header.max_timestamp_ms for _, header in batches(lab.log_bytes(A))]
    lab.step("X-35", "the records' timestamps jump back")
    lab.true("they are out of order", stamps != sorted(stamps))
    lab.step("X-35", "in every segment of every replica the time index only grows")
    for node in (A, B, C):
        found = _time_indexes(lab, node)
        lab.true(f"{node} has some", sum(map(len, found)) > 5)
        lab.true(f"on {node} they grow", all(each == sorted(set(each)) for each in found))


def _time_indexes(lab: Lab, node: int) -> list[list[tuple[int, int]]]:
    """(timestamp, relative offset) of the entries of each segment."""
    files = lab.engine.log_files(node, lab.topic.name, 0)
    return [
        list(TIME_INDEX_ENTRY.iter_unpack(files[name]))
        for name in sorted(files)
        if name.endswith(".timeindex")
    ]
