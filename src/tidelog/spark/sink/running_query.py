"""What the JVM knows about the batch that is being run: its query, its offsets, its checkpoint.

A function of `foreachBatch` is given a frame and a number. Everything else stands in properties of
Spark's thread and in the running query itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from tidelog.client.sink.errors import SinkRefused

QUERY_ID_PROPERTY = "sql.streaming.queryId"
BATCH_ID_PROPERTY = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBatch:
    """One batch of one query."""

    query_id: str
    batch_id: int
    source_hash: str
    """Of the offsets at which each source of the query ends in this batch."""
    checkpoint: str
    """Where Spark keeps the query's state, as an address."""


def running_batch(frame: DataFrame, batch_id: int) -> RunningBatch:
    """The batch that Spark runs now; SinkRefused where it cannot be found out, as under Connect."""
    context = getattr(frame.sparkSession, "_sc", None)
    if context is None:
        raise SinkRefused("the exactly-once sink works in Spark's own driver, not over Connect")
    query_id = context.getLocalProperty(QUERY_ID_PROPERTY)
    running_id = context.getLocalProperty(BATCH_ID_PROPERTY)
    if query_id is None or running_id is None:
        raise SinkRefused("the exactly-once sink is for foreachBatch of a streaming query")
    if int(running_id) != batch_id:
        raise SinkRefused(f"Spark runs batch {running_id}, and the sink was called for {batch_id}")
    query = _execution(frame, context, query_id)
    return RunningBatch(
        query_id=query_id,
        batch_id=batch_id,
        source_hash=hash_of(_offsets(query, batch_id)),
        checkpoint=str(query.resolvedCheckpointRoot()),
    )


def hash_of(offsets: list[str]) -> str:
    """The same for a replay, another one for other offsets."""
    return hashlib.sha256("\n".join(offsets).encode()).hexdigest()


def _execution(frame: DataFrame, context: Any, query_id: str) -> Any:
    """The query runs in a session of its own; all sessions share the list of active queries."""
    session: Any = frame.sparkSession
    active = session._jsparkSession.sharedState().activeStreamingQueries()
    query = active.get(context._jvm.java.util.UUID.fromString(query_id))
    if query is None:
        raise SinkRefused(f"Spark does not know its own query {query_id}")
    return query


def _offsets(query: Any, batch_id: int) -> list[str]:
    """As Spark has written them down before it began the batch."""
    written = query.offsetLog().get(batch_id)
    if not written.isDefined():
        raise SinkRefused(f"the checkpoint has no offsets of batch {batch_id}")
    offsets = written.get().offsets()
    each = [offsets.apply(index) for index in range(offsets.size())]
    return [one.get().json() if one.isDefined() else "none" for one in each]
