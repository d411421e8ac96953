"""Consumers that know leader epochs (KIP-320): no old leader fools them, no cut log is misread."""

from __future__ import annotations

from tidelog.client.consumer.errors import LogTruncationError
from tidelog.core.model.errors import ErrorCode
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import baseline, orders
from tidelog.lab.stories.cast import FENCED, UNKNOWN_EPOCH, ok
from tidelog.lab.story import story

BEHIND = 851
COMMITTED = 1_001


@story("D3-K1", "D3-O4", "N17")
def a_consumer_goes_on_at_1000(lab: Lab) -> None:
    """It has read to 999; after the failover 1000 is another message, and it misses nothing."""
    baseline(lab)
    reader = lab.consumer("reader")
    reader.read_to(1_000)
    lab.kill(1)
    lab.release(2, 3)
    lab.until_led(2)
    lab.writer("lucky").write("new 1000")
    lab.step("D3-K1", "it gets the record of leader epoch 6 at offset 1000")
    (got,) = reader.read_to(1_001)
    lab.same("offset, leader epoch", (got.offset, got.leader_epoch), (1_000, 6))
    lab.same("payload", got.value, b"new 1000")
    lab.step("N17", "it went on from its position: nothing was read again, nothing left out")
    lab.same("offsets", [each.offset for each in reader.got], list(range(1_001)))
    lab.step("D3-O4", "and nothing that it read is gone")
    lab.same("read then lost", lab.audit().read_then_lost, ())


@story("X-4")
def a_zombie_leader_and_those_who_know_better(lab: Lab) -> None:
    """1 is cut off in leader epoch 0, 2 leads in 1: each refuses who believes in the other."""
    orders(lab)
    old = lab.consumer("old")
    old.read_to(10)
    lab.isolate(1)
    lab.listen_to(2)
    lab.until_led(2)
    lab.step("X-4", "the isolated leader does not know epoch 1, the new one does not serve epoch 0")
    lab.same("at 1", ErrorCode(lab.fetch(1, 10, leader_epoch=1).error_code), UNKNOWN_EPOCH)
    lab.same("at 2", ErrorCode(lab.fetch(2, 10, leader_epoch=0).error_code), FENCED)
    lab.same("a write", lab.writer("writer").write("after"), ok(10))
    lab.isolate(1, "new")  # whoever asks the old leader is told old things
    new = lab.consumer("new", request_timeout_ms="3000")
    new.read_to(11)
    lab.rejoin(1)
    lab.rejoin(1, "new")
    lab.until_isr(1, 2, 3)
    old.read_to(11)
    lab.step("X-4", "both refresh and read on: nothing stale, nothing skipped")
    lab.same("the old one", old.payloads, [*(f"r{number}" for number in range(10)), "after"])
    lab.same("the new one", new.payloads, old.payloads)
    lab.same("the audit", lab.audit(), CLEAN)


@story("X-5", "N32")
def a_consumer_returns_to_a_cut_log(lab: Lab) -> None:
    """Its committed offset 1001 with the leader epoch belongs to records that are gone."""
    _cut_to_851(lab)
    writer = lab.writer("writer")
    for number in range(BEHIND, BEHIND + 200):
        assert writer.write(f"new {number}").is_ok
    reader = lab.consumer("reader", auto_offset_reset="earliest")
    reader.seek(COMMITTED, leader_epoch=0)
    got = reader.read_to(BEHIND + 200)
    lab.step("X-5", "N32", "its position is validated by the epoch: it goes back to 851")
    lab.same("the first record it gets", (got[0].offset, got[0].value), (BEHIND, b"new 851"))


@story("X-5", "N32")
def a_consumer_without_a_reset_policy_gets_an_error(lab: Lab) -> None:
    """The same with auto.offset.reset=none: an exception names where the logs part."""
    _cut_to_851(lab)
    lab.writer("writer").write("new 851")
    reader = lab.consumer("reader", auto_offset_reset="none")
    reader.seek(COMMITTED, leader_epoch=0)
    errors: list[LogTruncationError] = []

    def has_failed() -> bool:
        try:
            return bool(reader.handle.poll())
        except LogTruncationError as truncated:
            errors.append(truncated)
            return True

    lab.until("the consumer hears of it", has_failed)
    lab.step("X-5", "N32", "it is never given another record at 1001 without a word")
    lab.same("the place", errors[0].divergence, BEHIND)


def _cut_to_851(lab: Lab) -> None:
    """0–850 on all, 851–1000 on 1 and 2, which die; 3 is elected uncleanly, 1 returns."""
    orders(lab, count=BEHIND, unclean_leader_election_enable="true")
    lab.hold(3)
    writer = lab.writer("before")
    batch = writer.begin(*(f"r{number}" for number in range(BEHIND, COMMITTED)))
    lab.until_isr(1, 2)
    assert writer.wait(batch).is_ok
    lab.kill(1, 2)
    lab.release(3)
    lab.until_led(3)
    lab.start(1)
    lab.until_isr(1, 3)
