"""`tidelog fault`: every verb has an effect on real processes, and can be undone.

One cluster for all of them; each test leaves it whole.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator

import pytest

import tidelog
from tests.process.command_line import COMMAND, Said, tidelog_verb
from tests.process.waiting import wait_until
from tidelog.client.admin.topics import create_topic, list_topics
from tidelog.client.shells.blocking_clients import Admin, Producer
from tidelog.cluster.errors import ClusterError, ClusterUsageError
from tidelog.core.model.errors import ErrorCode

pytestmark = pytest.mark.xdist_group("faults")

SETTINGS = {
    "broker.heartbeat.interval.ms": 300,
    "broker.session.timeout.ms": 6_000,
    "replica.lag.time.max.ms": 3_000,
    "controller.quorum.fetch.timeout.ms": 4_000,
    "auto.leader.rebalance.enable": False,
}
"""Soon enough for a test, late enough for a loaded machine; and nobody moves leaders but us."""
EVERYBODY = frozenset({1, 2, 3, 4})
WITHIN_S = 120.0


@pytest.fixture(scope="module")
def whole_cluster() -> Iterator[tidelog.Cluster]:
    with tidelog.Cluster(brokers=4, racks=["a", "b"], settings=SETTINGS) as made:
        with Admin({"bootstrap.servers": made.bootstrap_servers}) as admin:
            wanted = create_topic("orders", assignment={0: [1, 2, 3, 4]})
            assert admin.ask(wanted).error == ErrorCode.NONE
        yield made


@pytest.fixture
def cluster(whole_cluster: tidelog.Cluster) -> Iterator[tidelog.Cluster]:
    """Whole before each test, and mended after it."""
    whole_cluster.wait_isr("orders", timeout_s=WITHIN_S)
    yield whole_cluster
    whole_cluster.heal()
    whole_cluster.wait_unfenced(timeout_s=WITHIN_S)
    whole_cluster.wait_isr("orders", timeout_s=WITHIN_S)
    assert whole_cluster.faults() == []


def fault(cluster: tidelog.Cluster, *arguments: str) -> Said:
    return tidelog_verb("fault", *arguments, "--data", str(cluster.data))


def done(cluster: tidelog.Cluster, *arguments: str) -> str:
    said = fault(cluster, *arguments)
    assert said.code == 0, said.err
    return said.out


def write(cluster: tidelog.Cluster, **settings: str | int) -> object:
    """One record; what became of it."""
    told = {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **settings}
    with Producer({name.replace("_", "."): value for name, value in told.items()}) as producer:
        return producer.send("orders", b"x", partition=0).wait(timeout_s=WITHIN_S)


# Processes.


def test_kill_and_restart(cluster: tidelog.Cluster) -> None:
    leader = cluster.leader("orders")
    said = done(cluster, "kill", "leader:orders-0")
    assert f": killed broker {leader}\nundo: tidelog fault restart {leader} --data " in said
    assert leader is not None and not cluster.is_running(leader)
    cluster.wait_isr("orders", 0, EVERYBODY - {leader}, timeout_s=WITHIN_S)
    again = fault(cluster, "kill", str(leader))
    assert again.code == 1 and f"broker {leader} does not run (log: " in again.err
    said = done(cluster, "restart", str(leader))
    assert said == f"restarted node {leader}\n{leader}: back in the cluster\n"
    cluster.wait_isr("orders", 0, EVERYBODY, timeout_s=WITHIN_S)
    assert done(cluster, "list") == "there are no faults\n"


def test_stop_for_a_while(cluster: tidelog.Cluster) -> None:
    """The command waits, and starts them again itself."""
    before = cluster.nodes[2].pid
    said = done(cluster, "stop", "2", "--for", "100ms")
    assert said.startswith("stopped broker 2 for 100 ms; Ctrl-C undoes it at once\n2: back in")
    after = cluster.nodes[2].pid
    assert after is not None and after != before
    log = cluster.nodes[2].log_path.read_text()
    assert "BrokerStopping node_id=2 signal=SIGTERM" in log


def test_a_whole_rack_dies_and_heal_brings_it_back(cluster: tidelog.Cluster) -> None:
    assert ": killed brokers 2 and 4\n" in done(cluster, "kill", "rack:b")
    cluster.wait_isr("orders", 0, {1, 3}, timeout_s=WITHIN_S)
    listed = json.loads(done(cluster, "list", "--json"))
    assert [(each["what"], each["nodes"]) for each in listed] == [("kill", [2, 4])]
    assert "undone: " in done(cluster, "heal", listed[0]["id"])
    cluster.wait_isr("orders", 0, EVERYBODY, timeout_s=WITHIN_S)


def test_pause_and_resume(cluster: tidelog.Cluster) -> None:
    """The paused leader keeps its connections, and another leads meanwhile."""
    leader = cluster.leader("orders")
    assert leader is not None
    assert f"undo: tidelog fault resume {leader} " in done(cluster, "pause", str(leader))
    assert cluster.is_paused(leader)
    cluster.wait_until(
        lambda: cluster.leader("orders") not in (None, leader), "another", timeout_s=WITHIN_S
    )
    assert done(cluster, "resume", str(leader)) == f"resumed node {leader}\n"
    wait_until(lambda: not cluster.is_paused(leader), "the resumed one", within_s=WITHIN_S)
    cluster.wait_isr("orders", 0, EVERYBODY, timeout_s=WITHIN_S)
    assert cluster.faults() == []


def test_ctrl_c_undoes_a_pause_with_a_duration_at_once(cluster: tidelog.Cluster) -> None:
    arguments = ["fault", "pause", "3", "--for", "1h", "--data", str(cluster.data)]
    command = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True)
    assert command.stdout is not None
    assert command.stdout.readline() == "paused broker 3 for 60 min; Ctrl-C undoes it at once\n"
    assert cluster.is_paused(3)
    command.send_signal(signal.SIGINT)
    assert command.wait(WITHIN_S) == 0
    assert not cluster.is_paused(3)


# The network.


def test_isolate_until_it_is_healed(cluster: tidelog.Cluster) -> None:
    """The others elect another leader; the isolated one still answers clients."""
    leader = cluster.leader("orders")
    assert leader is not None
    said = done(cluster, "isolate", str(leader))
    assert f": isolated broker {leader} from all other nodes\nundo: tidelog fault heal f" in said
    cluster.wait_until(
        lambda: cluster.leader("orders") not in (None, leader), "another", timeout_s=WITHIN_S
    )
    with Admin({"bootstrap.servers": cluster.nodes[leader].address}) as admin:
        assert "orders" in admin.ask(list_topics(), timeout_s=WITHIN_S)
    assert "undone: " in done(cluster, "heal")
    cluster.wait_isr("orders", 0, EVERYBODY, timeout_s=WITHIN_S)


def test_isolate_for_a_while_ends_by_itself(cluster: tidelog.Cluster) -> None:
    said = done(cluster, "isolate", "2", "--for", "2s")
    assert "isolated broker 2 from all other nodes, for " in said
    cluster.wait_until(lambda: not cluster.faults(), "its end in the book", timeout_s=WITHIN_S)
    for node_id in cluster.node_ids:
        cluster.wait_until(
            lambda: not cluster.injector.gates.list(node_id)["rules"],  # noqa: B023
            f"its end at node {node_id}",
            timeout_s=WITHIN_S,
        )
    cluster.wait_isr("orders", 0, EVERYBODY, timeout_s=WITHIN_S)


def test_cut_a_follower_from_its_leader_one_way(cluster: tidelog.Cluster) -> None:
    """Its requests do not arrive, so it misses what is written and falls out of sync."""
    leader, follower = cluster.leader("orders"), cluster.followers("orders")[0]
    said = done(cluster, "cut", str(follower), "leader:orders-0", "--one-way")
    assert f": cut {follower} -> {leader}\n" in said
    assert type(write(cluster, acks="1")).__name__ == "SendOk"
    cluster.wait_isr("orders", 0, EVERYBODY - {follower}, timeout_s=WITHIN_S)
    done(cluster, "heal")
    cluster.wait_isr("orders", 0, EVERYBODY, timeout_s=WITHIN_S)


def test_cut_clients_from_a_broker(cluster: tidelog.Cluster) -> None:
    """A client is accepted, and then there is silence until the cut is healed."""
    done(cluster, "cut", "3", "client:cut-off")
    settings = {"bootstrap.servers": cluster.nodes[3].address, "client.id": "cut-off"}
    with Admin(settings) as admin, pytest.raises(Exception, match="no answer in time"):
        admin.ask(list_topics(), timeout_s=1.0)
    with Admin({**settings, "client.id": "other"}) as admin:
        assert "orders" in admin.ask(list_topics(), timeout_s=WITHIN_S)
    done(cluster, "heal")
    with Admin(settings) as admin:
        assert "orders" in admin.ask(list_topics(), timeout_s=WITHIN_S)


def test_delay_lets_an_answer_wait_and_healing_lets_it_flow(cluster: tidelog.Cluster) -> None:
    """Delayed by far more than anybody waits."""
    said = done(cluster, "delay", "3", "client:slow", "--by", "1h", "--jitter", "1m")
    assert ": delay 3 <-> client:slow by 60 min to 61 min\n" in said
    settings = {"bootstrap.servers": cluster.nodes[3].address, "client.id": "slow"}
    with Admin(settings) as admin, pytest.raises(Exception, match="no answer in time"):
        admin.ask(list_topics(), timeout_s=1.0)
    done(cluster, "heal")
    with Admin(settings) as admin:
        assert "orders" in admin.ask(list_topics(), timeout_s=WITHIN_S)


def test_drop_makes_streams_stall_and_counts_it(cluster: tidelog.Cluster) -> None:
    said = done(cluster, "drop", "3", "client:lossy", "--chance", "0.5")
    assert ": drop 3 <-> client:lossy 50%\n" in said
    settings = {"bootstrap.servers": cluster.nodes[3].address, "client.id": "lossy"}
    with Admin(settings) as admin:

        def has_stalled() -> bool:
            assert "orders" in admin.ask(list_topics(), timeout_s=WITHIN_S)
            injected: dict[str, int] = cluster.injector.gates.list(3)["injected"]
            return sum(injected.values()) > 0

        wait_until(has_stalled, "a lost packet", within_s=WITHIN_S)
    done(cluster, "heal")
    assert cluster.injector.gates.list(3)["rules"] == []


def test_hold_a_replica_back(cluster: tidelog.Cluster) -> None:
    """Only this follower, only this partition: it leaves the in-sync set and stays unfenced."""
    [follower, *_] = cluster.followers("orders")
    said = done(cluster, "hold-replica", str(follower), "orders-0")
    assert f": held back orders-0 from broker {follower}\n" in said
    write(cluster)
    cluster.wait_isr("orders", 0, EVERYBODY - {follower}, timeout_s=WITHIN_S)
    assert follower in cluster.unfenced()
    done(cluster, "heal")
    cluster.wait_isr("orders", 0, EVERYBODY, timeout_s=WITHIN_S)


def test_an_error_is_injected_as_often_as_asked(cluster: tidelog.Cluster) -> None:
    name = "TOPIC_AUTHORIZATION_FAILED"
    done(cluster, "error", "leader:orders-0", "Produce", name, "--nth", "2")
    assert [type(write(cluster)).__name__ for _ in range(3)] == ["SendOk", "SendRefused", "SendOk"]
    done(cluster, "heal")


def test_an_error_that_lasts_ends_when_it_is_healed(cluster: tidelog.Cluster) -> None:
    name = "TOPIC_AUTHORIZATION_FAILED"
    done(cluster, "error", "all", "Produce", name, "--times", "1000")
    told = write(cluster)
    assert getattr(told, "error", None) == name
    done(cluster, "heal")
    assert type(write(cluster)).__name__ == "SendOk"


def test_a_broker_that_is_down_or_paused_has_the_faults_when_it_is_back(
    cluster: tidelog.Cluster,
) -> None:
    done(cluster, "kill", "4")
    done(cluster, "pause", "3")
    done(cluster, "cut", "3", "4")
    done(cluster, "resume", "3")
    done(cluster, "restart", "4")
    for node_id in (3, 4):
        assert [each["what"] for each in cluster.injector.gates.list(node_id)["rules"]] == [
            "cut",
            "cut",
        ]
    done(cluster, "heal")
    for node_id in (3, 4):
        assert cluster.injector.gates.list(node_id)["rules"] == []


# What cannot be.


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["kill", "9"], 2, "there is no node 9; the nodes are 1, 2, 3, 4, 5"),
        (["kill", "rack:c"], 2, "there is no rack 'c'; the racks are a, b"),
        (["kill", "leader:nothing-0"], 1, "there is no partition nothing-0"),
        (["kill", "leader:orders-9"], 1, "there is no partition orders-9"),
        (["kill", "leader:orders"], 2, "'orders' is no partition; write it like orders-0"),
        (["kill", "somebody"], 2, "unknown target 'somebody'"),
        (["pause", "1", "--for", "soon"], 2, "'soon' is no duration"),
        (["isolate", "1", "--for", "0s"], 2, "longer than nothing"),
        (["cut", "1", "1"], 2, "cut: 1 and 1 are the same"),
        (["cut", "1", "9"], 2, "there is no node 9"),
        (["delay", "1", "2", "--by", "fast"], 2, "'fast' is no duration"),
        (["drop", "1", "2", "--chance", "2"], 2, "a chance above 0 and up to 1"),
        (["hold-replica", "1", "orders"], 2, "write it like orders-0"),
        (["hold-replica", "1", "nothing-0"], 1, "there is no partition nothing-0"),
        (["error", "1", "Produc", "NONE"], 2, "did you mean Produce"),
        (["error", "1", "Produce", "NOT_LEADER"], 2, "did you mean NOT_LEADER_OR_FOLLOWER"),
        (["heal", "f999"], 2, "there is no fault f999"),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(
    whole_cluster: tidelog.Cluster, arguments: list[str], code: int, complaint: str
) -> None:
    said = fault(whole_cluster, *arguments)
    assert said.code == code
    assert said.err.startswith(f"tidelog fault {arguments[0]}: ") and complaint in said.err
    assert said.err.count("\n") == 1
    assert whole_cluster.faults() == []
    assert whole_cluster.injector.gates.list(1)["rules"] == []


def test_where_nothing_runs_nothing_can_be_broken(tmp_path: object) -> None:
    said = tidelog_verb("fault", "kill", "1", "--data", str(tmp_path))
    assert (said.code, said.err) == (1, f"tidelog fault kill: there is no cluster in {tmp_path}\n")


def test_without_gates_only_processes_can_be_disturbed() -> None:
    with tidelog.Cluster(brokers=1, faults=False) as plain:
        with pytest.raises(ClusterUsageError, match="without fault gates"):
            plain.isolate(1)
        plain.pause(1)
        plain.resume(1)
        plain.kill(1)
        with pytest.raises(ClusterError, match="does not run"):
            plain.resume(1)
