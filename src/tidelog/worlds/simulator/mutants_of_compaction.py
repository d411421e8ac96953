"""Mutants of compaction: fences passed, keys mixed up, and segments exchanged too early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.core.storage import batch_filter, log_to_clean, recovery
from tidelog.core.storage.batch_filter import BatchFilter, Work
from tidelog.core.storage.key_offset_map import KeyOffsetMap
from tidelog.core.storage.log import Log
from tidelog.core.storage.segment_swap import SegmentSwap
from tidelog.core.wire.record_batch import BatchHeader
from tidelog.core.wire.records import PackedRecord, iterate, packed_records, rebuild
from tidelog.core.wire.varint import varint, varlong
from tidelog.judge.anomalies import (
    CAME_BACK,
    CHANGED_BY_COMPACTION,
    COMPACTED_AWAY,
    COMPACTED_TOO_SOON,
    HEAD_MISSING,
    MISPLACED,
    NEWEST_MISSING,
    TOMBSTONE_TOO_SOON,
    AnomalyKind,
)
from tidelog.worlds.simulator.mutant import Mutant, Patch

SMALL_MAP_KEYS = 8

# What is replaced, as it is.

_put = KeyOffsetMap.put


def fence_without_high_watermark(log: Log) -> int:
    """Whatever this replica has synced counts, although nobody else may have it."""
    return log.recovery_point


def sync_at_once(self: SegmentSwap) -> None:
    """The next step does not wait for the one before."""
    self.is_synced = True


def horizon_is_over(self: BatchFilter, header: BatchHeader) -> bool:
    """A tombstone has its horizon, so it may go."""
    return header.delete_horizon_ms is not None


def first_slot(self: KeyOffsetMap, digest: bytes) -> int:
    """Two keys that want the same slot share it."""
    return int.from_bytes(digest[:8]) % min(self._slots, 64)


def never_full(self: KeyOffsetMap) -> bool:
    return False


def reuse_an_entry(self: KeyOffsetMap, key: bytes, offset: int) -> None:
    """A map that is full, and small, takes a further key into the entry of another one."""
    if self.count < min(SMALL_MAP_KEYS, self.keys_max - 1) or self.get(key) >= 0:
        _put(self, key, offset)
    else:
        used = next(at for at in range(self._slots) if self._offsets[at])
        self._offsets[used] = offset + 1


_MET: list[tuple[KeyOffsetMap, set[bytes]]] = []
"""The keys that the round under way has met."""


def keep_the_oldest(self: BatchFilter, data: bytes, header: BatchHeader, must_stay: bool) -> Work:
    """Where a key is met for the first time its record stays."""
    if not _MET or _MET[-1][0] is not self.keys:
        _MET[:] = [(self.keys, set())]
    met, left = _MET[-1][1], []
    for record in packed_records(data):
        yield 1
        is_dirty = header.base_offset + record.offset_delta <= self.keys.latest_offset
        if record.key is not None and not (is_dirty and record.key in met):
            met.add(record.key)
            left.append(record)
    self.kept = rebuild(header, left) if left or must_stay else None


def renumbered(header: BatchHeader, records: Sequence[PackedRecord], **rest: Any) -> bytearray:
    """The records that are left follow one another."""
    batch = rebuild(header, records, **rest)
    packed = []
    for delta, (record, whole) in enumerate(
        zip(packed_records(batch), iterate(batch), strict=True)
    ):
        tail = _after_delta(record, whole.offset - header.base_offset)
        body = b"\0" + varlong(record.timestamp_delta_ms) + varint(delta) + tail
        packed.append(record._replace(packed=varint(len(body)) + body, offset_delta=delta))
    return rebuild(header, packed, **rest)


def _after_delta(record: PackedRecord, offset_delta: int) -> bytes:
    """A record's bytes behind its offset delta."""
    head = b"\0" + varlong(record.timestamp_delta_ms) + varint(offset_delta)
    at = record.packed.index(head)
    return record.packed[at + len(head) :]


def never_young(*_: object) -> bool:
    return False


def no_swaps(*_: object, **__: object) -> bool:
    """A start takes what is unfinished for garbage, whatever its name says."""
    return False


def compaction_mutant(
    name: str,
    about: str,
    *,
    caught_by: Sequence[AnomalyKind],
    within: int,
    patches: Sequence[Patch],
) -> Mutant:
    """A mistake of the profile `compaction`."""
    return Mutant(
        name=name,
        about=about,
        caught_by=frozenset(caught_by),
        within_seeds=within,
        profile="compaction",
        patches=tuple(patches),
    )


COMPACTION_MUTANTS: tuple[Mutant, ...] = (
    compaction_mutant(
        "clean-past-high-watermark",
        "records that are not committed replace committed ones",
        caught_by=(COMPACTED_TOO_SOON,),
        within=6,
        patches=(Patch(log_to_clean, "fence_of", fence_without_high_watermark),),
    ),
    compaction_mutant(
        "clean-too-young",
        "min.compaction.lag.ms is not looked at",
        caught_by=(COMPACTED_TOO_SOON,),
        within=6,
        patches=(Patch(log_to_clean, "_is_young", never_young),),
    ),
    compaction_mutant(
        "swap-without-sync",
        "a swap goes on before its last step is durable",
        caught_by=(COMPACTED_AWAY, CAME_BACK, NEWEST_MISSING, HEAD_MISSING),
        within=12,
        patches=(Patch(SegmentSwap, "_request_sync", sync_at_once),),
    ),
    compaction_mutant(
        "forget-unfinished-swap",
        "a start removes a swap that was decided, after the old segments are gone",
        caught_by=(COMPACTED_AWAY, NEWEST_MISSING, HEAD_MISSING),
        within=12,
        patches=(Patch(recovery, "finish_swaps", no_swaps),),
    ),
    compaction_mutant(
        "tombstone-without-retention",
        "a tombstone goes with the second cleaning, whenever that is",
        caught_by=(TOMBSTONE_TOO_SOON,),
        within=6,
        patches=(Patch(BatchFilter, "_is_past_horizon", horizon_is_over),),
    ),
    compaction_mutant(
        "key-map-collisions",
        "keys with the same slot of the map count as one",
        caught_by=(COMPACTED_AWAY, COMPACTED_TOO_SOON, NEWEST_MISSING),
        within=6,
        patches=(Patch(KeyOffsetMap, "_slot_of", first_slot),),
    ),
    compaction_mutant(
        "key-map-overflow",
        "a key that does not fit into the map takes the entry of another one",
        caught_by=(COMPACTED_AWAY, NEWEST_MISSING),
        within=6,
        patches=(
            Patch(KeyOffsetMap, "is_full", property(never_full)),
            Patch(KeyOffsetMap, "put", reuse_an_entry),
        ),
    ),
    compaction_mutant(
        "renumber-offsets",
        "the records that are left in a batch get new offsets",
        caught_by=(CHANGED_BY_COMPACTION, CAME_BACK, MISPLACED),
        within=6,
        patches=(Patch(batch_filter, "rebuild", renumbered),),
    ),
    compaction_mutant(
        "keep-the-oldest",
        "of each key the first value stays instead of the newest",
        caught_by=(COMPACTED_AWAY, NEWEST_MISSING),
        within=6,
        patches=(Patch(BatchFilter, "_filter", keep_the_oldest),),
    ),
)
