"""`tidelog elect` and `tidelog quorum` on three brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.process.client_verbs import CommandLine
from tests.process.cluster import ProcessCluster
from tests.process.waiting import wait_until

WITHIN_S = 60.0
BY_HAND = {"auto.leader.rebalance.enable": False}
"""Only we elect the preferred leaders."""

pytestmark = pytest.mark.xdist_group("cli-elect")  # one cluster, not one per worker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with ProcessCluster(directory=directory, settings=BY_HAND) as running:
        yield running


@pytest.fixture(scope="module")
def tidelog(cluster: ProcessCluster) -> CommandLine:
    return CommandLine(cluster.bootstrap_servers)


def partition(tidelog: CommandLine, topic: str) -> dict[str, Any]:
    [told] = tidelog.ok("topic", "describe", topic, "--json").document["topics"]
    first: dict[str, Any] = told["partitions"][0]
    return first


def all_have_both(cluster: ProcessCluster, *isr: int) -> bool:
    """Every broker says so: one that is late may still speak of the time before the death."""
    told = [cluster.partition_view("moved", 0, via=each) for each in cluster.broker_ids]
    return all(each is not None and sorted(each.isr) == sorted(isr) for each in told)


def followers(cluster: ProcessCluster, tidelog: CommandLine) -> list[int]:
    """The two that do not lead the quorum, whose deaths are least disturbing."""
    leader = tidelog.ok("quorum", "describe", "--json").document["leader"]
    return [each for each in cluster.broker_ids if each != leader]


def test_the_preferred_leader_leads_again(cluster: ProcessCluster, tidelog: CommandLine) -> None:
    """It is killed and comes back; it leads when somebody asks for that."""
    preferred, other = followers(cluster, tidelog)
    tidelog.ok("topic", "create", "moved", "--replica-assignment", f"{preferred}:{other}")
    cluster.kill(preferred)
    wait_until(lambda: partition(tidelog, "moved")["leader"] == other, "it", within_s=WITHIN_S)
    cluster.rejoin(preferred)
    wait_until(lambda: all_have_both(cluster, preferred, other), "both", within_s=WITHIN_S)

    said = tidelog.ok("elect", "preferred", "moved-0")
    assert said.output == "moved-0: elected\n"
    wait_until(lambda: partition(tidelog, "moved")["leader"] == preferred, "it", within_s=WITHIN_S)
    again = tidelog.ok("elect", "preferred", "moved-0", "--json").lines
    assert [(each["elected"], each["error"]) for each in again] == [(False, "ELECTION_NOT_NEEDED")]
    assert tidelog.ok("elect", "preferred", "moved-0").output == "moved-0: no election needed\n"
    tidelog.ok("topic", "delete", "moved")


def test_an_unclean_election_gives_a_leader_at_any_price(
    cluster: ProcessCluster, tidelog: CommandLine
) -> None:
    """The only replica in sync is gone. A preferred election is refused, an unclean one leads."""
    gone, left = followers(cluster, tidelog)
    tidelog.ok("topic", "create", "lost", "--replica-assignment", f"{gone}:{left}")
    cluster.kill(left)
    wait_until(lambda: partition(tidelog, "lost")["isr"] == [gone], "one copy", within_s=WITHIN_S)
    tidelog.ok("produce", "lost", "--count", "3")
    cluster.kill(gone)
    cluster.start_serving(left)
    alive = CommandLine(cluster.nodes[left].address)
    wait_until(
        lambda: (
            (told := partition(alive, "lost"))["leader"] is None and left not in told["offline"]
        ),
        "a partition without a leader",
        within_s=WITHIN_S,
    )
    wait_until(
        lambda: "topic lost " in alive.ok("topic", "describe", "--unavailable").output,
        "every broker to know",
        within_s=WITHIN_S,
    )
    refused = alive("elect", "preferred", "lost-0")
    assert refused.code == 1
    assert refused.errors.startswith("tidelog elect: lost-0: PREFERRED_LEADER_NOT_AVAILABLE: ")

    assert alive.ok("elect", "unclean", "lost-0").output == "lost-0: elected\n"
    wait_until(lambda: partition(alive, "lost")["leader"] == left, "it", within_s=WITHIN_S)
    cluster.rejoin(gone)
    wait_until(lambda: gone in partition(tidelog, "lost")["isr"], "its return", within_s=WITHIN_S)
    tidelog.ok("topic", "delete", "lost")


def test_elections_that_cannot_be(tidelog: CommandLine) -> None:
    said = tidelog("elect", "preferred", "nowhere-0")
    assert said.code == 1
    assert said.errors.startswith("tidelog elect: nowhere-0: UNKNOWN_TOPIC_OR_PARTITION: ")


def test_the_whole_cluster_may_be_asked_for(tidelog: CommandLine) -> None:
    for kind in ("preferred", "unclean"):
        assert tidelog.ok("elect", kind, "--all-topics").output == "no election needed\n"


def test_the_quorum(cluster: ProcessCluster, tidelog: CommandLine) -> None:
    document = tidelog.ok("quorum", "describe", "--json").document
    assert document["leader"] in cluster.broker_ids and document["quorum_epoch"] >= 1
    assert [each["status"] for each in document["nodes"]] == ["leader", "voter", "voter"]
    assert sorted(each["node"] for each in document["nodes"]) == [1, 2, 3]
    ends = [each["log_end_offset"] for each in document["nodes"]]
    assert ends[0] >= max(ends) > 0 and document["high_watermark"] > 0
    assert document["nodes"][0]["lag"] == 0

    text = tidelog.ok("quorum", "describe").output
    assert f"leader:              {document['leader']}\n" in text
    assert "voters:              1,2,3\n" in text
