"""Whether anybody is there is known at once, and why not is said in one line."""

from __future__ import annotations

import socket

from tests.process.ports import HOST, free_port
from tidelog.client.shells.connectivity import unreachable


def test_one_that_is_there_is_enough() -> None:
    with socket.create_server((HOST, free_port())) as server:
        there = f"{HOST}:{server.getsockname()[1]}"
        assert unreachable({"bootstrap.servers": f"{HOST}:{free_port()},{there}"}) is None


def test_nobody_is_named_with_the_reason() -> None:
    one, other = free_port(), free_port()
    reason = unreachable({"bootstrap.servers": f"{HOST}:{one},{HOST}:{other}"})
    assert reason == (
        f"no broker can be reached: {HOST}:{one} (connection refused),"
        f" {HOST}:{other} (connection refused)"
    )


def test_a_host_that_is_none() -> None:
    reason = unreachable({"bootstrap.servers": "no.such.host.invalid:9092"})
    assert reason == "no broker can be reached: no.such.host.invalid:9092 (no such host)"
