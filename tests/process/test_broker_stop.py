"""Stopping a broker: gracefully on a signal, loudly when a promise was broken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.broker import BrokerProcess
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import WireClient, fetch_fields
from tidelog.core.wire.records import NewRecord, build


def produce(broker: BrokerProcess, topic: str, value: bytes) -> None:
    with WireClient(broker.address) as client:
        answer = client.produce(topic, build([NewRecord(value=value, timestamp_ms=1)]))
        assert answer.error_code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_gracefully(tmp_path: Path, number: signal.Signals) -> None:
    """Exit code 0, the mark of a clean stop, and a next start that scans nothing."""
    with BrokerProcess(directory=tmp_path) as broker:
        with WireClient(broker.address) as client:
            client.create_topic("orders")
        produce(broker, "orders", b"kept")
        os.kill(broker.pid, number)
        assert broker.exit_code_within() == 0
        assert (broker.log_directory / ".kafka_cleanshutdown").exists()

        broker.start()

        assert "is_clean=true" in broker.log_text()
        assert "LogRecovered" not in broker.log_text()
        with WireClient(broker.address) as client:
            assert [record.value for record in client.read_all("orders")] == [b"kept"]


def test_open_connections_do_not_hold_it_up(tmp_path: Path) -> None:
    with BrokerProcess(directory=tmp_path) as broker:
        clients = [WireClient(broker.address) for _ in range(20)]
        clients[0].create_topic("orders")
        clients[0].send("Fetch", 11, **fetch_fields("orders", 0, wait_ms=60_000))
        clients[1].socket.sendall(b"\x00\x00\x10\x00half a request")
        assert broker.stop() == 0
        assert all(client.is_closed_by_broker() for client in clients)


def test_a_broker_that_was_killed_starts_again_by_itself(tmp_path: Path) -> None:
    with BrokerProcess(directory=tmp_path) as broker:
        with WireClient(broker.address) as client:
            client.create_topic("orders")
        produce(broker, "orders", b"kept")
        broker.kill()
        assert not (broker.log_directory / ".kafka_cleanshutdown").exists()
        broker.start()
        with WireClient(broker.address) as client:
            assert [record.value for record in client.read_all("orders")] == [b"kept"]


BROKEN_BROKER = """
import sys
from tidelog.core.node.node import Node
from tidelog.worlds.runtime.broker import run_broker

def broken(self, connection, frame, now_ms):
    raise AssertionError("the high watermark went back")

Node.on_frame = broken
sys.exit(run_broker(None, sys.argv[2:], ready_file=sys.argv[1]))
"""


def test_a_broken_promise_ends_the_process_with_its_reason(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [sys.executable, "-c", BROKEN_BROKER, str(ready), "node.id=1"]
    command += [f"log.dirs={tmp_path}/data", "listeners=PLAINTEXT://127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: ready.exists() or process.poll() is not None, "the ready file")
        with WireClient(ready.read_text().strip()) as client:
            client.send("ApiVersions", 0)
            assert client.is_closed_by_broker()
        _, told = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 1
    assert 'BrokerFailed node_id=1 reason="AssertionError: the high watermark went back"' in told
    assert "Traceback" in told
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
