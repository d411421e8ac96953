"""How far a log is durable, told mark by mark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.unit.core.storage.given import Rig, append, batch
from tidelog.core.storage.durability import Durability


def segment(size_bytes: int) -> Any:
    return SimpleNamespace(
        file=SimpleNamespace(path="x.log", size_bytes=size_bytes), synced_bytes=0
    )


def test_a_later_segment_counts_only_behind_the_earlier_one() -> None:
    durability, first, second = Durability(0), segment(100), segment(50)
    durability.mark(first, 10)
    durability.mark(second, 15)

    durability.on_segment_synced(second, 50)
    assert durability.synced_end_offset == 0

    durability.on_segment_synced(first, 100)
    assert durability.synced_end_offset == 15


def test_a_segment_that_was_deleted_while_it_was_synced_is_still_awaited() -> None:
    durability, first, second = Durability(0), segment(100), segment(50)
    durability.mark(first, 10)
    durability.mark(second, 15)

    assert durability.awaited_segment(first.file) is first
    assert durability.awaited_segment(segment(100).file) is None


def test_a_leader_epoch_that_is_not_durable_holds_back_what_it_covers() -> None:
    durability, only = Durability(0), segment(100)
    durability.hold_back(4)
    durability.mark(only, 10)
    durability.on_segment_synced(only, 100)
    assert (durability.is_held_back, durability.synced_end_offset) == (True, 4)

    durability.release()
    assert (durability.is_held_back, durability.synced_end_offset) == (False, 10)


def test_leader_epochs_rewritten_during_their_sync_are_waited_for_and_then_let_go() -> None:
    """Found by seed 84 of storage: whoever waited for the old file waited for ever."""
    log = (rig := Rig()).open()
    append(log, batch(3), leader_epoch=0)
    append(log, batch(3), leader_epoch=1)
    log.advance_high_watermark(6)

    log.want_sync()
    log.delete_records_before(4)
    rig.finish_syncs()

    assert log.synced_end_offset == log.log_end_offset == 6
