"""`tidelog up`, `status` and `down`: one command to a cluster, and nothing left when it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.command_line import COMMAND, Said, tidelog_process, tidelog_verb
from tests.process.ports import free_port
from tests.process.waiting import wait_until
from tidelog.client.shells.blocking_clients import Producer
from tidelog.cluster.cluster import Cluster
from tidelog.cluster.processes import OsProcess, read_pid_file

pytestmark = pytest.mark.xdist_group("up")

WITHIN_S = 120.0
NODES_MAX = 3


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """Whatever a test leaves running there is ended."""
    path = tmp_path / "data"
    yield path
    if (path / "cluster.json").exists():
        Cluster.attach(path).shut_down(kills=True)


def up(data: Path, *arguments: str) -> Said:
    return tidelog_process("up", "--data", str(data), *_port(data), *arguments)


def _port(data: Path) -> list[str]:
    """Of a new cluster: ports that stay ours while it is down. A resumed one keeps what it has."""
    if (data / "cluster.json").exists():
        return []
    while True:
        ports = [free_port() for _ in range(NODES_MAX)]
        if ports == list(range(ports[0], ports[0] + NODES_MAX)):
            return ["--port", str(ports[0])]


def brokers(data: Path) -> list[OsProcess]:
    found = [read_pid_file(path) for path in sorted(data.glob("node-*/pid"))]
    return [each for each in found if each is not None]


class Foreground:
    """A `tidelog up` that stays, with its output in files."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.out = data.with_name("out")
        with self.out.open("wb") as out, data.with_name("err").open("wb") as err:
            self.process = subprocess.Popen(
                [*COMMAND, "up", "--data", str(data), *_port(data), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def wait_for(self, text: str) -> None:
        wait_until(
            lambda: text in self.out.read_text() or self.process.poll() is not None,
            repr(text),
            within_s=WITHIN_S,
        )
        assert text in self.out.read_text(), self.out.with_name("err").read_text()

    def exit_code(self) -> int:
        return self.process.wait(WITHIN_S)


# Detached.


def test_a_detached_cluster_is_ready_when_the_command_returns_until_it_is_taken_down(
    data: Path,
) -> None:
    """Written to, looked at, taken down and resumed with what was written."""
    said = up(data, "--detach", "--verbose")
    assert said.code == 0, said.err
    assert "3 brokers, profile tidelog, ready in" in said.out
    assert "processes started" in said.out and " s  ready" in said.out
    servers = json.loads(tidelog_verb("status", "--data", str(data), "--json").out)
    assert f"bootstrap servers: {servers['bootstrap_servers']}\n" in said.out
    with Producer({"bootstrap.servers": servers["bootstrap_servers"], "acks": "all"}) as producer:
        assert producer.send("orders", b"x", partition=0).result().offset == 0

    again = up(data, "--detach")
    assert again.code == 1
    assert again.err == f"tidelog up: the cluster in {data} is running already (nodes 1, 2, 3)\n"
    assert all(each.is_alive for each in brokers(data)) and len(brokers(data)) == 3

    def looks_well() -> bool:
        """A broker that is silent for seconds is left out."""
        text = tidelog_verb("status", "--data", str(data))
        assert text.code == 0
        return "orders-0" in text.out and "all in sync" in text.out

    wait_until(looks_well, "all in sync", within_s=WITHIN_S)
    was = brokers(data)
    down = tidelog_verb("down", "--data", str(data))
    assert down.code == 0 and down.out.startswith("stopped 3 nodes in ")
    assert not any(each.is_alive for each in was)
    assert tidelog_verb("down", "--data", str(data)).out == "the cluster was not running\n"
    dead = tidelog_verb("status", "--data", str(data))
    assert dead.code == 1 and "not running" in dead.out

    other = up(data, "--detach", "--brokers", "5")
    assert other.code == 2 and "cannot become 5 brokers" in other.err
    resumed = up(data, "--detach")
    assert resumed.code == 0, resumed.err
    cluster = Cluster.attach(data)
    cluster.wait_isr("orders")
    cluster.wait_until(
        lambda: [each.high_watermark for each in cluster.status().partitions] == [1],
        "what was written",
    )
    killed = tidelog_verb("down", "--data", str(data), "--kill")
    assert killed.code == 0 and killed.out.startswith("killed 3 nodes")


# In the foreground.


def test_in_a_pipe_changes_are_lines_and_ctrl_c_stops_everything(data: Path) -> None:
    running = Foreground(data, "--brokers", "3")
    running.wait_for("bootstrap servers: ")
    running.wait_for(", active controller ")  # the first look at it
    was = brokers(data)
    assert all(each.is_alive for each in was)

    fault = tidelog_verb("fault", "kill", "2", "--data", str(data))
    assert fault.code == 0
    running.wait_for(" -> down")
    running.wait_for("fault f1: killed broker 2")
    assert tidelog_verb("fault", "restart", "2", "--data", str(data)).code == 0
    running.wait_for("fault f1 is over")
    restarted = brokers(data)

    running.process.send_signal(signal.SIGINT)
    assert running.exit_code() == 0
    assert "stopped 3 nodes in " in running.out.read_text()
    assert not any(each.is_alive for each in (*was, *restarted))
    assert "NodeStopped" in (data / "node-1" / "broker.log").read_text()


def test_in_a_terminal_there_is_a_live_table(data: Path) -> None:
    terminal, their_end = pty.openpty()
    arguments = ["up", "--data", str(data), *_port(data), "--brokers", "2"]
    shown = ""
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=their_end, stdout=their_end, stderr=their_end
    ) as command:
        os.close(their_end)
        while "controller (active)" not in shown:
            shown += os.read(terminal, 65_536).decode(errors="replace")
        assert "bootstrap servers: 127.0.0.1:" in shown
        assert "\x1b[" in shown
        command.send_signal(signal.SIGINT)
        while "stopped 3 nodes" not in shown:
            shown += os.read(terminal, 65_536).decode(errors="replace")
        assert command.wait(WITHIN_S) == 0
    os.close(terminal)
    assert not any(each.is_alive for each in brokers(data))


def test_down_ends_a_command_in_the_foreground(data: Path) -> None:
    running = Foreground(data, "--brokers", "1")
    running.wait_for("stop: Ctrl-C")
    was = brokers(data)
    second = up(data)
    assert second.code == 1
    assert second.err == f"tidelog up: another program is running the cluster in {data}\n"
    assert all(each.is_alive for each in was)
    assert tidelog_verb("down", "--data", str(data)).code == 0
    assert running.exit_code() == 0
    assert not any(each.is_alive for each in was)


def test_the_brokers_of_a_killed_command_end_even_those_that_were_restarted(data: Path) -> None:
    running = Foreground(data, "--brokers", "2")
    running.wait_for("stop: Ctrl-C")
    assert tidelog_verb("fault", "restart", "2", "--data", str(data)).code == 0
    was = brokers(data)
    assert len(was) == 3 and all(each.is_alive for each in was)
    running.process.kill()
    running.process.wait()
    assert all(each.ended_within(WITHIN_S) for each in was)


def test_ctrl_c_during_the_start_leaves_nothing_running(data: Path) -> None:
    """The voters look for each other where nobody is, until somebody loses patience."""
    nowhere = ",".join(f"{each}@127.0.0.1:{each}" for each in (1, 2, 3))
    running = Foreground(data, "--set", f"controller.quorum.voters={nowhere}")
    wait_until(lambda: len(brokers(data)) == 3, "three processes", within_s=WITHIN_S)
    was = brokers(data)
    running.process.send_signal(signal.SIGINT)
    assert running.exit_code() == 130
    assert not any(each.is_alive for each in was)
    assert "bootstrap" not in running.out.read_text()


# What cannot be.


def test_a_port_in_use_is_named_and_nothing_starts(data: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        said = tidelog_process("up", "--data", str(data), "--port", str(port), "--brokers", "1")
    assert said.code == 1
    assert f"port {port} is in use, which is broker 1's" in said.err
    assert said.err.count("\n") == 1
    assert brokers(data) == []


def test_a_broker_that_dies_at_start_is_told_with_its_log(data: Path) -> None:
    said = up(data, "--brokers", "1", "--set", "log.retention.hours=soon")
    assert said.code == 1
    assert said.err.startswith("tidelog up: broker 1 ended with exit code 2: ")
    assert f"(log: {data / 'node-1' / 'broker.log'})" in said.err
    assert said.err.count("\n") == 1
    assert not any(each.is_alive for each in brokers(data))


def test_data_that_a_broker_cannot_read_is_told_with_its_log(data: Path) -> None:
    assert up(data, "--brokers", "1", "--detach").code == 0
    assert tidelog_verb("down", "--data", str(data)).code == 0
    (data / "node-1" / "data" / "meta.properties").write_text("what?\n")
    said = up(data)
    assert said.code == 1
    assert "broker 1 ended with exit code 1" in said.err and "meta.properties" in said.err
    assert f"(log: {data / 'node-1' / 'broker.log'})" in said.err
    assert not any(each.is_alive for each in brokers(data))
    assert (data / "cluster.json").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--brokers", "0"], "brokers: from 1 to 100, not 0"),
        (["--racks", "a,b,c", "--brokers", "2"], "3 racks need at least as many brokers"),
        (["--racks", "a,,b"], "'' is no name for a rack"),
        (["--profile", "slow"], "there is no profile 'slow'; one of: documents, kafka-4"),
        (["--set", "nonsense"], "write it like KEY=VALUE"),
        (["--port", "70000"], "port: from 0 to"),
        (["--brokers", "many"], "Invalid value for '--brokers'"),
        (["--what"], "No such option: --what"),
    ],
)
def test_bad_usage_is_refused_and_leaves_nothing(
    data: Path, arguments: list[str], complaint: str
) -> None:
    said = tidelog_process("up", "--data", str(data), *arguments)
    assert said.code == 2
    assert complaint in " ".join(said.err.replace("│", " ").split())
    assert not data.exists()


def test_a_plan_of_another_release_or_a_damaged_one_is_refused(data: Path) -> None:
    data.mkdir()
    (data / "cluster.json").write_text('{"version": 99}')
    for verb in ("up", "status", "down"):
        said = tidelog_verb(verb, "--data", str(data))
        assert said.code == 1
        assert said.err == (
            f"tidelog {verb}: {data / 'cluster.json'} is of format 99; this release knows 1\n"
        )
    (data / "cluster.json").write_text("{")
    assert "cluster.json is damaged" in tidelog_verb("up", "--data", str(data)).err
    (data / "cluster.json").unlink()


def test_where_there_is_no_cluster_that_is_said(tmp_path: Path) -> None:
    for verb in ("status", "down"):
        said = tidelog_verb(verb, "--data", str(tmp_path))
        assert said.code == 1
        assert said.err == f"tidelog {verb}: there is no cluster in {tmp_path}\n"


def test_a_directory_that_may_not_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = tidelog_verb("up", "--data", str(tmp_path / "file"))
    assert said.code == 1
    assert said.err.startswith(f"tidelog up: cannot use {tmp_path / 'file'}: ")


def test_a_half_dead_cluster_is_described_without_hanging(data: Path) -> None:
    """One broker killed, one paused: the third is alone and says what it knows."""
    assert up(data, "--detach").code == 0
    first, second, _ = brokers(data)
    os.kill(first.pid, signal.SIGKILL)
    os.kill(second.pid, signal.SIGSTOP)
    wait_until(lambda: second.is_paused and not first.is_alive, "their fate", within_s=WITHIN_S)
    said = tidelog_verb("status", "--data", str(data), "--json")
    assert said.code == 0
    document = json.loads(said.out)
    assert [each["state"] for each in document["nodes"]][:2] == ["down", "paused"]
    assert document["is_healthy"] is False
    assert tidelog_verb("down", "--data", str(data)).code == 0
    assert not second.is_alive
