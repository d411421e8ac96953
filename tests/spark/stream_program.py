"""A process with a Spark of its own that streams one topic into another one, exactly once.

    python -m tests.spark.stream_program MASTER

It makes its session, says `session`, and reads from its input, as one line of JSON, what to do
(`Wish`). Then it says what it does, line by line, and why it stopped. It can be made to kill or to
stop itself (`stream_fuses.py`), from the start or by a later line, and to wait for an empty line
when a batch has begun.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from tests.spark.stream_fuses import FUSES, Fuse, install
from tidelog.client.events import BatchBegun
from tidelog.client.sink.errors import SinkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STOPPED_ITSELF = 3
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a program is to do."""

    bootstrap: str
    source: str
    topic: str
    checkpoint: str
    limit: int | None = None
    """At most so many records in a batch."""
    is_last: bool = False
    """End when everything that is there has been written, and not only when killed."""
    waits_at: Sequence[int] = ()
    """Batches that wait for a line when they have begun."""
    fuses: Sequence[Fuse] = field(default_factory=tuple)
    is_marker_checked: bool = True
    more: dict[str, Any] = field(default_factory=dict)
    """Of `exactly_once`."""


def say(*words: object) -> None:
    print(*words, flush=True)


class SayingTrace:
    """Tells the events of the sink on standard output."""

    def __init__(self, waits_at: Sequence[int], may_go_on: threading.Semaphore) -> None:
        self._waits_at = set(waits_at)
        self._may_go_on = may_go_on

    def emit(self, event: object) -> None:
        batch_id = getattr(event, "batch_id", None)
        say(type(event).__name__, batch_id)
        if isinstance(event, BatchBegun) and batch_id in self._waits_at:
            self._waits_at.remove(batch_id)
            say("waits", batch_id)
            self._may_go_on.acquire()


def hear(may_go_on: threading.Semaphore) -> None:
    """Lines of the input: fuses, or nothing."""
    for line in sys.stdin:
        if line.strip():
            FUSES.arm(fuses_of(json.loads(line)))
        else:
            may_go_on.release()


def fuses_of(told: Sequence[Any]) -> list[Fuse]:
    return [Fuse(*each) for each in told]


def uncheck_marker() -> None:
    """The mistake that the sink exists to prevent: whatever is offered is published."""
    from tidelog.client.sink import driver
    from tidelog.client.sink.marker import PublishDecision

    assert hasattr(driver, "judge")
    patched: Any = driver
    patched.judge = lambda *given, **more: PublishDecision.PUBLISH


def stream(spark: Any, wish: Wish) -> None:
    from tidelog.spark import exactly_once

    reader = (
        spark.readStream.format("tidelog")
        .option("kafka.bootstrap.servers", wish.bootstrap)
        .option("subscribe", wish.source)
        .option("startingOffsets", "earliest")
    )
    if wish.limit is not None:
        reader = reader.option("maxOffsetsPerTrigger", wish.limit)
    rows = reader.load().selectExpr(
        "key",
        "value",
        "array(named_struct('key', 'tidelog-source', 'value',"
        " CAST(concat_ws('/', topic, partition, offset) AS BINARY))) AS headers",
    )
    may_go_on = threading.Semaphore(0)
    threading.Thread(target=hear, args=(may_go_on,), daemon=True).start()
    trace = SayingTrace(wish.waits_at, may_go_on)
    sink = exactly_once(wish.bootstrap, wish.topic, topic=wish.topic, trace=trace, **wish.more)

    def publish(frame: DataFrame, batch_id: int) -> None:
        say("batch", batch_id)
        FUSES.happen("the batch begins")
        try:
            sink(frame, batch_id)
        except SinkError as error:
            say("stopped", type(error).__name__, error)
            raise
        FUSES.happen("the batch is published")

    writer = rows.writeStream.foreachBatch(publish).option("checkpointLocation", wish.checkpoint)
    trigger: dict[str, Any] = (
        {"availableNow": True} if wish.is_last else {"processingTime": "0 seconds"}
    )
    query = writer.trigger(**trigger).start()
    query.awaitTermination()


def settings() -> dict[str, str]:
    return {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": ":".join(sys.path),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(Path(gettempdir(), "tidelog-stream-warehouse")),
    }


def main(master: str) -> None:
    from tidelog.spark import spark_session

    install()
    spark = spark_session(app="stream", master=master, extra=settings())
    say("session")
    given = json.loads(sys.stdin.readline())
    wish = Wish(**{**given, "fuses": fuses_of(given["fuses"])})
    FUSES.arm(wish.fuses)
    if not wish.is_marker_checked:
        uncheck_marker()
    stream(spark, wish)
    say("done")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception as error:
        say("failed", " ".join(str(error).split()))
        raise SystemExit(STOPPED_ITSELF) from None
