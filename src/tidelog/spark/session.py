"""Starts Spark: finds Java, and gives every session the same defaults.

Spark itself is imported only when a session is made, so that `require_spark` is cheap.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.errors import TidelogError
from tidelog.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
INSTALL = "pip install 'tidelog[spark]'"
VERSION_MIN, VERSION_END = (4, 2), (4, 4)
LIBRARIES = ("pyspark", "pyarrow", "numpy", "pandas")
WAREHOUSE = "tidelog-spark-warehouse"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

_DEFAULTS = {
    # Data between the JVM and its Python workers goes through sockets of the file system.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class SparkMissing(TidelogError):
    """Spark is not installed, or not in a version we know; the message is one line."""


def require_spark(who: str) -> None:
    """SparkMissing, which names `who` needs it, if the extra is not installed."""
    if any(importlib.util.find_spec(library) is None for library in LIBRARIES):
        raise SparkMissing(f"{who} needs Spark: {INSTALL}")
    try:
        found = version("pyspark")
    except PackageNotFoundError:  # Spark's own distribution, put on the path by spark-submit
        return
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[:2])
    if not VERSION_MIN <= numbers < VERSION_END:
        raise SparkMissing(f"{who} needs Spark 4.2 or 4.3, but {found} is installed: {INSTALL}")


def spark_session(
    *, app: str, master: str | None = None, extra: Mapping[str, str] | None = None
) -> SparkSession:
    """A session, started if this process has none yet. `extra` overrides our defaults.

    Without a master it is spark-submit's if that started us, otherwise all cores of this machine.
    """
    require_spark(app)
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not is_submitted:
        master = LOCAL_MASTER
    if not is_submitted:
        os.environ["JAVA_HOME"] = str(ensure_java())
    if master is not None and is_local(master):
        # Workers are processes of this machine: they must be the Python that has Tidelog.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

    from pyspark.sql import SparkSession

    _silence_error_loggers()
    builder = SparkSession.Builder().appName(app)
    if master is not None:
        builder = builder.master(master)
    for key, value in session_settings(master, extra or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def session_settings(master: str | None, extra: Mapping[str, str]) -> dict[str, str]:
    """All settings of a session, by Spark's names."""
    settings = dict(_DEFAULTS)
    quiet = f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"
    if master is not None and is_local(master):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        # Spark's 200 is for big clusters; a stateful stream would start 200 tasks per batch.
        settings["spark.sql.shuffle.partitions"] = str(threads_of(master))
        settings["spark.driver.extraJavaOptions"] = quiet
        # Spark makes this directory, for tables without a path, where it is started.
        settings["spark.sql.warehouse.dir"] = str(Path(tempfile.gettempdir(), WAREHOUSE))
    if quiet in settings.values() and (own := extra.get("spark.driver.extraJavaOptions")):
        return {**settings, **extra, "spark.driver.extraJavaOptions": f"{quiet} {own}"}
    return {**settings, **extra}


def is_local(master: str) -> bool:
    """Returns whether everything runs on this machine."""
    return master == "local" or master.startswith(("local[", "local-cluster["))


def threads_of(master: str) -> int:
    """How many tasks a local master runs at once."""
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        return int(found.group(1)) * int(found.group(2))
    if found := re.match(r"local\[\s*(\d+|\*)", master):
        given = found.group(1)
        return (os.cpu_count() or 1) if given == "*" else int(given)
    return 1


def _silence_error_loggers() -> None:
    """Spark's Python would also write every exception that it raises to standard error."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
