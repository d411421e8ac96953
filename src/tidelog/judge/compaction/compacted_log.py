"""One replica of a compacted log, compared before and after whatever rewrote its segments.

It does not know how the cleaner works. A record may go if a later one of its key stands below the
fence, or if it is a tombstone whose time is over. All others stay, under the same offsets, through
every swap of segments and every crash in the middle of one; and nothing that went comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tidelog.judge.anomalies import (
    CAME_BACK,
    CHANGED_BY_COMPACTION,
    COMPACTED_AWAY,
    COMPACTED_DIFFERENTLY,
    COMPACTED_TOO_SOON,
    TOMBSTONE_TOO_SOON,
    Anomaly,
)


class KeyedRecord(NamedTuple):
    """A record of a compacted log."""

    offset: int
    key: str
    payload: str
    is_tombstone: bool
    timestamp_ms: int
    leader_epoch: int
    delete_horizon_ms: int | None = None
    """Its batch says so."""

    @property
    def content(self) -> tuple[object, ...]:
        """What no compaction may change."""
        return self[:6]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRules:
    """The settings of a topic."""

    lag_min_ms: int = 0
    delete_retention_ms: int = 0


@dataclass(slots=True)
class CompactedLog:
    """What one replica held when it was last looked at."""

    partition: str
    node: int
    rules: CompactionRules
    records: dict[int, KeyedRecord] = field(default_factory=dict)
    start_offset: int = 0
    end_offset: int = 0
    fence: int = 0
    """The largest offset below which everything was known to be committed here."""
    synced_end_offset: int = 0
    """No crash takes anything before it."""

    def append(self, records: Iterable[KeyedRecord], *, end_offset: int) -> None:
        for record in records:
            self.records[record.offset] = record
        self.end_offset = max(self.end_offset, end_offset)

    def cut(self, end_offset: int) -> None:
        """The log was truncated."""
        self.records = {at: each for at, each in self.records.items() if at < end_offset}
        self.end_offset = min(self.end_offset, end_offset)
        self.synced_end_offset = min(self.synced_end_offset, end_offset)

    def advance(self, *, start_offset: int, fence: int, synced_end_offset: int) -> None:
        self.start_offset = start_offset
        self.fence = max(self.fence, fence)
        self.synced_end_offset = synced_end_offset

    def rewrite(
        self,
        found: Mapping[int, KeyedRecord],
        *,
        start_offset: int,
        end_offset: int,
        at_us: int,
        wall_ms: int,
    ) -> list[Anomaly]:
        """The log as it is now, after a swap of segments or a start, with a verdict on it."""
        if end_offset < self.end_offset:
            # A crash took the end; what was synced before it is there, or it is missing.
            self.cut(max(end_offset, self.synced_end_offset))
        known_start = max(start_offset, self.start_offset)
        anomalies = list(self._judge(found, known_start, at_us, wall_ms))
        self.records = dict(found)
        self.start_offset, self.end_offset = start_offset, end_offset
        return anomalies

    def _judge(
        self, found: Mapping[int, KeyedRecord], known_start: int, at_us: int, wall_ms: int
    ) -> Iterator[Anomaly]:
        by_key: dict[str, list[KeyedRecord]] = {}
        for record in self.records.values():
            by_key.setdefault(record.key, []).append(record)
        for offset, before in self.records.items():
            after = found.get(offset)
            if offset < known_start:
                continue
            if after is None:
                yield from self._removed(before, by_key[before.key], at_us, wall_ms)
            elif after.content != before.content:
                yield CHANGED_BY_COMPACTION.found(
                    at_us=at_us,
                    partition=self.partition,
                    node=self.node,
                    offset=offset,
                    payload=after.payload,
                    payload_before=before.payload,
                )
        for offset, after in found.items():
            if offset not in self.records and known_start <= offset < self.end_offset:
                yield CAME_BACK.found(
                    at_us=at_us,
                    partition=self.partition,
                    node=self.node,
                    key=after.key,
                    payload=after.payload,
                    offset=offset,
                )

    def _removed(
        self, gone: KeyedRecord, of_key: list[KeyedRecord], at_us: int, wall_ms: int
    ) -> Iterator[Anomaly]:
        """Whatever replaced it may have gone at the same time, and is judged by itself."""
        if gone.is_tombstone and self._is_over(gone, wall_ms):
            return
        newer = [each for each in of_key if each.offset > gone.offset]
        committed = [each for each in newer if each.offset < self.fence]
        oldest_ms = wall_ms - self.rules.lag_min_ms
        old = [each for each in committed if each.timestamp_ms <= oldest_ms]
        if old and gone.timestamp_ms <= oldest_ms:
            return
        kind, more = COMPACTED_TOO_SOON, dict[str, object]()
        if committed:
            youngest = gone if old else min(committed, key=lambda each: each.timestamp_ms)
            more["age_ms"] = wall_ms - youngest.timestamp_ms
        elif newer:
            more["fence"] = self.fence
        elif gone.is_tombstone:
            kind, more = TOMBSTONE_TOO_SOON, {"age_ms": wall_ms - gone.timestamp_ms}
        else:
            kind, more = COMPACTED_AWAY, {"payload": gone.payload}
        yield kind.found(
            at_us=at_us,
            partition=self.partition,
            node=self.node,
            key=gone.key,
            offset=gone.offset,
            **more,
        )

    def _is_over(self, tombstone: KeyedRecord, wall_ms: int) -> bool:
        horizon_ms = tombstone.delete_horizon_ms
        if horizon_ms is None or horizon_ms > wall_ms:
            return False
        return wall_ms - tombstone.timestamp_ms >= self.rules.delete_retention_ms


def newest_values(log: CompactedLog, *, start_offset: int) -> dict[str, str]:
    """The newest payload of each key that is not deleted."""
    newest: dict[str, KeyedRecord] = {}
    for record in sorted(log.records.values()):
        if record.offset >= start_offset:
            newest[record.key] = record
    return {key: each.payload for key, each in newest.items() if not each.is_tombstone}


def differing_replicas(logs: list[CompactedLog], *, at_us: int) -> list[Anomaly]:
    """At rest all replicas of a partition answer the same; deleted heads may differ."""
    found: list[Anomaly] = []
    for one, other in pairwise(logs):
        start_offset = max(one.start_offset, other.start_offset)
        ones = newest_values(one, start_offset=start_offset)
        others = newest_values(other, start_offset=start_offset)
        found += [
            COMPACTED_DIFFERENTLY.found(
                at_us=at_us,
                partition=one.partition,
                key=key,
                node=one.node,
                payload=ones.get(key),
                other_node=other.node,
                other_payload=others.get(key),
            )
            for key in sorted(ones.keys() | others.keys())
            if ones.get(key) != others.get(key)
        ]
    return found
