"""Several nodes agree on their metadata: elections, commits by majority, deaths and returns."""

from __future__ import annotations

import json

import pytest

from tests.unit.core.node.quorums import METADATA_DIRECTORY, QuorumCluster
from tidelog.core.quorum.roles import Role
from tidelog.worlds.simulator.cluster import SimNodeLayout
from tidelog.worlds.simulator.durable_store import FileNode

SESSION = {"tidelog.failure.detection": "session"}
OBSERVED = (
    SimNodeLayout(1, roles=("controller",)),
    SimNodeLayout(2, roles=("controller",)),
    SimNodeLayout(3, roles=("controller",)),
    SimNodeLayout(4, roles=("broker",)),
)


def others(quorum: QuorumCluster) -> list[int]:
    return [key for key in quorum.cluster.running if key != quorum.leader]


@pytest.mark.parametrize("seed", range(5))
def test_three_fresh_nodes_elect_the_first_within_a_moment(seed: int) -> None:
    quorum = QuorumCluster(seed)

    assert quorum.leader == 1
    assert quorum.world.now_ms < 100
    quorum.come_to_rest()
    assert {quorum.node(key).quorum.leader_id for key in (1, 2, 3)} == {1}
    assert {quorum.node(key).quorum.quorum_epoch for key in (1, 2, 3)} == {1}
    assert quorum.node(2).quorum.leader_address() == ("node-1", 9092)


def test_what_is_proposed_is_true_on_every_node() -> None:
    quorum = QuorumCluster()

    quorum.propose("7")
    assert quorum.done == []
    quorum.until(lambda: quorum.done == ["7"])

    quorum.until(lambda: all(quorum.value_on(key) == "7" for key in (1, 2, 3)), within_ms=50)


def test_a_dead_leader_is_replaced_at_once_and_the_next_one_goes_on() -> None:
    quorum = QuorumCluster()
    quorum.agree_on("1")
    quorum.cluster.kill(1)
    killed_ms = quorum.world.now_ms

    quorum.until(lambda: quorum.leader in (2, 3))

    assert quorum.world.now_ms - killed_ms < 300, "no timeout was waited for"
    quorum.agree_on("2")
    quorum.cluster.start(1)
    quorum.come_to_rest()
    assert quorum.value_on(1) == "2"
    assert quorum.node(1).quorum.machine.role is Role.FOLLOWER


def test_with_sessions_a_dead_leader_is_replaced_after_the_fetch_timeout() -> None:
    quorum = QuorumCluster(settings=SESSION)
    quorum.come_to_rest()
    quorum.cluster.kill(1)
    killed_ms = quorum.world.now_ms

    quorum.until(lambda: quorum.leader in (2, 3))

    assert quorum.world.now_ms - killed_ms > 1_000


def test_a_minority_commits_nothing_and_its_leader_resigns() -> None:
    quorum = QuorumCluster()
    quorum.agree_on("1")
    quorum.cluster.isolate(1)

    quorum.propose("lost", at=1)
    quorum.until(lambda: quorum.leader in (2, 3))
    quorum.until(lambda: not quorum.node(1).metadata.is_active)

    assert quorum.done == ["1"]
    assert quorum.lost == ["lost"]
    assert quorum.value_on(1) == "1"
    assert quorum.node(1).quorum.machine.role is Role.RESIGNED


def test_a_tail_that_nobody_else_has_is_cut_when_its_writer_returns() -> None:
    quorum = QuorumCluster()
    quorum.agree_on("1")
    quorum.cluster.isolate(1)
    quorum.propose("lost", at=1)
    quorum.until(lambda: quorum.leader in (2, 3))
    quorum.propose("2")
    quorum.until(lambda: quorum.done == ["1", "2"])

    quorum.cluster.heal_all()
    quorum.come_to_rest()

    assert quorum.value_on(1) == "2"
    assert quorum.log_of(1) == quorum.log_of(2) == quorum.log_of(3)
    (truncated,) = quorum.events("MetadataTruncated")
    assert "node_id=1" in truncated


@pytest.mark.scenario("X-14")
@pytest.mark.parametrize("seed", range(12))
def test_a_record_of_a_dying_controller_survives_everywhere_or_nowhere(seed: int) -> None:
    """Whether a follower got it is chance; afterwards all logs are the same."""
    quorum = QuorumCluster(seed)
    quorum.agree_on("1")
    quorum.propose("doubt")
    for _ in range(seed * 3):
        quorum.world.step()
    quorum.cluster.kill(1)

    quorum.until(lambda: quorum.leader in (2, 3))
    quorum.cluster.start(1)
    quorum.come_to_rest()

    found = {quorum.value_on(key) for key in (1, 2, 3)}
    assert len(found) == 1 and found <= {"1", "doubt"}
    assert quorum.log_of(1) == quorum.log_of(2) == quorum.log_of(3)
    if "doubt" in quorum.done:
        assert found == {"doubt"}


def test_a_leader_that_restarts_has_resigned_and_others_lead() -> None:
    quorum = QuorumCluster(settings=SESSION)
    quorum.come_to_rest()
    quorum.cluster.kill(1)
    quorum.cluster.start(1)

    assert quorum.node(1).quorum.machine.role is Role.RESIGNED
    quorum.until(lambda: quorum.leader is not None)

    assert quorum.leader in (2, 3)
    assert quorum.node(2).quorum.quorum_epoch >= 2


def test_all_nodes_killed_at_once_come_back_quickly() -> None:
    quorum = QuorumCluster()
    quorum.agree_on("1")
    for key in (1, 2, 3):
        quorum.cluster.kill(key)
    started_ms = quorum.world.now_ms

    quorum.cluster.start_all()
    quorum.until(lambda: quorum.leader is not None)

    assert quorum.world.now_ms - started_ms < 300
    quorum.come_to_rest()
    assert {quorum.value_on(key) for key in (1, 2, 3)} == {"1"}


def test_a_leader_that_stops_cleanly_hands_over() -> None:
    quorum = QuorumCluster(settings=SESSION)
    quorum.come_to_rest()

    quorum.cluster.stop(1)
    stopped_ms = quorum.world.now_ms
    quorum.until(lambda: quorum.leader in (2, 3))

    assert quorum.world.now_ms - stopped_ms < 300


def test_an_observer_follows_without_a_vote() -> None:
    quorum = QuorumCluster(nodes=OBSERVED)
    quorum.agree_on("1")
    assert quorum.value_on(4) == "1"
    leadership = quorum.node(1).quorum.machine.leadership
    assert leadership is not None and 4 in leadership.observers

    quorum.cluster.kill(1)
    quorum.until(lambda: quorum.leader in (2, 3))
    quorum.agree_on("2")

    assert quorum.value_on(4) == "2"
    quorum.cluster.kill(2 if quorum.leader == 3 else 3)
    quorum.propose("3")
    quorum.run(1_000)
    assert "3" not in quorum.done, "the observer's copy counts for nothing"


def test_a_follower_that_returns_catches_up() -> None:
    quorum = QuorumCluster()
    quorum.come_to_rest()
    quorum.cluster.kill(3)
    for number in range(20):
        quorum.agree_on(str(number))

    quorum.cluster.start(3)
    quorum.come_to_rest()

    assert quorum.value_on(3) == "19"
    assert quorum.log_of(3) == quorum.log_of(1)


def test_a_voter_acknowledges_only_what_is_synced() -> None:
    """A fetch offset is a promise: after a power loss the voter still has all before it."""
    quorum = QuorumCluster(settings=SESSION)
    quorum.come_to_rest()
    for number in range(40):
        quorum.propose(str(number))
        for _ in range(3):
            quorum.world.step()
    leadership = quorum.node(1).quorum.machine.leadership
    assert leadership is not None
    promised = {key: leadership.voters[key].end_offset for key in (2, 3)}
    for key in (2, 3):
        quorum.cluster.lose_power(key)
        quorum.cluster.start(key)
        end_offset = promised[key]
        assert end_offset is not None
        assert quorum.node(key).metadata.log.log_end_offset >= end_offset


@pytest.mark.scenario("X-44")
def test_a_vote_that_did_not_reach_the_disk_is_never_answered() -> None:
    """Its node halts instead, and may then vote otherwise without harm."""
    quorum = QuorumCluster(settings=SESSION)
    quorum.come_to_rest()
    quorum.cluster.isolate(1)
    third = quorum.cluster.process(3)
    third.store.fail_next_sync()

    quorum.until(lambda: not third.is_up)

    assert not [line for line in quorum.events("VoteGranted") if "quorum_epoch=2" in line]
    third.lose_power()
    third.store.heal()
    quorum.cluster.start(3)
    quorum.cluster.heal_all()
    quorum.come_to_rest()
    led = quorum.events("RoleChanged")
    leaders = [line for line in led if "role=LEADER" in line]
    epochs = [line.split("quorum_epoch=")[1].split(",")[0] for line in leaders]
    assert len(set(epochs)) == len(epochs), "one leader per quorum epoch"


@pytest.mark.parametrize("seed", range(8))
def test_votes_survive_power_losses(seed: int) -> None:
    """Whatever a node has said in a quorum epoch, it says again after a power loss."""
    quorum = QuorumCluster(seed, is_started=False)
    quorum.cluster.start_all()
    for _ in range(20 + 4 * seed):
        quorum.world.step()
    votes = {key: quorum.node(key).quorum.machine.election for key in (1, 2, 3)}

    for key in (1, 2, 3):
        quorum.cluster.lose_power(key)
    quorum.cluster.start_all()

    for key, before in votes.items():
        after = quorum.node(key).quorum.machine.election
        if after.quorum_epoch == before.quorum_epoch:
            assert after.voted_for == before.voted_for
        else:
            assert after.quorum_epoch > before.quorum_epoch
    quorum.come_to_rest()


def test_the_quorum_state_is_kafkas_file() -> None:
    quorum = QuorumCluster()
    quorum.come_to_rest()

    found = quorum.cluster.process(2).store.find(f"{METADATA_DIRECTORY}/quorum-state")

    assert isinstance(found, FileNode)
    assert json.loads(bytes(found.data)) == {
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": 1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }


def test_the_leader_resigns_when_nobody_fetches_any_more() -> None:
    quorum = QuorumCluster()
    quorum.come_to_rest()
    for key in (2, 3):
        quorum.cluster.pause(key)

    quorum.until(lambda: quorum.node(1).quorum.machine.role is Role.RESIGNED)

    for key in (2, 3):
        quorum.cluster.wake(key)
    quorum.come_to_rest()


def test_the_nodes_of_a_cluster_agree_on_its_id_without_being_told() -> None:
    quorum = QuorumCluster()
    texts = [quorum.cluster.texts(key)["controller.quorum.voters"] for key in (1, 2, 3)]
    assert len(set(texts)) == 1

    assert len({quorum.node(key).metadata.cluster_id for key in (1, 2, 3)}) == 1
