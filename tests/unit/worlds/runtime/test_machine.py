"""What a starting broker takes from its machine, and how it is refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.core.model.listeners import Listener
from tidelog.core.node.settings import NodeSettings
from tidelog.worlds.runtime.machine import (
    MachineUnfit,
    advertised_listeners,
    bind,
    listen,
    lock_directories,
    per_ip_overrides,
)

TRY_TO_LOCK = """
import sys
from tidelog.worlds.runtime.machine import MachineUnfit, lock_directories
try:
    lock_directories(sys.argv[1:])
except MachineUnfit as error:
    sys.exit(str(error))
"""


def test_directories_are_made_and_locked(tmp_path: Path) -> None:
    """POSIX locks belong to a process, so another process has to try."""
    directory = str(tmp_path / "deep" / "data")
    locks = lock_directories([directory])
    command = [sys.executable, "-c", TRY_TO_LOCK, directory]
    other = subprocess.run(command, capture_output=True, text=True, check=False)
    for lock in locks:
        os.close(lock)
    assert other.returncode == 1
    assert f"another broker uses the log directory {directory}" in other.stderr


def test_a_directory_that_cannot_be_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineUnfit, match="cannot use the log directory"):
        lock_directories([str(tmp_path / "file" / "data")])


def test_a_port_in_use_is_refused_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MachineUnfit, match=f"port {port} is in use"):
            bind(Listener("PLAINTEXT", "127.0.0.1", port))


def test_a_port_that_another_takes_between_bind_and_listen_is_refused_by_name() -> None:
    here = Listener("PLAINTEXT", "127.0.0.1", 0)
    with bind(here) as first:
        there = here._replace(port=first.getsockname()[1])
        with bind(there) as second:
            listen(here, first, backlog=1)
            with pytest.raises(MachineUnfit, match=f"port {there.port} is in use"):
                listen(there, second, backlog=1)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(MachineUnfit, match=r"cannot listen on PLAINTEXT://192\.0\.2\.1:9092"):
        bind(Listener("PLAINTEXT", "192.0.2.1", 9092))


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost"])
def test_port_zero_is_advertised_as_the_port_that_was_bound(host: str) -> None:
    settings = NodeSettings.of({"node.id": "1", "listeners": f"PLAINTEXT://{host}:0"})
    with bind(settings.listeners[0]) as bound:
        [advertised] = advertised_listeners(settings, [bound])
        assert advertised.port == bound.getsockname()[1] > 0
    assert advertised.host


def test_what_is_advertised_explicitly_stays() -> None:
    texts = {
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://broker.example:7000",
    }
    settings = NodeSettings.of(texts)
    with bind(settings.listeners[0]) as bound:
        assert advertised_listeners(settings, [bound]) == (
            Listener("PLAINTEXT", "broker.example", 7000),
        )


def test_no_host_means_every_address() -> None:
    with bind(Listener("PLAINTEXT", "", 0)) as bound:
        bound.listen()
        port = bound.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()


def test_limits_of_single_addresses_are_read() -> None:
    assert per_ip_overrides("") == {}
    assert per_ip_overrides("10.0.0.1:5, ::1:7,[::2]:8") == {"10.0.0.1": 5, "::1": 7, "::2": 8}


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:many", ":5", "no.such.host.invalid:1"])
def test_limits_that_are_no_limits_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        per_ip_overrides(text)


def test_the_send_buffer_is_as_long_as_it_is_told_or_as_the_system_likes() -> None:
    def held_bytes(sock: socket.socket) -> int:
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    listener = Listener("PLAINTEXT", "127.0.0.1", 0)
    with (
        socket.socket() as untouched,
        bind(listener) as free,
        bind(listener, send_buffer_bytes=40_000) as short,
        bind(listener, send_buffer_bytes=80_000) as longer,
    ):
        assert held_bytes(free) == held_bytes(untouched)
        assert 40_000 <= held_bytes(short) < held_bytes(longer)
