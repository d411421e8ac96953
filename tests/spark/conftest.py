"""What all Spark tests share: one session, three Apache Kafkas, three Tidelogs, fresh topics; and
a broker that a sink must refuse.

Each of them is started by the first test that asks for it and serves all others here; so a test
that kills brokers starts its own. All tests are one group, which is to say on one worker, but for
those that name another: what starts its own Spark need not wait for ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidelog
from bench.clusters import ThreeKafkas
from tests.kafka import KafkaCluster, KafkaUnavailable, unavailable_reason
from tests.kafka.tools import QUICK_START
from tests.process.cluster import UNHURRIED
from tests.spark import connector
from tests.spark.brokers import FIXTURES, KAFKA, TIDELOG_LONG, Brokers
from tests.spark.topics import NewTopic, make_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
SHARED_SETTINGS = {
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",  # tests write records of long ago
}
KAFKA_SETTINGS = {
    **SHARED_SETTINGS,
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}
KAFKA_UNHURRIED = {"broker.session.timeout.ms": "30000"}
"""For those who kill nobody: a broker that only waits for a processor keeps its partitions."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who names no group is of ours."""
    for item in items:
        if HERE in item.path.parents and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The only session; it has Spark's own connector where that can be had."""
    from tidelog.spark import JavaMissing, SparkMissing, spark_session

    extra = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.shuffle.partitions": "2",
    }
    try:
        extra["spark.jars"] = ",".join(map(str, connector.connector_jars()))
    except KafkaUnavailable:
        pass  # whoever needs it asks for the fixture `connector_jars`, which skips
    try:
        session = spark_session(app="tests", master="local[2]", extra=extra)
    except (JavaMissing, SparkMissing) as missing:
        pytest.skip(str(missing))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connector_jars() -> list[Path]:
    """The jars of `format("kafka")`, which `spark` has; skips where they cannot be had."""
    try:
        return connector.connector_jars()
    except KafkaUnavailable as unavailable:
        pytest.skip(str(unavailable))


@pytest.fixture(scope="package")
def kafka3() -> Iterator[KafkaCluster]:
    """Three Apache Kafkas; `ThreeKafkas(kafka3)` of bench has more handles on them."""
    if reason := unavailable_reason():
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    settings = {**KAFKA_SETTINGS, **KAFKA_UNHURRIED}
    kafka = KafkaCluster(brokers=3, settings=settings, heap="256m", java_options=QUICK_START)
    with kafka:
        ThreeKafkas(kafka).wait_until_formed()
        yield kafka


@pytest.fixture(scope="package")
def tidelog3() -> Iterator[tidelog.Cluster]:
    """Three Tidelogs."""
    settings = {**UNHURRIED, **SHARED_SETTINGS}
    with tidelog.Cluster(brokers=3, settings=settings, faults=False) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def unfit() -> Iterator[tidelog.Cluster]:
    """A broker that does not verify the partitions of transactions: no sink may write to it."""
    settings = {**SHARED_SETTINGS, "transaction.partition.verification.enable": "false"}
    with tidelog.Cluster(brokers=1, settings=settings, faults=False) as cluster:
        yield cluster


@pytest.fixture(params=[KAFKA, TIDELOG_LONG])
def brokers(request: pytest.FixtureRequest) -> Brokers:
    """Three Apache Kafkas, then three Tidelogs: the same test on each."""
    cluster: Brokers = request.getfixturevalue(FIXTURES[request.param])
    return cluster


@pytest.fixture
def new_topic(request: pytest.FixtureRequest) -> NewTopic:
    """Makes topics named after the test and its file, with a copy on every broker."""
    stem = re.sub(r"[^a-zA-Z0-9-]", "-", f"{request.path.stem}-{request.node.name}")[:200]
    made: list[str] = []

    def make(
        cluster: Brokers,
        *,
        partitions: int = 1,
        replicas: int = 3,
        **configs: str,
    ) -> str:
        name = f"{stem}-{len(made)}"
        make_topic(
            cluster.bootstrap_servers,
            name,
            partitions=partitions,
            replicas=replicas,
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        made.append(name)
        return name

    return make
