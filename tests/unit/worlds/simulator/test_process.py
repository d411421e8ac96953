"""A process runs a node over real frames; it can be killed, unplugged, paused, started again."""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.worlds.simulator.echo import Stage, Talker
from tidelog.worlds.simulator.node_process import STOP_WITHIN_MS
from tidelog.worlds.simulator.process import Halted


@pytest.mark.parametrize("seed", range(10))
def test_frames_reach_the_node_whole_and_answers_come_back_in_order(seed: int) -> None:
    stage = Stage(seed=seed)
    for number in range(20):
        stage.talker.say(b"echo %d" % number)

    assert stage.deliver(20) == [b"%d" % number for number in range(20)]
    assert stage.node.opened == ["client"]
    assert 0 < stage.node.ticks == stage.node.checks


def test_an_answer_that_waits_for_a_sync_takes_time() -> None:
    stage = Stage()
    stage.talker.say(b"keep hello")
    assert stage.deliver(1) == [b"kept 5"]


def test_a_slice_of_a_file_is_read_for_the_answer() -> None:
    stage = Stage()
    stage.talker.say(b"keep hello")
    stage.talker.say(b"show")
    assert sorted(stage.deliver(2)) == [b"hello", b"kept 5"]


def test_a_killed_process_finds_everything_it_appended() -> None:
    stage = Stage()
    stage.talker.say(b"keep hello")
    stage.world.run_until(lambda: bool(stage.node.unsynced), within_ms=100)

    stage.process.kill()
    stage.world.run_for(5)
    assert stage.talker.closed is not None

    stage.process.start()
    stage.talker = Talker(stage.network)
    stage.world.run_for(5)
    stage.talker.say(b"show")
    assert stage.deliver(1) == [b"hello"]


def test_after_a_power_loss_only_what_was_synced_is_sure() -> None:
    seen = set()
    for seed in range(30):
        stage = Stage(seed=seed)
        stage.talker.say(b"keep sure")
        stage.deliver(1)
        stage.talker.say(b"keep maybe")
        stage.world.run_until(
            partial(lambda stage: bool(stage.node.unsynced), stage), within_ms=100
        )

        stage.process.lose_power()
        assert stage.talker.closed is None, "nobody is left to say so"
        stage.process.start()
        file = stage.node.file
        assert file is not None
        seen.add(file.read(0, 100))

    assert all(content.startswith(b"sure") for content in seen)
    assert {b"sure", b"suremaybe"} <= seen


def test_a_paused_process_hears_everything_after_it_wakes() -> None:
    stage = Stage()
    stage.process.pause()
    stage.talker.say(b"echo a")
    stage.talker.say(b"wait 10")
    late = Talker(stage.network)
    stage.world.run_for(500)
    assert stage.talker.answers() == []
    assert stage.node.opened == ["client"]

    stage.process.wake()
    assert stage.deliver(2)[0] == b"a"
    assert stage.node.opened == ["client", "client"]
    assert late.closed is None


def test_a_timer_that_fell_due_during_a_pause_fires_late() -> None:
    stage = Stage()
    stage.talker.say(b"wait 10")
    stage.world.run_for(5)
    stage.process.pause()
    stage.world.run_for(500)

    stage.process.wake()

    assert int(stage.deliver(1)[0]) > 400


def test_timers_fire_at_their_time_and_the_earlier_one_first() -> None:
    stage = Stage()
    stage.talker.say(b"wait 100")
    stage.talker.say(b"wait 20")
    assert stage.deliver(2) == [b"0", b"0"]


def test_a_node_may_ask_for_its_own_end() -> None:
    stage = Stage()
    stage.talker.say(b"halt")
    stage.world.run_for(10)

    assert not stage.process.is_up
    assert stage.process.halt_reason == "asked to"
    assert stage.world.trace.counts()[Halted.__name__] == 1
    assert stage.talker.closed is not None


def test_a_failed_sync_reaches_the_node() -> None:
    stage = Stage()
    stage.process.store.fail_next_sync()
    stage.talker.say(b"keep hello")
    stage.world.run_for(100)
    assert stage.process.halt_reason == "sync failed: input/output error"
    assert stage.talker.answers() == []


def test_a_node_that_cannot_start_is_a_halted_process() -> None:
    stage = Stage()
    stage.process.kill()
    stage.process.store.fail_operation(after=0)
    stage.process.start()
    assert not stage.process.is_up
    assert stage.process.halt_reason is not None


def test_a_stopped_process_says_goodbye_to_its_disk() -> None:
    stage = Stage()
    stage.process.stop()
    assert not stage.process.is_up
    stage.process.start()
    file = stage.node.file
    assert file is not None
    assert file.read(0, 100) == b"(stopped)"


def test_nonsense_as_a_size_closes_the_connection_and_the_node_hears_of_it() -> None:
    stage = Stage()
    stage.talker.end.send(b"\xff\xff\xff\xff")
    stage.world.run_for(10)
    assert stage.talker.closed == "closed"
    assert stage.node.closed == 1


def test_a_connection_that_the_node_drops_is_closed_after_its_answers() -> None:
    stage = Stage()
    stage.talker.say(b"echo a")
    stage.talker.say(b"nonsense")
    stage.world.run_for(10)
    assert stage.talker.answers() == [b"a"]
    assert stage.talker.closed == "closed"
    assert stage.node.closed == 1


def test_a_node_that_is_not_ready_to_stop_goes_on_until_it_is() -> None:
    stage = Stage()
    stage.node.is_slow_to_stop = True
    stage.process.stop()
    stage.talker.say(b"echo still here")
    assert (stage.deliver(1), stage.process.is_up) == ([b"still here"], True)

    stage.node.is_ready_to_stop = True
    stage.talker.say(b"echo last")
    stage.world.run_for(5)

    assert not stage.process.is_up
    assert stage.talker.answers() == [b"still here", b"last"]
    assert stage.talker.closed == "closed"


def test_a_node_that_never_gets_ready_is_stopped_all_the_same() -> None:
    stage = Stage()
    stage.node.is_slow_to_stop = True
    stage.process.stop()
    stage.process.stop()
    stage.world.run_for(STOP_WITHIN_MS + 1)
    assert not stage.process.is_up
    stage.process.start()
    file = stage.node.file
    assert file is not None
    assert file.read(0, 100) == b"(stopped)"


def test_a_wiped_process_starts_with_an_empty_disk() -> None:
    stage = Stage()
    stage.talker.say(b"keep hello")
    stage.deliver(1)
    stage.process.kill()
    stage.process.wipe()
    stage.process.start()
    file = stage.node.file
    assert file is not None
    assert file.size_bytes == 0
