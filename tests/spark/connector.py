"""Where the jars of Spark's own Kafka connector are: resolved by maven, for `spark.jars`."""

from __future__ import annotations

import functools
import os
import re
from importlib.metadata import version
from pathlib import Path

from tests.kafka.class_path import KafkaUnavailable, resolved

POM = Path(__file__).with_name("pom.xml")


def _version() -> str:
    found = re.search(r"<spark\.version>(.+)</spark\.version>", POM.read_text())
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
    return [Path(jar) for jar in resolved(POM, NAME).split(os.pathsep)]
