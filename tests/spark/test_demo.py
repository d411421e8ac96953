"""The mission for real: every order once, planted lies found out, and nobody left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import Counter, defaultdict
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

import tidelog
from tests.kafka import KafkaCluster
from tests.process.command_line import COMMAND, Said
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import WireClient
from tests.spark.orders import rows_of
from tests.spark.sink_parts import read_committed
from tidelog.demo import mission
from tidelog.demo.accounts import PublishedOrders
from tidelog.demo.mission import DemoOptions
from tidelog.demo.own_cluster import OwnCluster
from tidelog.demo.pipeline_file import REVENUE

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("demo")]

SHORT = ("--pause", "0.5", "--rate", "60")
END_WITHIN_S = 15 * PATIENCE_S


def demo(*arguments: str) -> Said:
    done = subprocess.run(
        [*COMMAND, "demo", *SHORT, *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200"},
        timeout=END_WITHIN_S,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def numbers(result: Said) -> dict[str, int]:
    """The lines of the summary that are counts."""
    found = {}
    for line in result.out.splitlines():
        name, number = line[:12].strip(), line[12:].split(maxsplit=1)[:1]
        if number and number[0].replace(",", "").isdecimal():
            found[name] = int(number[0].replace(",", ""))
    return found


def journal_entries(journal: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line for line in lines if "number" in line]


def published(directory: Path) -> list[dict[str, Any]]:
    """The revenue topic of a demo that has ended, as librdkafka reads it."""
    with tidelog.Cluster(data=directory, faults=False) as cluster:
        found = read_committed(cluster.bootstrap_servers, REVENUE)
    return [json.loads(value, parse_float=Decimal) for value in found]


def test_every_order_survives_a_leader_a_rack_the_coordinator_and_the_driver(
    tmp_path: Path,
) -> None:
    """The demo says so, and so do its journal, its table and its topic, read by somebody else."""
    place = tmp_path / "mission"
    result = demo("--keep", str(place))
    assert result.code == 0, result.out + result.err
    assert result.out.count("kill -9") == 4
    assert "the transaction coordinator of revenue, in an open transaction" in result.out
    assert result.out.count("no errors") == 2
    assert "every acknowledged order was kept and processed exactly once" in result.out

    entries = journal_entries(place / "acks.jsonl")
    counted = numbers(result)
    assert counted["sent"] == counted["acknowledged"] == counted["kept"] == len(entries)
    assert [counted[name] for name in ("lost", "duplicated", "missing", "double")] == [0] * 4
    orders = Counter(str(each["key"]) for each in entries if each["key"] is not None)
    assert max(orders.values()) == 2, "some were sent twice"
    rows = rows_of(place / "valid_orders")
    ids = Counter(str(row["order_id"]) for row in rows)
    assert ids == Counter(dict.fromkeys(orders, 1))
    broken = sorted((each["partition"], each["offset"]) for each in entries if each["key"] is None)
    dead = sorted((row["partition"], row["offset"]) for row in rows_of(place / "dead_letters"))
    assert dead == broken and broken

    results = published(place / "cluster")
    assert len(results) == counted["results"] > 0
    versions = Counter((each["minute"], each["country"], each["orders"]) for each in results)
    assert set(versions.values()) == {1}, "no result twice"
    newest: dict[object, Decimal] = {}
    for each in sorted(results, key=lambda each: int(each["orders"])):
        newest[each["minute"][:16], each["country"]] = Decimal(each["revenue"])
    sums: dict[object, Decimal] = defaultdict(Decimal)
    for row in rows:
        minute = cast(datetime, row["ordered_at"]).isoformat()[:16]
        sums[minute, row["country"]] += cast(Decimal, row["amount"])
    assert newest == sums, "the topic is the table, summed up"


@pytest.mark.java
def test_on_another_cluster_the_pipeline_writes_topics(kafka3: KafkaCluster) -> None:
    """Exactly once through the driver's death; afterwards none of its topics is there."""
    result = demo("--bootstrap", kafka3.bootstrap_servers)
    assert result.code == 0, result.out + result.err
    assert "not ours to kill" in result.out and result.out.count("kill -9") == 1
    counted = numbers(result)
    assert counted["sent"] == counted["acknowledged"] == counted["kept"] > 0
    assert counted["processed"] > 0 and counted["dead letters"] > 0
    with WireClient(kafka3.nodes[0].address) as wire:
        names = [str(each.name) for each in wire.ask("Metadata", 12, topics=None).topics]
    assert not [name for name in names if name.startswith("tidelog-demo-")]


def test_an_unfit_cluster_is_refused_before_anything_is_begun(unfit: tidelog.Cluster) -> None:
    result = demo("--bootstrap", unfit.bootstrap_servers)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1 and "verification.enable is not true" in result.err


class Forgetful(OwnCluster):
    """When all is done its brokers lose the end of what they had, and its table a batch."""

    LOST = ("orders", REVENUE)

    def audit_arguments(self) -> list[str]:
        cluster = self._cluster
        cluster.kill(*cluster.broker_ids)
        for node in cluster.nodes.values():
            for topic in self.LOST:
                for segment in Path(node.data_path).glob(f"{topic}-*/*.log"):
                    data = segment.read_bytes()
                    segment.write_bytes(data[: len(data) * 3 // 4])
        cluster.restart(*cluster.broker_ids)
        cluster.wait_unfenced(timeout_s=PATIENCE_S)
        self._wait_until_in_sync(*self.LOST)
        return super().audit_arguments()

    def published(self) -> PublishedOrders:
        table = self._directory / "valid_orders"
        batches = sorted(table.glob("batch_id=*"))
        first = next(each for each in batches if list(each.glob("*.parquet")))
        shutil.rmtree(first)
        return super().published()


def test_what_is_lost_and_what_is_missing_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mission, "OwnCluster", Forgetful)
    lines: list[str] = []
    account = mission.run(DemoOptions(directory=tmp_path, rate=60, pause_s=0.1), lines.append)
    assert not account.is_clean
    assert account.lost > 0 and account.lost + account.kept == account.acknowledged
    assert account.missing > 0
    names = {each.name for each in account.findings}
    assert {"lost", "missing", "published from nothing", "result missing"} <= names


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)]
)
def test_nothing_is_left_running(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """Whether the demo is interrupted or killed, its brokers and Spark's processes end."""
    place = tmp_path / "mission"
    command = [*COMMAND, "demo", *SHORT, "--keep", str(place)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        driver = wait_until(lambda: pid_in(place / "checkpoint" / "lock"), "the driver")
        wait_until(lambda: "java" in session_of(driver).values(), "Spark's JVM")
        brokers = [pid_in(each) for each in place.glob("cluster/node-*/pid")]
        assert len(brokers) == 5 and all(brokers)
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == code
    wait_until(lambda: not session_of(driver), "the end of Spark's processes")
    wait_until(lambda: not any(map(is_alive, brokers)), "the end of the brokers")


def pid_in(file: Path) -> int:
    """0 if nobody has written one yet."""
    words = file.read_text().split() if file.exists() else []
    return int(words[0]) if words else 0


def session_of(leader: int) -> dict[int, str]:
    """The names of the processes that live in the session of this one."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        state, _, _, session = rest.split()[:4]
        if int(session) == leader and state != "Z":
            found[int(stat.parent.name)] = name
    return found


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
