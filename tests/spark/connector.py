"""Where the jars of Spark's own Kafka connector are: resolved by maven, less what Spark brings."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from importlib.metadata import version
from pathlib import Path

from tests.kafka.class_path import KafkaUnavailable, resolved

POM = Path(__file__).with_name("pom.xml")


def _version() -> str:
    found = re.search(r"<version>(4\..+)</version>", POM.read_text())
    assert found, "the pom names no version of Spark"
    return found.group(1)


CONNECTOR_VERSION = _version()
NAME = f"Spark's Kafka connector {CONNECTOR_VERSION}"


@functools.cache
def connector_jars() -> list[Path]:
    """For `spark.jars`; KafkaUnavailable says why they cannot be had."""
    installed = version("pyspark")
    if installed != CONNECTOR_VERSION:
        raise KafkaUnavailable(f"{NAME} does not fit the installed Spark {installed}")
    jars = [Path(jar) for jar in resolved(POM, NAME).split(os.pathsep)]
    brought = {artifact(jar) for jar in _jars_of_spark()}
    return [jar for jar in jars if artifact(jar) not in brought]


def artifact(jar: Path) -> str:
    """Its name without the version: `kafka-clients` of `kafka-clients-3.9.2.jar`."""
    return re.split(r"-\d+\.", jar.name, maxsplit=1)[0]


def _jars_of_spark() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None, "Spark is in the lock"
    return sorted(Path(spec.origin).with_name("jars").glob("*.jar"))
