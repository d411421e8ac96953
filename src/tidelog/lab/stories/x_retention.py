"""Retention in a cluster: a follower that was away until its whole log was out of date."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import batches
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.story import story

SEGMENT_BYTES = 300
KEPT_BYTES = 900
SETTINGS = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "0"}


@story("X-37")
def a_follower_whose_log_is_out_of_range(lab: Lab) -> None:
    """3 ends at 10 when it goes; retention has moved the leader's first record past that."""
    orders(
        lab,
        settings=SETTINGS,
        internal_segment_bytes=str(SEGMENT_BYTES),
        retention_bytes=str(KEPT_BYTES),
    )
    lab.stop(3)
    lab.until_isr(1, 2)
    writer = lab.writer("writer")
    for number in range(40):
        assert writer.write(f"later {number}").is_ok
    lab.until("the head is gone", lambda: _kept_bytes(lab) < KEPT_BYTES + SEGMENT_BYTES)
    start_offset = lab.log_start(1)
    returned_us = lab.now_us
    lab.start(3)
    lab.until_isr(1, 2, 3)
    lab.step("X-37", "3 asks for offset 10, which is out of range by now")
    fetch = lab.follower_fetches(1, 3, since_us=returned_us)[0]
    lab.same("its first fetch", fetch.offset, 10)
    assert fetch.answer is not None
    error = ErrorCode(fetch.answer.error_code)
    lab.same("the answer", error, ErrorCode.OFFSET_OUT_OF_RANGE)
    lab.step("X-37", "it drops its log and begins where the leader's begins")
    (anew,) = lab.happenings(3, "FollowerStartedAnew", since_us=returned_us)
    lab.same(
        "from, to", (anew.fields["from_end_offset"], anew.fields["at_offset"]), (10, start_offset)
    )
    lab.same("its first record", lab.log(3)[0].offset, start_offset)
    lab.step("X-37", "it is in sync, with the leader's records and a consistent epoch")
    lab.same("log(3)", lab.payloads(3), lab.read(1, offset=start_offset))
    lab.same("epochs(3)", lab.epochs(3), {0: start_offset})
    lab.same("end(3)", lab.end(3), lab.end(1))


def _kept_bytes(lab: Lab) -> int:
    """What lies behind the leader's first record: once it is little enough, nothing more goes."""
    start_offset = lab.log_start(1)
    found = batches(lab.log_bytes(1))
    return sum(header.size_bytes for _, header in found if header.base_offset >= start_offset)
