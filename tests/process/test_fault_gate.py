"""Faults between one broker and its clients: each takes effect, and each can be undone."""

from __future__ import annotations

import base64
import json
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from tests.process.broker import BrokerProcess, serves
from tests.process.gates import SOCKET, WITH_GATE, Gate, NamedClient
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import batch_of, fetch_fields, produce_fields
from tidelog.core.model.errors import ErrorCode

LONG_MS = 3_600_000
CLOCK_S = 0.001
"""A broker counts whole milliseconds, so its clock may be ahead of ours by less than one."""


class Stage(NamedTuple):
    """A broker with a gate, and a topic of its own for each test."""

    broker: BrokerProcess
    gate: Gate
    topic: str

    def client(self, name: str = "a") -> NamedClient:
        return NamedClient(self.broker.address, name)

    def end_offset(self) -> int:
        """As somebody sees it who is not disturbed."""
        with self.client("observer") as client:
            return client.end_offset(self.topic)

    def produce(self, client: NamedClient) -> int:
        """One record; the error code."""
        code: int = client.produce(self.topic, batch_of(b"x")).error_code
        return code

    def send_produce(self, client: NamedClient, *, acks: int = -1) -> None:
        client.send("Produce", 9, **produce_fields(self.topic, batch_of(b"x"), acks=acks))

    def send_fetch(self, client: NamedClient, *, wait_ms: int = 0) -> None:
        client.send("Fetch", 11, **fetch_fields(self.topic, 0, wait_ms=wait_ms))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("gate")
    with BrokerProcess(directory=directory, arguments=WITH_GATE) as broker:
        yield broker


@pytest.fixture
def stage(shared: BrokerProcess) -> Stage:
    return set_up(shared)


@pytest.fixture
def own_stage(tmp_path: Path) -> Iterator[Stage]:
    """For tests that end the broker."""
    with BrokerProcess(directory=tmp_path, arguments=WITH_GATE) as broker:
        yield set_up(broker)


def set_up(broker: BrokerProcess) -> Stage:
    gate = Gate(broker.directory)
    gate.replace()
    topic = f"orders-{uuid4().hex[:8]}"
    with NamedClient(broker.address, "maker") as client:
        client.create_topic(topic)
    return Stage(broker, gate, topic)


def test_withheld_answers_come_in_order_when_the_cut_heals(stage: Stage) -> None:
    stage.gate.replace({"what": "cut", "from": 1, "to": "client:a"})
    with stage.client() as client:
        for _ in range(3):
            stage.send_produce(client)
        stage.gate.wait_until_held(3)
        assert stage.end_offset() == 3, "its requests get through, and others are not disturbed"

        stage.gate.replace()

        assert [client.next_correlation_id() for _ in range(3)] == [1, 2, 3]


def test_what_was_sent_into_a_cut_arrives_after_it_even_if_its_sender_left(stage: Stage) -> None:
    stage.gate.replace({"what": "cut", "from": "client:a", "to": 1})
    with stage.client() as client:
        stage.send_produce(client)
        stage.gate.wait_until_held(1)
    assert stage.end_offset() == 0

    stage.gate.replace()

    wait_until(lambda: stage.end_offset() == 1, "the late record")


def test_a_cut_meets_connections_of_old_and_new(stage: Stage) -> None:
    with stage.client() as old:
        assert old.end_offset(stage.topic) == 0
        stage.gate.replace({"what": "cut", "from": "clients", "to": "*"})
        with stage.client("b") as new:
            for client in (old, new):
                client.send("Metadata", 12, topics=[])
            stage.gate.wait_until_held(2)
            stage.gate.replace()
            for client in (old, new):
                assert client.answer("Metadata", 12).brokers[0].node_id == 1


def test_answers_with_slices_of_files_are_held_and_come_whole(stage: Stage) -> None:
    batch = batch_of(b"v" * 200_000)
    with stage.client() as client:
        assert client.produce(stage.topic, batch).error_code == 0
        stage.gate.replace({"what": "cut", "from": 1, "to": "clients"})
        stage.send_fetch(client)
        stage.gate.wait_until_held(1)
        stage.gate.replace()
        records = client.answer("Fetch", 11).responses[0].partitions[0].records
        assert bytes(records)[8:] == batch[8:12] + bytes(records)[12:16] + batch[16:]


def test_a_delay_makes_answers_late_and_its_end_makes_them_come(stage: Stage) -> None:
    with stage.client() as client:
        stage.gate.replace({"what": "delay", "from": 1, "to": "clients", "delay_ms": 300})
        asked_s = time.monotonic()
        client.ask("Metadata", 12, topics=[])
        assert time.monotonic() - asked_s >= 0.3 - CLOCK_S

        stage.gate.replace({"what": "delay", "from": "clients", "to": 1, "delay_ms": LONG_MS})
        client.send("Metadata", 12, topics=[])
        stage.gate.wait_until_held(1)
        stage.gate.replace()
        assert client.answer("Metadata", 12).brokers[0].node_id == 1


def test_dropped_frames_are_sent_again_until_they_get_through(stage: Stage) -> None:
    stage.gate.replace({"what": "drop", "from": 1, "to": "client:a", "chance": 1})
    with stage.client() as client:
        client.send("Metadata", 12, topics=[])
        wait_until(lambda: stage.gate.list()["injected"]["r1"] >= 2, "the second loss")
        stage.gate.replace()
        assert client.answer("Metadata", 12).brokers[0].node_id == 1


def test_a_rule_ends_by_itself(stage: Stage) -> None:
    until_ms = time.time_ns() // 1_000_000 + 1_500
    stage.gate.replace({"what": "cut", "from": "clients", "to": 1, "until_ms": until_ms})
    with stage.client() as client:
        client.send("Metadata", 12, topics=[])
        assert client.answer("Metadata", 12).brokers[0].node_id == 1
    assert time.time() + CLOCK_S >= until_ms / 1_000
    assert stage.gate.list()["rules"] == []
    assert "FaultsChanged because=expired" in stage.broker.log_text()


def test_the_nth_request_and_some_more_are_answered_with_the_error(stage: Stage) -> None:
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    rule = {"what": "error", "api": "Produce", "error": error.name, "nth": 2, "times": 2}
    stage.gate.replace({**rule, "from": "client:a", "to": 1})
    with stage.client() as client, stage.client("b") as other:
        assert stage.produce(other) == 0
        codes = [stage.produce(client) for _ in range(4)]
        assert codes == [0, error, error, 0]
        assert stage.produce(other) == 0
    assert stage.end_offset() == 4, "what was refused was not done"
    assert stage.gate.list()["injected"] == {"r1": 2}


def test_an_injected_answer_overtakes_nobody(stage: Stage) -> None:
    stage.gate.replace({"what": "error", "api": "Metadata", "error": "LEADER_NOT_AVAILABLE"})
    with stage.client() as client:
        stage.send_fetch(client, wait_ms=500)
        client.send("Metadata", 12, topics=[{"name": stage.topic}])
        assert client.next_correlation_id() == 1
        assert client.next_correlation_id() == 2


def test_a_producer_library_overcomes_an_injected_error(stage: Stage) -> None:
    stage.gate.replace(
        {"what": "error", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "from": "clients"}
    )
    outcomes: list[object] = []
    producer = Producer({"bootstrap.servers": stage.broker.address, "enable.idempotence": True})
    producer.produce(stage.topic, b"once", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert outcomes == [None]
    assert stage.end_offset() == 1
    assert stage.gate.list()["injected"] == {"r1": 1}


def test_an_error_without_an_answer_closes_the_connection(stage: Stage) -> None:
    stage.gate.replace({"what": "error", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"})
    with stage.client() as client:
        stage.send_produce(client, acks=0)
        assert client.is_closed_by_broker()
    assert stage.end_offset() == 0


def test_a_restarted_broker_keeps_its_faults_and_their_counts(own_stage: Stage) -> None:
    stage = own_stage
    rules = (
        {"what": "cut", "from": 1, "to": "client:a"},
        {"what": "error", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "from": "client:b"},
    )
    stage.gate.replace(*rules)
    before = stage.gate.list()["rules"]
    with stage.client("b") as client:
        assert stage.produce(client) != 0

    stage.broker.kill()
    stage.broker.start()

    assert stage.gate.list()["rules"] == before
    with stage.client("b") as client:
        assert stage.produce(client) == 0
    with stage.client() as client:
        client.send("Metadata", 12, topics=[])
        stage.gate.wait_until_held(1)
        stage.gate.replace()
        assert client.answer("Metadata", 12).brokers[0].node_id == 1
    assert stage.broker.log_text().count("FaultsChanged because=loaded") == 1


def test_the_journal_has_every_request_and_answer_also_after_a_restart(own_stage: Stage) -> None:
    stage = own_stage
    path = stage.broker.directory / "journal"
    stage.gate.do("record", path=str(path))
    frames = []
    with stage.client() as client:
        assert stage.produce(client) == 0
        stage.send_fetch(client)
        frames.append(client.read_frame())
    stage.broker.kill()
    stage.broker.start()
    with stage.client() as client:
        stage.send_fetch(client)
        frames.append(client.read_frame())
    stage.gate.do("record", path=None)
    size_bytes = path.stat().st_size
    stage.end_offset()

    assert path.stat().st_size == size_bytes, "nothing after its end"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    mine = [line for line in lines if line["client_id"] == "a"]
    assert [(line["direction"], line["api_key"]) for line in mine] == [
        *(("request", 0), ("answer", 0), ("request", 1), ("answer", 1)),
        *(("request", 1), ("answer", 1)),
    ]
    answers = [line for line in mine if (line["direction"], line["api_key"]) == ("answer", 1)]
    assert [base64.b64decode(line["frame"]) for line in answers] == frames
    assert [line["correlation_id"] for line in answers] == [2, 1]
    assert all(line["version"] == (9, 11)[line["api_key"]] for line in mine)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (b"no json", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        ([], "object"),
        ({"do": "replaced"}, "did you mean replace"),
        ({"do": "replace"}, 'needs "rules"'),
        ({"do": "replace", "rules": [{"id": "x", "what": "cat"}]}, "did you mean cut?"),
        ({"do": "list", "more": 1}, "unknown here"),
        ({"do": "record", "path": "here"}, "absolute"),
        ({"do": "record", "path": "/no/such/directory/journal"}, "No such file"),
        (b'{"do": "' + b"x" * 2**20 + b'"}', "at most"),
    ],
)
def test_a_bad_command_changes_nothing_and_is_told_why(
    stage: Stage, command: object, words: str
) -> None:
    stage.gate.replace({"what": "drop", "from": 1, "to": "clients", "chance": 0.5})
    before = stage.gate.list()["rules"]
    answer = stage.gate.ask(command)
    assert answer["ok"] is False
    assert words in answer["error"]
    assert "\n" not in answer["error"]
    assert stage.gate.list()["rules"] == before


def test_a_rule_may_be_for_longer_than_the_world(stage: Stage) -> None:
    stage.gate.replace({"what": "delay", "from": "client:a", "to": 1, "delay_ms": 10**30})
    with stage.client() as client:
        client.send("Metadata", 12, topics=[])
        stage.gate.wait_until_held(1)
        forever = {"what": "cut", "from": "client:a", "to": 1, "until_ms": 10**30}
        stage.gate.replace(forever)
        assert stage.gate.list()["held_frames"] == 1
        stage.gate.replace()
        assert client.answer("Metadata", 12).brokers[0].node_id == 1


def test_the_socket_is_private_and_gone_after_a_graceful_stop(own_stage: Stage) -> None:
    path = own_stage.broker.directory / SOCKET
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert own_stage.broker.stop() == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (SOCKET, "another broker listens there"),
        ("broker.toml", "is no socket"),
        ("x" * 200, "at most 107 bytes"),
        ("no/such/place", "No such file or directory"),
    ],
)
def test_a_socket_that_cannot_be_refuses_the_start(
    stage: Stage, tmp_path: Path, path: str, words: str
) -> None:
    command = [sys.executable, "-m", "tidelog.cli.main", "broker", "--faults", path]
    command += ["--set", "node.id=2", "--set", f"log.dirs={tmp_path / 'other'}"]
    command += ["--set", "listeners=PLAINTEXT://127.0.0.1:0"]
    ended = subprocess.run(
        command, cwd=stage.broker.directory, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert stage.gate.list()["ok"], "the first one still has its socket"


def test_a_broker_stops_gracefully_when_its_standard_input_ends(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "tidelog.cli.main", "broker", "--stop-with-stdin"]
    command += ["--set", "node.id=1", "--set", f"log.dirs={tmp_path / 'data'}"]
    command += ["--set", "listeners=PLAINTEXT://127.0.0.1:0", "--ready-file", str(ready)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            wait_until(ready.exists, "the broker to serve")
            host, port = ready.read_text().strip().rsplit(":", 1)
            assert serves(host, int(port))
            _, log = process.communicate(b"ignored", timeout=PATIENCE_S)
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == 0
    assert b"BrokerStopping" in log and b"end of standard input" in log
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
