"""Answers leave in order, in few writes, with little memory, whoever reads them how slowly."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from random import Random

import pytest

from tests.unit.worlds.runtime.fake_node import (
    MIB,
    FakeNode,
    Stage,
    answer,
    framed,
    loops,
    play,
    slice_request,
)
from tidelog.worlds.runtime.connection import ReadStop
from tidelog.worlds.runtime.events import (
    ConnectionClosed,
    ConnectionDropped,
)
from tidelog.worlds.runtime.os_disk import OsDisk, OsFile

pytestmark = pytest.mark.parametrize("loop_name", loops())


@pytest.fixture
def slice_node(tmp_path: Path) -> tuple[FakeNode, OsDisk, bytes]:
    data = Random(3).randbytes(12 * MIB)
    disk = OsDisk([str(tmp_path)], descriptors_max=10, wake=lambda: None)
    node = FakeNode()
    node.file = disk.open(str(tmp_path / "file"))
    node.file.append(data)
    return node, disk, data


def test_pipelined_requests_are_answered_in_order_in_one_tick(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        requests = [b"d" + str(i).encode() for i in range(50)]
        writer.write(b"".join(map(framed, requests)))
        assert [await answer(reader) for _ in requests] == requests
        assert 50 in stage.node.ticks

    play(loop_name, story)


def test_more_than_64_pipelined_requests_wait_their_turn(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        requests = [b"e" + str(i).encode() for i in range(1000)]
        writer.write(b"".join(map(framed, requests)))
        assert [await answer(reader) for _ in requests] == requests
        assert max(stage.node.ticks) <= 64

    play(loop_name, story)


def test_a_client_that_does_not_read_is_not_read_from(loop_name: str) -> None:
    """It pipelines 200 answers of 200 kB each and reads none: the server stops taking requests."""

    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        payloads = [b"e" + bytes([i]) * 200_000 for i in range(200)]
        writer.write(b"".join(map(framed, payloads)))
        await stage.until(lambda: stage.node.opened)
        connection = stage.server.connections[1]
        await stage.until(lambda: connection.stops & ReadStop.OUTPUT)
        other_reader, other_writer = await stage.connect()
        for _ in range(300):
            other_writer.write(framed(b"e"))
            await answer(other_reader)
        assert connection.stops & ReadStop.OUTPUT
        assert stage.node.frames - 300 < 150
        assert connection.answers.unsent_bytes < 2 * MIB
        assert [await answer(reader) for _ in payloads] == payloads

    play(loop_name, story)


def test_slices_and_bytes_come_in_order(
    loop_name: str, slice_node: tuple[FakeNode, OsDisk, bytes]
) -> None:
    node, disk, data = slice_node

    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        ranges = [(0, 5), (100, 300_000), (7, 0), (1, 12 * MIB - 1), (50, 262_144), (3, 9)]
        for position, size in ranges:
            writer.write(framed(b"e before") + slice_request(position, size) + framed(b"d after"))
        got = [await answer(reader) for _ in range(3 * len(ranges))]
        slices = [part for part in got if part not in (b"e before", b"d after")]
        assert slices == [data[position : position + size] for position, size in ranges]

    play(loop_name, story, disk=disk, node=node)


def test_a_slice_that_is_not_cached_is_read_in_a_thread(
    loop_name: str, slice_node: tuple[FakeNode, OsDisk, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, disk, data = slice_node
    assert node.file is not None
    monkeypatch.setattr(OsFile, "read_cached_into", lambda *_: None)

    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(slice_request(11, 3 * MIB) + framed(b"e after"))
        assert await answer(reader) == data[11 : 11 + 3 * MIB]
        assert await answer(reader) == b"e after"

    play(loop_name, story, disk=disk, node=node)
    assert node.file.pins == 0


def test_a_client_may_vanish_while_a_thread_reads_for_it(
    loop_name: str, slice_node: tuple[FakeNode, OsDisk, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, disk, _ = slice_node
    assert node.file is not None
    monkeypatch.setattr(OsFile, "read_cached_into", lambda *_: None)

    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(slice_request(0, 12 * MIB))
        await reader.readexactly(4)
        writer.transport.abort()
        await stage.until(lambda: stage.node.closed)

    play(loop_name, story, disk=disk, node=node)
    assert node.file.pins == 0


def test_a_slow_reader_of_a_long_slice_costs_one_piece(
    loop_name: str, slice_node: tuple[FakeNode, OsDisk, bytes]
) -> None:
    node, disk, data = slice_node

    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(slice_request(0, 12 * MIB) + slice_request(0, 12 * MIB))
        await reader.readexactly(4)
        answers = stage.server.connections[1].answers
        highest = 0
        for start in range(0, 12 * MIB, 64 * 1024):
            assert await reader.readexactly(64 * 1024) == data[start : start + 64 * 1024]
            highest = max(highest, answers.unsent_bytes)
        assert highest <= 256 * 1024
        assert await answer(reader) == data

    play(loop_name, story, disk=disk, node=node)


def test_a_slice_beyond_the_end_of_its_file_closes_the_connection(
    loop_name: str, slice_node: tuple[FakeNode, OsDisk, bytes]
) -> None:
    node, disk, _ = slice_node

    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(slice_request(12 * MIB - 10, 20))
        await reader.read()
        await stage.until(lambda: stage.node.closed)
        assert "shorter" in stage.trace.of(ConnectionDropped)[0].reason

    play(loop_name, story, disk=disk, node=node)


def test_close_comes_after_the_answers_before_it(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(framed(b"e1") + framed(b"c") + framed(b"e never"))
        assert await reader.read() == framed(b"e1") + framed(b"bye")
        await stage.until(lambda: stage.node.closed)
        assert [event.reason for event in stage.trace.of(ConnectionClosed)] == ["asked to"]

    play(loop_name, story)


def test_answers_are_not_held_back_by_nagle(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.connect()
        await stage.until(lambda: stage.node.opened)
        transport = stage.server.connections[1]._transport
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    play(loop_name, story)


def test_close_waits_for_a_slow_reader_of_a_long_answer(
    loop_name: str, slice_node: tuple[FakeNode, OsDisk, bytes]
) -> None:
    node, disk, data = slice_node

    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(slice_request(0, 12 * MIB) + framed(b"c"))
        assert await answer(reader) == data
        assert await reader.read() == framed(b"bye")

    play(loop_name, story, disk=disk, node=node)
