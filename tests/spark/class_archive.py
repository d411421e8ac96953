"""An archive of the classes that Spark loads, with which later JVMs start sooner.

    python -m tests.spark.class_archive FILE

starts a Spark, streams a little, and leaves the archive behind. A JVM that is given a file which is
not there yet, or which another Java made, starts without it and says nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROOT = Path(__file__).parents[2]
OPTIONS = "SPARK_SUBMIT_OPTS"


class ClassArchive:
    """Made beside the tests, by a process of its own, while they begin."""

    def __init__(self, directory: Path) -> None:
        path = directory / "spark.jsa"
        self._making = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.class_archive", str(path)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.environ[OPTIONS] = f"{os.environ.get(OPTIONS, '')} -XX:SharedArchiveFile={path}"

    def close(self) -> None:
        """Nobody starts a Spark any more."""
        if self._making.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._making.pid, signal.SIGKILL)
        self._making.wait()


def make(path: Path) -> None:
    """The file has its name when it is whole."""
    unfinished = path.with_suffix(".unfinished")
    os.environ[OPTIONS] = f"{os.environ.get(OPTIONS, '')} -XX:ArchiveClassesAtExit={unfinished}"
    from tidelog.spark import spark_session

    spark = spark_session(app="class archive", master="local[2]")
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = rows.writeStream.foreachBatch(_collect)
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start().awaitTermination()
    gateway = spark.sparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    unfinished.rename(path)


def _collect(frame: DataFrame, _batch_id: int) -> None:
    frame.collect()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
