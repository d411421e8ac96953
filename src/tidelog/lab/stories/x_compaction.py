"""Compaction while a follower lags: nothing at or above the high watermark is cleaned."""

from __future__ import annotations

from tidelog.lab.lab import Lab
from tidelog.lab.story import story

KEYS = "abcde"
SETTINGS = {"log.cleaner.backoff.ms": "1000", "replica.lag.time.max.ms": "600000"}


@story("X-43")
def compaction_waits_for_a_lagging_follower(lab: Lab) -> None:
    """Five keys are written over and over; follower 3 has the first two rounds only."""
    lab.cluster(settings=SETTINGS)
    lab.create(
        "orders",
        (1, 2, 3),
        min_insync_replicas="2",
        cleanup_policy="compact",
        internal_segment_bytes="300",
        min_cleanable_dirty_ratio="0.01",
    )
    _write_rounds(lab, -1, 0, 2)
    lab.until_quiet()
    lab.hold(3)
    _write_rounds(lab, 1, 2, 6)
    lab.until_end(2, 30)
    lab.pass_ms(30_000)
    lab.step("X-43", "below the high watermark old values go, at and above it every record stays")
    lab.same("high watermark", lab.high_watermark(), 10)
    for node in (1, 2):
        offsets = [each.offset for each in lab.log(node)]
        lab.same(f"log({node}) from the high watermark", _from(offsets, 10), list(range(10, 30)))
        lab.true(f"something was cleaned on {node}", len(offsets) < 30)
        newest = set(range(5, 10))
        lab.true(f"the newest committed value of each key is on {node}", newest <= set(offsets))
    lab.release(3)
    lab.until_quiet()
    for number in range(6, 9):
        _write_rounds(lab, -1, number, number + 1)
    lab.until_quiet()
    lab.pass_ms(30_000)
    lab.step("X-43", "all replicas agree on what is read, whoever was cleaned how far")
    wanted = {key: f"{key}8" for key in KEYS}
    for node in (1, 2, 3):
        lab.same(f"newest values on {node}", _newest(lab.payloads(node)), wanted)
        lab.true(f"{node} was cleaned", len(lab.log(node)) < 30)
    for leader, gone in ((1, None), (2, 1)):
        if gone is not None:
            lab.kill(gone)
            lab.until_led(leader)
        reader = lab.consumer(f"reader of {leader}")
        reader.read_to(45)
        lab.same(f"newest values for consumers of {leader}", _newest(reader.payloads), wanted)


def _write_rounds(lab: Lab, acks: int, start: int, end: int) -> None:
    writer = lab.writer(f"writer {start}", acks=acks)
    for number in range(start, end):
        for key in KEYS:
            assert writer.write_keyed(f"{key}{number}").is_ok


def _from(offsets: list[int], start: int) -> list[int]:
    return [offset for offset in offsets if offset >= start]


def _newest(payloads: list[str]) -> dict[str, str]:
    return {payload[0]: payload for payload in payloads}
