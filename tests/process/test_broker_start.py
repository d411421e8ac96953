"""Starting a broker: what it needs, what it refuses in one line, and what it tells when ready."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.broker import BrokerProcess, serves
from tests.process.ports import free_port
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import WireClient


def run_to_the_end(
    *arguments: str, python_options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """A broker that is expected to refuse."""
    command = [sys.executable, *python_options, "-m", "tidelog.cli.main", "broker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_every_bad_setting_is_told_at_once_and_nothing_is_made(tmp_path: Path) -> None:
    config = write(
        tmp_path / "broker.toml",
        f'node.id = 1\nlog.dirs = "{tmp_path}/data"\nlog.segment.bites = 5\nnum.partitions = 0\n',
    )
    refused = run_to_the_end("--config", config, "--set", "min.insync.replicas=x")

    assert refused.returncode == 2
    assert refused.stdout == ""
    lines = refused.stderr.splitlines()
    assert len(lines) == 3
    assert f"{config}:3: log.segment.bites" in lines[0] and "log.segment.bytes" in lines[0]
    assert f"{config}:4: num.partitions: '0' is refused" in lines[1] and "at least 1" in lines[1]
    assert "--set min.insync.replicas=x" in lines[2]
    assert not (tmp_path / "data").exists()


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run_to_the_end(
            *("--set", "node.id=1", "--set", f"log.dirs={tmp_path}/data"),
            *("--set", f"listeners=PLAINTEXT://127.0.0.1:{port}"),
        )
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert f"port {port} is in use: cannot listen on PLAINTEXT://127.0.0.1:{port}" in line


def test_a_second_broker_on_one_directory_is_one_clear_line(tmp_path: Path) -> None:
    with BrokerProcess(directory=tmp_path) as broker:
        refused = run_to_the_end(
            *("--config", str(tmp_path / "broker.toml")),
            *("--set", f"listeners=PLAINTEXT://127.0.0.1:{free_port()}"),
        )
        assert refused.returncode == 1
        [line] = refused.stderr.splitlines()
        assert f"another broker uses the log directory {broker.log_directory}" in line
        assert serves(broker.host, broker.port)


def test_python_without_assertions_is_refused(tmp_path: Path) -> None:
    refused = run_to_the_end("--set", "node.id=1", python_options=("-O",))
    assert refused.returncode == 1
    assert "assertions are disabled" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_directory_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    file = write(tmp_path / "file", "")
    refused = run_to_the_end("--set", "node.id=1", "--set", f"log.dirs={file}/data")
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert f"cannot use the log directory {file}/data" in line


def test_a_directory_of_another_node_is_one_clear_line(tmp_path: Path) -> None:
    with BrokerProcess(directory=tmp_path) as broker:
        assert broker.stop() == 0
    refused = run_to_the_end("--config", str(tmp_path / "broker.toml"), "--set", "node.id=2")
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert "cannot start" in line and str(broker.log_directory) in line


def test_port_zero_takes_a_free_port_and_advertises_it(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "tidelog.cli.main", "broker", "--set", "node.id=5"]
    command += ["--set", "listeners=PLAINTEXT://127.0.0.1:0", "--ready-file", str(ready)]
    command += ["--set", f"log.dirs={tmp_path}/data", "--set", "tidelog.log.format=json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: ready.exists() or process.poll() is not None, "the ready file")
        [address] = ready.read_text().splitlines()
        with WireClient(address) as client:
            [broker] = client.ask("Metadata", 9, topics=[]).brokers
        assert (broker.node_id, f"{broker.host}:{broker.port}") == (5, address)
    finally:
        process.terminate()
        _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    events = [json.loads(line) for line in told.splitlines()]
    [said] = [event for event in events if event["event"] == "BrokerReady"]
    assert said["listeners"] == said["advertised"] == [f"PLAINTEXT://{address}"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_lines_have_the_form_that_was_asked_for(tmp_path: Path, form: str) -> None:
    with BrokerProcess(directory=tmp_path, settings={"tidelog.log.format": form}) as broker:
        with socket.create_connection((broker.host, broker.port)) as stranger:
            stranger.sendall(b"\xff\xff\xff\xff")
            assert stranger.recv(1) == b""
        wait_until(lambda: "size -1 is not within" in broker.log_text(), "the reason in the log")
        assert broker.stop() == 0
        lines = broker.log_text().splitlines()
    [dropped] = [line for line in lines if "size -1 is not within" in line]
    assert "ConnectionDropped" in dropped
    if form == "json":
        assert all({"time", "level", "event"} <= json.loads(line).keys() for line in lines)
    else:
        assert " WARNING ConnectionDropped connection=" in dropped


def test_the_log_is_as_loud_as_the_setting_says(tmp_path: Path) -> None:
    with BrokerProcess(directory=tmp_path, settings={"tidelog.log.level": "debug"}) as broker:
        with socket.create_connection((broker.host, broker.port)):
            wait_until(lambda: "ConnectionOpened" in broker.log_text(), "a quiet event in the log")
        assert broker.stop() == 0
