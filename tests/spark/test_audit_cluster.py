"""The audit of a real cluster whose leader is killed: it names what is lost, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import tidelog
from tests.process.cluster import UNHURRIED
from tests.process.waiting import wait_until
from tests.spark.audit_writers import WITHIN_S, Writer
from tests.spark.topics import make_topic
from tidelog.cli.app import app
from tidelog.client.admin.offsets import log_end_offset
from tidelog.client.shells.blocking_clients import Admin
from tidelog.core.model.ids import TopicPartition

pytestmark = pytest.mark.long

REPLICATED, ONE_COPY, WAITING, AFTERWARDS = 20, 5, 3, 5
LOST = list(range(REPLICATED, REPLICATED + ONE_COPY))


@dataclass(frozen=True)
class Story:
    """What is left of it: a cluster of two, the disk of a third, and two journals."""

    cluster: tidelog.Cluster
    dead: int
    careful: Path
    hasty: Path

    @property
    def servers(self) -> str:
        return self.cluster.bootstrap_servers


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A leader dies with records that only it has acknowledged."""
    data = tmp_path_factory.mktemp("audit")
    with tidelog.Cluster(brokers=3, settings=UNHURRIED, data=data / "cluster") as cluster:
        servers = cluster.bootstrap_servers
        make_topic(
            servers, "orders", partitions=1, replicas=3, configs={"min.insync.replicas": "2"}
        )
        dead = cluster.wait_leader("orders")
        assert dead is not None
        story = Story(cluster, dead, data / "careful.jsonl", data / "hasty.jsonl")
        with (
            Writer(servers, story.careful, "orders", acks="all") as careful,
            Writer(servers, story.hasty, "orders", acks="1") as hasty,
        ):
            careful.send_all("order", REPLICATED)
            holds = [
                cluster.hold_replica(each, "orders", 0) for each in cluster.nodes if each != dead
            ]
            hasty.send_all("hasty order", ONE_COPY)
            waiting = [careful.send_text(f"waiting order {each}") for each in range(WAITING)]
            _wait_for_end(servers, dead, REPLICATED + ONE_COPY + WAITING)
            cluster.kill(dead)
            for hold in holds:
                hold.undo()
            for sent in waiting:
                sent.result(WITHIN_S)
            careful.send_all("later order", AFTERWARDS)
        yield story


def _wait_for_end(servers: str, broker_id: int, end_offset: int) -> None:
    question = log_end_offset(TopicPartition("orders", 0), broker_id=broker_id)
    with Admin({"bootstrap.servers": servers}) as admin:
        wait_until(
            lambda: admin.ask(question, timeout_s=WITHIN_S).offset == end_offset,
            "the waiting orders on the leader",
            within_s=WITHIN_S,
        )


def audit(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def document(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_what_only_the_dead_leader_acknowledged_is_lost_and_named(
    spark: SparkSession, story: Story, tmp_path: Path
) -> None:
    """Through the living brokers, and with the disks of all three."""
    result = audit(
        *("--acks", story.careful, "--acks", story.hasty, "--topic", "orders", "--json"),
        *("--bootstrap", story.servers, "--segments", story.cluster.data),
        *("--out", tmp_path / "findings"),
    )

    assert result.exit_code == 1, result.output
    found = document(result)
    assert found["findings"] == {"lost": ONE_COPY}
    assert found["classes"] == {
        "kept": {"all": REPLICATED + WAITING + AFTERWARDS},
        "lost": {"1": ONE_COPY},
    }
    assert [each["offset"] for each in found["first_findings"]] == LOST
    for each in found["first_findings"]:
        assert (each["finding"], each["run"], each["acks"]) == ("lost", "acks-1", "1")
        assert each["replicas"] == [story.dead], "its disk still has them"
        assert "another record of leader epoch" in each["evidence"]
    rows = pq.read_table(tmp_path / "findings").to_pylist()
    assert sorted(row["answered_offset"] for row in rows) == LOST
    assert {row["answered"] for row in rows} == {"ok"}


def test_what_was_acknowledged_by_all_is_kept(spark: SparkSession, story: Story) -> None:
    """Other writers' records are no finding."""
    result = audit("--acks", story.careful, "--bootstrap", story.servers)

    assert result.exit_code == 0, result.output
    assert "no finding" in result.stdout
    assert "28 outcomes in 1 run; the topic holds 28 records in 1 partition" in result.stdout
