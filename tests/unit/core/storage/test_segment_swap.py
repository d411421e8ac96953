"""The exchange of segments, killed after every step: old or new, never both, never neither."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.unit.core.storage.compaction_given import opened, pairs_of, put, roll
from tests.unit.core.storage.given import DIRECTORY, Rig
from tidelog.core.storage import events
from tidelog.core.storage.log import Log
from tidelog.core.storage.log_cleaner import CleanerSettings, LogCleaner
from tidelog.core.storage.segment_swap import SegmentSwap, SwapStep

OLD = [(0, "a", "1"), (1, "b", "1"), (2, "a", "2"), (3, "c", "1"), (4, "c", "2")]
NEW = [(1, "b", "1"), (2, "a", "2"), (4, "c", "2")]
STEPS = [step for step in SwapStep if step not in (SwapStep.DONE, SwapStep.ABORTED)]


def stopped_at(step: SwapStep) -> tuple[Rig, Log]:
    """Two segments of three, the third active, on their way into one."""
    rig, log = opened()
    put(log, *[(key, value) for _, key, value in OLD[:2]])
    roll(log, rig)
    put(log, *[(key, value) for _, key, value in OLD[2:]])
    roll(log, rig)
    cleaner = LogCleaner(
        logs=lambda: [log], settings=CleanerSettings, trace=rig.trace, slice_work=1
    )
    while getattr(log.files.swap, "step", None) is not step:
        cleaner.run_slice(rig.wall_ms)
        if getattr(log.files.swap, "step", None) is not step:
            rig.finish_syncs()
    return rig, log


@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_dies_leaves_old_or_new(step: SwapStep) -> None:
    rig, log = stopped_at(step)
    is_decided = step not in (SwapStep.WRITING, SwapStep.FLUSHING)

    rig.kill()

    again = rig.open(clean=False, recovery_point=log.recovery_point)
    assert pairs_of(again) == (NEW if is_decided else OLD)
    finished = [event for event in rig.trace.events if isinstance(event, events.SwapFinished)]
    assert bool(finished) is (is_decided and step is not SwapStep.LOG_NAMED)
    names = rig.names()
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    assert ("00000000000000000002.log" in names) is not is_decided


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("step", STEPS)
def test_a_power_loss_leaves_old_or_new_and_a_second_one_changes_nothing(
    step: SwapStep, seed: int
) -> None:
    rig, log = stopped_at(step)
    rig.random.seed(seed)
    point = log.recovery_point
    found = []
    for _ in range(2):
        rig.lose_power()
        again = rig.open(clean=False, recovery_point=point)
        found.append(pairs_of(again))
        for before, after in pairwise(again.files.segments):
            assert before.read_end_offset() == after.base_offset

    assert found[0] in (OLD, NEW)
    assert found[1] in (found[0], NEW)
    if step in STEPS[STEPS.index(SwapStep.OLD_RETIRED) :]:
        assert found[0] == NEW


@pytest.mark.parametrize("step", STEPS)
def test_a_truncation_meets_a_settled_log(step: SwapStep) -> None:
    rig, log = stopped_at(step)

    log.truncate_to(2)

    assert log.files.swap is None
    is_new = step in STEPS[STEPS.index(SwapStep.OLD_RETIRED) :]
    left = [(1, "b", "1")] if is_new else OLD[:2]
    assert pairs_of(log) == left
    rig.lose_power()
    assert pairs_of(rig.open(clean=False, recovery_point=0)) == left


def test_readers_that_hold_a_slice_of_an_old_segment_can_finish_it() -> None:
    rig, log = stopped_at(SwapStep.NAMED_SWAP)
    piece = log.read(0, bytes_max=10**6, end_offset=log.log_end_offset)
    assert piece is not None
    before = piece.file.read(piece.position, piece.size_bytes)
    rig.finish_syncs()
    swap = log.files.swap
    assert isinstance(swap, SegmentSwap)

    swap.advance()

    assert swap.step is SwapStep.OLD_RETIRED
    assert pairs_of(log) == NEW
    assert piece.file.path.endswith(".deleted")
    assert piece.file.read(piece.position, piece.size_bytes) == before


def test_a_segment_that_is_no_swap_of_ours_is_removed() -> None:
    rig, log = opened()
    put(log, ("a", "1"))
    rig.disk.open(f"{DIRECTORY}/{0:020d}.log.swap")

    rig.kill()

    assert pairs_of(rig.open()) == [(0, "a", "1")]
