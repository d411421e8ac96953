"""The server shell: ticks, memory for requests, limits, and no mercy for broken promises."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.worlds.runtime.fake_node import (
    MIB,
    FakeNode,
    Stage,
    answer,
    framed,
    limits,
    loops,
    play,
)
from tidelog.worlds.runtime.clock import MonotonicClock
from tidelog.worlds.runtime.events import (
    ConnectionDropped,
    ConnectionRefused,
    SocketTrouble,
)
from tidelog.worlds.runtime.os_disk import OsDisk
from tidelog.worlds.runtime.server import Admission

pytestmark = pytest.mark.parametrize("loop_name", loops())


def test_requests_of_many_connections_that_are_ready_together_share_a_tick(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        clients = [await stage.connect() for _ in range(20)]
        for reader, writer in clients:
            writer.write(framed(b"e"))
            await answer(reader)
        for _, writer in clients:
            writer.write(framed(b"d together"))
        for reader, _ in clients:
            assert await answer(reader) == b"d together"
        assert max(stage.node.ticks) > 1

    play(loop_name, story)


@pytest.mark.parametrize("size", [-1, -(2**31), 10 * MIB + 1, 2**31 - 1])
def test_a_bad_size_closes_that_connection_only_and_says_why(loop_name: str, size: int) -> None:
    async def story(stage: Stage) -> None:
        bad_reader, bad_writer = await stage.connect()
        reader, writer = await stage.connect()
        bad_writer.write(framed(b"e fine") + struct.pack(">i", size) + b"rest")
        assert (await bad_reader.read()) in (b"", framed(b"e fine"))
        writer.write(framed(b"e hello"))
        assert await answer(reader) == b"e hello"
        reasons = [event.reason for event in stage.trace.of(ConnectionDropped)]
        assert len(reasons) == 1 and str(size) in reasons[0]
        assert stage.server.budget.used_bytes == 0

    play(loop_name, story)


def test_a_truncated_frame_gives_its_memory_back(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        _, writer = await stage.connect()
        writer.write(struct.pack(">i", 9 * MIB) + bytes(3 * MIB))
        await stage.until(lambda: stage.server.budget.used_bytes >= 3 * MIB)
        writer.close()
        await stage.until(lambda: stage.node.closed)
        assert stage.server.budget.used_bytes == 0

    play(loop_name, story)


def test_connections_starved_of_memory_are_fed_in_turn(loop_name: str) -> None:
    """Ten requests of 10 MB at once under a budget of little more than one: all are answered."""

    async def story(stage: Stage) -> None:
        payloads = [b"e" + bytes([i]) * 9_000_000 for i in range(10)]
        clients = [await stage.connect() for _ in payloads]

        async def ask(index: int) -> bytes:
            reader, writer = clients[index]
            writer.write(framed(payloads[index]))
            return await answer(reader)

        assert await asyncio.gather(*map(ask, range(10))) == payloads

    play(loop_name, story, server_limits=limits(partial_frames_bytes_max=12 * MIB))


def test_a_paused_connection_keeps_its_frames_until_the_node_resumes_it(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(framed(b"p") + framed(b"e parked") + framed(b"e too"))
        assert await answer(reader) == b"p"
        assert stage.node.frames == 1
        other_reader, other_writer = await stage.connect()
        other_writer.write(framed(b"e" + bytes(1000)))
        await answer(other_reader)
        stage.server.resume_reading(stage.node.paused[0])
        assert await answer(reader) == b"e parked"
        assert await answer(reader) == b"e too"
        writer.write(framed(b"e new"))
        assert await answer(reader) == b"e new"

    play(loop_name, story)


def test_limits_refuse_by_closing(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        kept = [await stage.connect() for _ in range(2)]
        refused, _ = await stage.connect()
        assert await refused.read() == b""
        assert "max.connections.per.ip is 2" in stage.trace.of(ConnectionRefused)[0].reason
        kept[0][1].close()
        await stage.until(lambda: stage.node.closed)
        reader, writer = await stage.connect()
        writer.write(framed(b"e"))
        assert await answer(reader) == b"e"
        assert len(stage.node.opened) == 3

    play(loop_name, story, server_limits=limits(per_ip_max=2))
    play(
        loop_name,
        _the_third_is_refused,
        server_limits=limits(connections_max=2),
    )


async def _the_third_is_refused(stage: Stage) -> None:
    kept = [await stage.connect() for _ in range(2)]
    refused, _ = await stage.connect()
    assert await refused.read() == b""
    assert "max.connections is 2" in stage.trace.of(ConnectionRefused)[0].reason
    assert len(kept) == len(stage.node.opened) == 2


def test_an_address_may_have_a_limit_of_its_own(loop_name: str) -> None:
    admission = Admission(100, 0, {"127.0.0.1": 1})

    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(framed(b"e"))
        assert await answer(reader) == b"e"
        refused, _ = await stage.connect()
        assert await refused.read() == b""

    play(loop_name, story, server_limits=limits(admission=lambda: admission))


def test_answers_of_a_tick_in_which_the_process_was_stopped_do_not_leave(loop_name: str) -> None:
    """Whoever asked must ask again; the next tick answers as usual."""

    class Stopped(FakeNode):
        def end_of_tick(self, now_ms: int) -> None:
            super().end_of_tick(now_ms)
            if self.frames == 1:  # stopped before this answer could leave
                stage_clock.late_ms = 10_000

    node = Stopped()
    stage_clock = LateClock()

    async def story(stage: Stage) -> None:
        stage.server._clock = stage_clock
        reader, writer = await stage.connect()
        writer.write(framed(b"e too late"))
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        reader, writer = await stage.connect()
        writer.write(framed(b"e in time"))
        assert await answer(reader) == b"e in time"

    play(loop_name, story, node=node, server_limits=limits(tick_ms_max=5_000))


class LateClock(MonotonicClock):
    """Jumps as far as the test says."""

    late_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.late_ms


def test_an_idle_connection_is_closed(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        reader, _ = await stage.connect()
        await stage.until(lambda: stage.node.opened)
        stage.server.connections[1].active_ms -= 10_000
        stage.server.sweep()
        assert await reader.read() == b""

    play(loop_name, story, server_limits=limits(idle_ms_max=9_000))


def test_a_stalled_request_loses_its_connection_when_others_starve(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        half = struct.pack(">i", 10 * MIB) + bytes(6 * MIB)
        stalled_reader, stalled_writer = await stage.connect()
        stalled_writer.write(half)
        await stage.until(lambda: stage.server.budget.used_bytes >= 6 * MIB)
        reader, writer = await stage.connect()
        payload = b"e" + bytes(9 * MIB)
        writer.write(framed(payload))
        await stage.until(lambda: stage.server.starved)

        stage.server.connections[1].active_ms -= 10_000
        stage.server.sweep()

        with suppress(ConnectionResetError):
            assert await stalled_reader.read() == b""
        assert await answer(reader) == payload

    play(loop_name, story, server_limits=limits(partial_frames_bytes_max=12 * MIB))


def test_a_request_that_waits_for_memory_too_long_loses_its_connection(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        half = struct.pack(">i", 10 * MIB) + bytes(6 * MIB)
        _, holder = await stage.connect()
        holder.write(half)
        await stage.until(lambda: stage.server.budget.used_bytes >= 6 * MIB)
        starved_reader, starved = await stage.connect()
        starved.write(half)
        await stage.until(lambda: stage.server.starved)

        stage.server.connections[2].active_ms -= 31_000
        stage.server.sweep()

        with suppress(ConnectionResetError):
            assert await starved_reader.read() == b""
        assert not stage.server.budget.waiting

    play(loop_name, story, server_limits=limits(partial_frames_bytes_max=12 * MIB))


def test_the_timer_fires_at_the_earliest_deadline_and_not_before(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        now_ms = stage.server.begin_tick()
        stage.server.arm(now_ms + 50_000)
        stage.server.arm(now_ms + 15)
        stage.server.arm(now_ms + 40_000)
        await stage.until(lambda: stage.node.timers)
        assert now_ms + 15 <= stage.node.timers[0] < now_ms + 5_000

    play(loop_name, story)


def test_an_unexpected_error_in_the_node_ends_the_process(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        _, writer = await stage.connect()
        writer.write(framed(b"x"))
        await stage.until(lambda: stage.failures)

    stage = play(loop_name, story)
    assert [str(failure) for failure in stage.failures] == ["a broken promise"]


def test_an_error_that_escapes_from_the_shell_itself_ends_the_process_too(loop_name: str) -> None:
    def broken() -> None:
        raise KeyError("a bug")

    async def story(stage: Stage) -> None:
        stage.server.loop.call_soon(broken)
        await stage.until(lambda: stage.failures)

    stage = play(loop_name, story)
    assert isinstance(stage.failures[0], KeyError)


def test_trouble_with_sockets_is_told_and_survived(loop_name: str) -> None:
    def unlucky() -> None:
        raise OSError("no route to host")

    async def story(stage: Stage) -> None:
        stage.server.loop.call_soon(unlucky)
        reader, writer = await stage.connect()
        writer.write(framed(b"e"))
        assert await answer(reader) == b"e"
        assert "no route to host" in stage.trace.of(SocketTrouble)[0].reason

    assert play(loop_name, story).failures == []


def test_a_node_that_was_left_hears_nothing_more_and_its_last_answers_leave(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(framed(b"e"))
        await answer(reader)
        stage.server.begin_tick()
        stage.node.deferred.append((1, b"the last"))
        stage.server.leave_node()
        ticks = len(stage.node.ticks)
        writer.write(framed(b"e never"))
        assert await answer(reader) == b"the last"
        await stage.server.close_connections("the end", within_ms=1000)
        assert (len(stage.node.ticks), stage.node.closed, stage.node.frames) == (ticks, [], 1)

    play(loop_name, story)


def test_sync_results_reach_the_node_in_the_order_of_the_wishes(
    loop_name: str, tmp_path: Path
) -> None:
    node = FakeNode()
    stages: list[Stage] = []

    def wake() -> None:
        stages[0].server.loop.call_soon_threadsafe(stages[0].server.on_disk_results)

    disk = OsDisk([str(tmp_path)], descriptors_max=10, wake=wake)

    async def story(stage: Stage) -> None:
        stages.append(stage)
        first, second = disk.open(str(tmp_path / "a")), disk.open(str(tmp_path / "b"))
        for count in range(5):
            first.append(b"x")
            first.sync()
            disk.sync_directory(str(tmp_path))
            second.append(b"y" * count)
            second.sync()
        await stage.until(lambda: len(node.synced) == 10)
        assert [size for file, size in node.synced if file is first] == [1, 2, 3, 4, 5]
        assert [size for file, size in node.synced if file is second] == [0, 1, 3, 6, 10]

    play(loop_name, story, disk=disk, node=node)
    disk.close()
