"""`tidelog.Cluster`: real processes that start, die, pause and come back as the object says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import confluent_kafka
import pytest

import tidelog
from tests.process.waiting import PATIENCE_S, wait_until
from tidelog.client.admin.groups import commit_group_offsets
from tidelog.client.admin.topics import create_topic
from tidelog.client.group.offset_requests import OffsetAndMetadata
from tidelog.client.shells.blocking_clients import Admin, Consumer, Producer
from tidelog.cluster.errors import ClusterError, ClusterUsageError, WaitTimeout
from tidelog.cluster.processes import OsProcess
from tidelog.cluster.status import GroupStatus
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition

pytestmark = pytest.mark.xdist_group("cluster-api")

CALM = {
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 6_000,
    "replica.lag.time.max.ms": 6_000,
    "auto.leader.rebalance.enable": False,
}
"""Soon enough for a test, late enough for a loaded machine; and nobody moves leaders but us."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[tidelog.Cluster]:
    with tidelog.Cluster(brokers=3, settings=CALM) as made:
        make_topic(made, "orders")
        yield made


def make_topic(cluster: tidelog.Cluster, name: str) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        told = admin.ask(create_topic(name, partitions=1, replication_factor=3))
    assert told.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    cluster.wait_isr(name)


def processes_of(cluster: tidelog.Cluster) -> list[OsProcess]:
    found = [cluster.launcher.process(each) for each in cluster.node_ids]
    return [each for each in found if each is not None]


def test_when_it_is_entered_every_broker_serves_and_knows_all(cluster: tidelog.Cluster) -> None:
    def all_answer() -> bool:
        """Nobody is waited for longer than two seconds; whoever answers knows all."""
        told = cluster.queries.fanout.clusters(cluster.broker_ids)
        assert all(set(each.brokers) == {1, 2, 3} and not each.fenced for each in told.values())
        return len(told) == 3

    cluster.wait_until(all_answer, "all to answer")
    cluster.wait_unfenced({1, 2, 3})
    cluster.wait_until(lambda: cluster.controller() in cluster.node_ids, "a controller")
    node = cluster.nodes[1]
    assert node.roles == ("broker", "controller") and node.rack is None
    assert node.address in cluster.bootstrap_servers.split(",")
    assert node.pid is not None and OsProcess(node.pid, processes_of(cluster)[0].started).is_alive
    assert node.log_path.is_file() and (node.data_path / "meta.properties").is_file()


def test_it_says_who_leads_who_follows_and_who_is_in_sync(cluster: tidelog.Cluster) -> None:
    leader = cluster.wait_leader("orders")
    assert leader in cluster.broker_ids
    assert set(cluster.followers("orders")) == set(cluster.broker_ids) - {leader}
    assert set(cluster.replicas("orders")) == {1, 2, 3}
    cluster.wait_isr("orders", 0, {1, 2, 3})
    assert cluster.isr("orders") == {1, 2, 3}


def test_a_killed_leader_is_followed_by_another_and_comes_back(cluster: tidelog.Cluster) -> None:
    cluster.wait_isr("orders")
    leader = cluster.leader("orders")
    assert leader is not None
    before = cluster.leader_epoch("orders")

    fault = cluster.kill(leader)

    assert not cluster.is_running(leader)
    assert cluster.nodes[leader].pid is None
    assert cluster.wait_leader("orders") != leader
    cluster.wait_unfenced(set(cluster.broker_ids) - {leader})
    cluster.wait_isr("orders", 0, set(cluster.broker_ids) - {leader})
    after = cluster.leader_epoch("orders")
    assert before is not None and after is not None and after > before
    assert [each.id for each in cluster.faults()] == [fault.id]
    with pytest.raises(ClusterError, match=rf"{leader} does not run \(log: "):
        cluster.kill(leader)

    cluster.restart(leader)
    cluster.wait_isr("orders")
    assert cluster.faults() == []


def test_a_stopped_broker_hands_over_and_undoing_starts_it(cluster: tidelog.Cluster) -> None:
    leader = cluster.wait_leader("orders")
    assert leader is not None

    fault = cluster.stop(leader)

    assert not cluster.is_running(leader)
    assert cluster.wait_leader("orders") != leader
    assert "NodeStopped" in cluster.nodes[leader].log_path.read_text()
    fault.undo()
    assert cluster.is_running(leader)
    cluster.wait_isr("orders")
    fault.undo()
    assert cluster.is_running(leader)


def test_a_restart_of_a_running_broker_gives_it_another_process(cluster: tidelog.Cluster) -> None:
    before = cluster.nodes[2].pid
    cluster.restart(2)
    after = cluster.nodes[2].pid
    assert after is not None and after != before
    cluster.wait_unfenced()
    cluster.wait_isr("orders")


def test_a_paused_broker_lives_without_a_word_and_goes_on(cluster: tidelog.Cluster) -> None:
    cluster.pause(3)
    assert cluster.is_running(3) and cluster.is_paused(3)
    assert cluster.leader("orders") in cluster.broker_ids
    assert [each.state for each in cluster.status().nodes if each.id == 3] == ["paused"]
    cluster.resume(3)
    wait_until(lambda: not cluster.is_paused(3), "the end of the pause", within_s=60)
    cluster.wait_isr("orders")
    assert cluster.faults() == []


def test_a_pause_with_an_end_ends_by_itself(cluster: tidelog.Cluster) -> None:
    cluster.pause(1, for_s=0.5)
    wait_until(lambda: not cluster.is_paused(1), "the end of the pause", within_s=60)
    wait_until(lambda: not cluster.faults(), "an empty book", within_s=60)
    cluster.wait_isr("orders")


def test_targets_may_be_words(cluster: tidelog.Cluster) -> None:
    leader = cluster.wait_leader("orders")
    cluster.wait_until(lambda: cluster.controller() is not None, "a controller")
    assert cluster.resolve("leader:orders-0", "controller", "all")[0] == leader
    with pytest.raises(ClusterUsageError, match="no node 9"):
        cluster.kill(9)
    with pytest.raises(ClusterError, match="no partition nothing-0"):
        cluster.kill("leader:nothing-0")


def test_somebody_else_finds_it_by_its_directory(cluster: tidelog.Cluster) -> None:
    found = tidelog.Cluster.attach(cluster.data)
    assert found.bootstrap_servers == cluster.bootstrap_servers
    assert {each: node.pid for each, node in found.nodes.items()} == {
        each: node.pid for each, node in cluster.nodes.items()
    }
    with pytest.raises(ClusterError, match="another program is running the cluster"):
        tidelog.Cluster(data=cluster.data).start()
    assert len(processes_of(cluster)) == 3


def test_waiting_in_vain_says_for_what_and_what_is(cluster: tidelog.Cluster) -> None:
    cluster.wait_unfenced()
    cluster.wait_isr("orders")
    with pytest.raises(WaitTimeout, match=r"waiting for 1 in the ISR of orders-0; now: 1, 2, 3"):
        cluster.wait_isr("orders", 0, {1}, timeout_s=0.1)
    with pytest.raises(WaitTimeout, match=r"unfenced brokers 1; now: 1, 2, 3"):
        cluster.wait_unfenced({1}, timeout_s=0.1)


def test_a_status_knows_how_far_every_replica_is(cluster: tidelog.Cluster) -> None:
    cluster.wait_isr("orders")
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        end = producer.send("orders", b"x", partition=0).result().offset
    assert end is not None

    def has_all() -> bool:
        """Of whom nobody tells in three seconds, nothing is known."""
        ends = {
            each.high_watermark: each.log_end_offsets
            for each in cluster.status().partitions
            if each.topic == "orders"
        }
        return ends == {end + 1: dict.fromkeys((1, 2, 3), end + 1)}

    cluster.wait_until(has_all, "every replica to hold the record")
    cluster.wait_until(lambda: cluster.status().is_healthy, "a healthy cluster")


def test_a_status_knows_the_groups(cluster: tidelog.Cluster) -> None:
    make_topic(cluster, "grouped")
    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    with Producer(settings) as producer:
        for value in (b"a", b"b", b"c"):
            producer.send("grouped", value, partition=0).result()
    with Admin(settings) as admin:
        offsets = {TopicPartition("grouped", 0): OffsetAndMetadata(1)}
        assert set(admin.ask(commit_group_offsets("mail", offsets)).values()) == {ErrorCode.NONE}

    def is_told() -> bool:
        """A broker that is silent for a moment tells nothing."""
        wanted = GroupStatus(group="mail", state="Empty", type="classic", members=0, lag=2)
        return wanted in cluster.status().groups

    cluster.wait_until(is_told, "the group and its lag")


def test_a_status_knows_open_transactions_and_whom_they_hold_back(
    cluster: tidelog.Cluster,
) -> None:
    make_topic(cluster, "copied")
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "copy-1"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("copied", b"a", partition=0)
    assert producer.flush(PATIENCE_S) == 0

    def seen() -> tuple[list[tuple[str, str]], int | None]:
        """A broker that is silent for a moment tells nothing."""
        status = cluster.status()
        [copied] = [each for each in status.partitions if each.topic == "copied"]
        open_in = [
            (each.transactional_id, each.state)
            for each in status.transactions
            if each.partitions == (TopicPartition("copied", 0),)
        ]
        return open_in, copied.held_back

    cluster.wait_until(lambda: seen() == ([("copy-1", "Ongoing")], 1), "the open transaction")
    producer.commit_transaction(PATIENCE_S)
    cluster.wait_until(lambda: seen() == ([], 0), "its end")


def test_several_threads_may_ask_and_break_at_the_same_time(cluster: tidelog.Cluster) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(cluster.leader, "orders") for _ in range(40)]
        seen = [pool.submit(cluster.status) for _ in range(4)]
        broken = [pool.submit(cluster.delay, 1, 2, ms=1) for _ in range(4)]
        assert all(each.result() in cluster.broker_ids for each in asked)
        assert all(len(each.result().nodes) == 3 for each in seen)
        assert len({each.result().id for each in broken}) == 4
    assert len(cluster.faults()) == 4
    assert len(cluster.injector.gates.list(1)["rules"]) == 8
    cluster.heal()
    assert cluster.injector.gates.list(1)["rules"] == []


def test_a_directory_with_a_long_name_has_its_sockets_elsewhere(tmp_path: Path) -> None:
    with tidelog.Cluster(brokers=1, data=tmp_path / ("long" * 30)) as cluster:
        socket = cluster.launcher.directory.gate(1)
        assert len(str(socket)) < 100
        cluster.cut(1, "client:nobody")
        assert len(cluster.injector.gates.list(1)["rules"]) == 2
    assert not socket.parent.exists()


def test_data_outlives_a_cluster_and_is_resumed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with tidelog.Cluster(brokers=1, data=data) as first:
        with Producer({"bootstrap.servers": first.bootstrap_servers}) as producer:
            producer.send("kept", b"hello", partition=0).result()
        [old] = processes_of(first)
        cluster_id = first.launcher.plan.cluster_id
    assert not old.is_alive
    assert tidelog.Cluster.attach(data).status().is_down
    with pytest.raises(ClusterUsageError, match="of 1 broker, which cannot become 3 brokers"):
        tidelog.Cluster(brokers=3, data=data).start()

    with tidelog.Cluster(data=data) as again:
        assert again.launcher.plan.cluster_id == cluster_id
        with Consumer({"bootstrap.servers": again.bootstrap_servers}) as consumer:
            place = TopicPartition("kept", 0)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            records = wait_until(lambda: consumer.poll(1.0), "the record", within_s=60)
        assert [each.value for each in records] == [b"hello"]


def test_a_broker_that_cannot_start_is_told_with_its_log_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    bad = {2: {"log.retention.hours": "soon"}}
    cluster = tidelog.Cluster(brokers=3, data=tmp_path / "data", settings_of=bad)
    with pytest.raises(ClusterError) as failure:
        cluster.start()
    text = str(failure.value)
    log = tmp_path / "data" / "node-2" / "broker.log"
    assert text.startswith("broker 2 ended with exit code 2: ") and f"(log: {log})" in text
    assert "log.retention.hours" in text and "\n" not in text
    assert log.is_file()
    for node_id in (1, 2, 3):
        pid = (tmp_path / "data" / f"node-{node_id}" / "pid").read_text().splitlines()
        assert not OsProcess(int(pid[0]), pid[1]).is_alive
    # It never was, so another one may be planned here.
    with tidelog.Cluster(brokers=1, data=tmp_path / "data") as other:
        assert other.broker_ids == (1,)


def test_temporary_data_goes_with_the_cluster_unless_it_is_kept(tmp_path: Path) -> None:
    with tidelog.Cluster(brokers=1) as cluster:
        gone = cluster.data
        assert gone.is_dir()
    assert not gone.exists()


PROGRAM = """
import sys, tidelog
with tidelog.Cluster(brokers=1) as cluster:
    print(cluster.data, flush=True)
    sys.stdin.read()
"""


def test_the_brokers_of_a_killed_program_end(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    data = Path(program.stdout.readline().strip())
    pid, started, _ = (data / "node-1" / "pid").read_text().splitlines()
    broker = OsProcess(int(pid), started)
    assert broker.is_alive

    os.kill(program.pid, signal.SIGKILL)
    program.wait()

    assert broker.ended_within(60)
    assert "end of standard input" in (data / "node-1" / "broker.log").read_text()
    assert json.loads((data / "cluster.json").read_text())["version"] == 1
    for left in sorted(data.rglob("*"), reverse=True):
        left.rmdir() if left.is_dir() else left.unlink()
    data.rmdir()


def test_whoever_was_interrupted_while_looking_can_still_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes anywhere, and leaves the observer half-way: another one is asked then."""

    def half_way(*_: object, **__: object) -> None:
        raise RuntimeError("it was in the midst of something")

    with tidelog.Cluster(brokers=1, data=tmp_path) as made:
        [process] = processes_of(made)
        monkeypatch.setattr(made.queries.fanout, "quorum", half_way)
    assert not process.is_alive
