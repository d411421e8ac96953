"""`tidelog topic` on three brokers in two racks: what it does, shows and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.client_verbs import CommandLine
from tests.process.cluster import ProcessCluster
from tests.process.waiting import wait_until

RACKS = {1: "a", 2: "b", 3: "a"}
WITHIN_S = 60.0

pytestmark = pytest.mark.xdist_group("cli-topic")  # one cluster, not one per worker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    racks = {broker_id: {"broker.rack": rack} for broker_id, rack in RACKS.items()}
    directory = tmp_path_factory.mktemp("cluster")
    with ProcessCluster(directory=directory, settings_of=racks) as running:
        yield running


@pytest.fixture(scope="module")
def tidelog(cluster: ProcessCluster) -> CommandLine:
    return CommandLine(cluster.bootstrap_servers)


def test_create_list_describe_alter_delete(tidelog: CommandLine) -> None:
    """A topic's life, as people see it."""
    made = tidelog.ok(
        *("topic", "create", "life", "--partitions", "2", "--replication-factor", "3"),
        *("--config", "min.insync.replicas=2", "--config", "retention.ms=1000"),
    )
    assert made.output == "created topic life: partitions 2, replication factor 3\n"
    wait_until(
        lambda: "life   " in tidelog.ok("topic", "list").output,
        "any broker that is asked to know",
        within_s=WITHIN_S,
    )

    shown = tidelog.ok("topic", "describe", "life").output.splitlines()
    assert "configs min.insync.replicas=2,retention.ms=1000" in shown[0]
    assert "racks 1=a,2=b,3=a" in shown[0]
    assert [line.split()[0] for line in shown[1:]] == ["partition", "0", "1"]

    altered = tidelog.ok(
        *("topic", "alter", "life", "--partitions", "3"),
        *("--config", "segment.bytes=2000000", "--delete-config", "retention.ms"),
    )
    done = "segment.bytes=2000000, retention.ms back to its default, partitions 3"
    assert altered.output == f"altered topic life: {done}\n"

    def has_grown() -> bool:
        [topic] = tidelog.ok("topic", "describe", "life", "--json").document["topics"]
        wanted = {"min.insync.replicas": "2", "segment.bytes": "2000000"}
        return len(topic["partitions"]) == 3 and topic["configs"] == wanted

    wait_until(has_grown, "every broker to know", within_s=WITHIN_S)
    assert tidelog.ok("topic", "delete", "life").output == "deleted topic life\n"
    wait_until(
        lambda: "life" not in tidelog.ok("topic", "list").output, "its end", within_s=WITHIN_S
    )


def test_json_of_every_verb(tidelog: CommandLine) -> None:
    made = tidelog.ok(
        "topic", "create", "json", "--replica-assignment", "3:1,2:3", "--json"
    ).document
    assert {**made, "topic_id": "?"} == {
        "topic": "json",
        "topic_id": "?",
        "partitions": 2,
        "replication_factor": 2,
        "created": True,
    }
    listed = wait_until(
        lambda: [
            each
            for each in tidelog.ok("topic", "list", "--json").document["topics"]
            if each["topic"] == "json"
        ],
        "every broker to know",
        within_s=WITHIN_S,
    )
    assert listed == [
        {
            "topic": "json",
            "topic_id": made["topic_id"],
            "internal": False,
            "partitions": 2,
            "replication_factor": 2,
        }
    ]
    again = tidelog.ok("topic", "create", "json", "--if-not-exists", "--json").document
    assert again["created"] is False
    document = tidelog.ok("topic", "describe", "json", "--json").document
    assert document["racks"] == {"1": "a", "2": "b", "3": "a"}
    assert [each["replicas"] for each in document["topics"][0]["partitions"]] == [[3, 1], [2, 3]]
    altered = tidelog.ok("topic", "alter", "json", "--config", "retention.ms=5", "--json").document
    assert altered == {
        "topic": "json",
        "partitions": None,
        "configs_set": {"retention.ms": "5"},
        "configs_deleted": [],
    }
    gone = tidelog("topic", "delete", "json", "never-there", "--json")
    assert gone.code == 1
    assert gone.lines == [
        {"topic": "json", "deleted": True, "error": None},
        {"topic": "never-there", "deleted": False, "error": "UNKNOWN_TOPIC_OR_PARTITION"},
    ]


def test_offsets_of_every_replica_and_what_a_dead_broker_leaves(
    cluster: ProcessCluster, tidelog: CommandLine
) -> None:
    """High watermark and log ends with everybody alive; then one is dead, and it shows."""
    tidelog.ok("topic", "create", "seen", "--replica-assignment", "1:2:3")
    cluster.wait_until_in_sync("seen", 0)
    tidelog.ok("produce", "seen", "--count", "7")

    def described() -> dict[str, object]:
        [topic] = tidelog.ok("topic", "describe", "seen", "--offsets", "--json").document["topics"]
        partition: dict[str, object] = topic["partitions"][0]
        return partition

    before = described()
    assert before["log_end_offsets"] == {"1": 7, "2": 7, "3": 7}
    assert before["high_watermark"] == 7
    assert before["isr"] == [1, 2, 3] and before["offline"] == [] and before["elr"] == []
    assert "no such partitions" in tidelog.ok("topic", "describe", "seen", "--unavailable").output

    cluster.kill(1)
    try:
        wanted = {
            **before,
            "leader": 2,
            "leader_epoch": 1,
            "isr": [2, 3],
            "offline": [1],
            "log_end_offsets": {"1": None, "2": 7, "3": 7},
        }
        wait_until(lambda: described() == wanted, "every broker to know", within_s=WITHIN_S)
        in_trouble = ("topic", "describe", "seen", "--under-replicated", "--offsets")
        wait_until(lambda: "1:? 2:7 3:7" in tidelog.ok(*in_trouble).output, "it", within_s=WITHIN_S)
    finally:
        cluster.rejoin(1)
    cluster.wait_until_in_sync("seen", 0)
    wait_until(
        lambda: (
            "no such partitions"
            in tidelog.ok("topic", "describe", "seen", "--under-replicated").output
        ),
        "nothing to complain of",
        within_s=WITHIN_S,
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("topic create taken", "TOPIC_ALREADY_EXISTS: "),
        ("topic create no/name", "INVALID_TOPIC_EXCEPTION: "),
        ("topic create new --replication-factor 9", "INVALID_REPLICATION_FACTOR: "),
        ("topic create new --replica-assignment 1:9", "INVALID_REPLICA_ASSIGNMENT: "),
        ("topic create new --config no.such.setting=1", "INVALID_CONFIG: "),
        ("topic alter taken --partitions 1", "INVALID_PARTITIONS: "),
        ("topic alter taken --config retention.ms=soon", "INVALID_CONFIG: "),
        ("topic alter nowhere --partitions 5", "UNKNOWN_TOPIC_OR_PARTITION: topic nowhere does"),
        ("topic describe nowhere", "UNKNOWN_TOPIC_OR_PARTITION: topic nowhere does not exist"),
        ("topic delete nowhere", "UNKNOWN_TOPIC_OR_PARTITION: topic nowhere does not exist"),
    ],
)
def test_what_the_cluster_refuses_is_one_line_with_kafkas_name(
    tidelog: CommandLine, line: str, complaint: str
) -> None:
    tidelog.ok("topic", "create", "taken", "--partitions", "2", "--if-not-exists")
    refused = tidelog(*line.split())
    assert refused.code == 1 and len(refused.errors.splitlines()) == 1
    verb = " ".join(line.split()[:2])
    assert refused.errors.startswith(f"tidelog {verb}: {complaint}"), refused.errors


def test_a_topic_that_is_not_there_may_be_none_of_our_business(tidelog: CommandLine) -> None:
    said = tidelog.ok("topic", "delete", "nowhere", "--if-exists")
    assert said.output == "there is no topic nowhere\n" and not said.errors


def test_an_unreachable_cluster_names_the_addresses_that_were_tried(tmp_path: Path) -> None:
    nobody = CommandLine("127.0.0.1:1,no-such-host.invalid:9092")
    said = nobody("topic", "list", "--timeout", "1")
    assert said.code == 1 and len(said.errors.splitlines()) == 1
    assert "no node could be reached" in said.errors
    assert "127.0.0.1:1 (refused)" in said.errors
    assert "no-such-host.invalid:9092 (unreachable)" in said.errors
