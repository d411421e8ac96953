"""The defaults of every session, and the message when Spark is missing."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

import tidelog.spark
from tidelog.spark import session
from tidelog.spark.session import (
    SparkMissing,
    is_local,
    require_spark,
    session_settings,
    spark_session,
    threads_of,
)

JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("master", "local", "threads"),
    [
        ("local", True, 1),
        ("local[3]", True, 3),
        ("local[*]", True, os.cpu_count()),
        ("local[*, 4]", True, os.cpu_count()),
        ("local[2,4]", True, 2),
        ("local-cluster[2,3,1024]", True, 6),
        ("local-cluster[ 2 , 1 , 1024 ]", True, 2),
        ("spark://localhost:7077", False, 1),
        ("yarn", False, 1),
    ],
)
def test_a_master_says_where_and_how_much(master: str, local: bool, threads: int) -> None:
    assert is_local(master) == local
    assert threads_of(master) == threads


def test_a_local_session_stays_on_this_machine_and_is_quiet() -> None:
    settings = session_settings("local[4]", {})
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.sql.shuffle.partitions"] == "4"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.ui.enabled"] == "false"
    assert not Path(settings["spark.sql.warehouse.dir"]).is_relative_to(Path.cwd())
    assert session.LOG_SETTINGS.is_file()
    assert session.LOG_SETTINGS.as_uri() in settings[JAVA_OPTIONS]


@pytest.mark.parametrize("master", ["spark://elsewhere:7077", "yarn", None])
def test_a_session_elsewhere_keeps_what_its_cluster_says(master: str | None) -> None:
    """Loopback, four partitions and a file of this machine would be wrong there."""
    settings = session_settings(master, {})
    assert not {"spark.driver.host", "spark.sql.shuffle.partitions", JAVA_OPTIONS} & set(settings)


def test_what_is_given_goes_above_our_defaults() -> None:
    given = {"spark.ui.enabled": "true", JAVA_OPTIONS: "-Xss4m", "spark.jars": "a.jar"}
    settings = session_settings("local[1]", given)
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.jars"] == "a.jar"
    assert settings[JAVA_OPTIONS].endswith(" -Xss4m")
    assert "log4j2" in settings[JAVA_OPTIONS]


@pytest.mark.parametrize("library", ["pyspark", "pyarrow", "numpy", "pandas"])
def test_a_missing_library_is_one_line(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == library else found(name)
    )
    with pytest.raises(SparkMissing) as missing:
        spark_session(app="tidelog audit")
    assert str(missing.value) == "tidelog audit needs Spark: pip install 'tidelog[spark]'"


@pytest.mark.parametrize("name", ["arranged", "exactly_once"])
def test_what_needs_spark_says_so_when_it_is_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda library: None)
    with pytest.raises(SparkMissing) as missing:
        getattr(tidelog.spark, name)
    assert str(missing.value) == f"tidelog.spark.{name} needs Spark: pip install 'tidelog[spark]'"


@pytest.mark.parametrize("installed", ["4.1.4", "4.4.0", "3.5.9", "5.0.0.dev1"])
def test_another_spark_is_refused_in_one_line(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "version", lambda _package: installed)
    with pytest.raises(SparkMissing, match=rf"needs Spark 4\.2 or 4\.3, but {installed} is"):
        require_spark("tidelog audit")


@pytest.mark.parametrize("installed", ["4.2.0", "4.2.1", "4.3.0", "4.3.0.dev3"])
def test_the_versions_we_promise_are_taken(installed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "version", lambda _package: installed)
    require_spark("tidelog audit")
