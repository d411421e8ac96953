"""Where the tests of compaction start: keyed batches, segments to clean, and one whole round."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.core.storage.given import NOW_MS, SMALL, Rig, read_all
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.log import Log
from tidelog.core.storage.log_cleaner import CleanerSettings, LogCleaner
from tidelog.core.wire.records import NewRecord, build

COMPACT = replace(SMALL, compact=True, delete=False, min_cleanable_dirty_ratio=0.0)
"""Every log with a dirty byte is due."""
Pair = tuple[str, str | None]


def keyed(
    *pairs: Pair,
    timestamp_ms: int = NOW_MS,
    compression: int = 0,
    producer_id: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> memoryview:
    records = [
        NewRecord(
            value=None if value is None else value.encode(),
            key=key.encode(),
            timestamp_ms=timestamp_ms,
        )
        for key, value in pairs
    ]
    return memoryview(
        build(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


def put(log: Log, *pairs: Pair, leader_epoch: int = 0, **fields: int) -> None:
    view = keyed(*pairs, **fields)  # type: ignore[arg-type]
    appended = log.append_as_leader(view, leader_epoch=leader_epoch, wall_ms=NOW_MS)
    assert appended.error == 0, appended


def roll(log: Log, rig: Rig) -> None:
    """What was written so far may be compacted."""
    log.roll(because="size", base_offset=log.log_end_offset, wall_ms=rig.wall_ms)
    log.advance_high_watermark(log.log_end_offset)
    rig.finish_syncs()


def clean(log: Log, rig: Rig, settings: CleanerSettings | None = None, **fields: int) -> LogCleaner:
    """One round from its beginning to its end."""
    cleaner = LogCleaner(
        logs=lambda: [log],
        settings=lambda: settings or CleanerSettings(),
        trace=rig.trace,
        **fields,
    )
    while cleaner.run_slice(rig.wall_ms) < 1_000:
        rig.finish_syncs()
        log.check()
        if not cleaner.is_busy:
            break
    return cleaner


def pairs_of(log: Log) -> list[tuple[int, str, str | None]]:
    return [
        (
            record.offset,
            (record.key or b"").decode(),
            None if record.value is None else record.value.decode(),
        )
        for record in read_all(log)
    ]


def opened(config: LogConfig = COMPACT) -> tuple[Rig, Log]:
    rig = Rig(config)
    return rig, rig.open_in(rig.open_directory())
