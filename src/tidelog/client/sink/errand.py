"""One batch by somebody who remembers nothing: all that it knows travels in the ticket.

For places where no process lives from batch to batch, such as Spark's Python data sources. Whoever
opens a batch fences everybody else, and the marker is looked at only when it is published. So each
batch is still published once, but a driver that wakes up late may make its successor fail once.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tidelog.client.sink import ending
from tidelog.client.sink.checking import check_batch
from tidelog.client.sink.conversation import Steps, asked
from tidelog.client.sink.end_offsets import end_offsets
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.fitness import check_cluster
from tidelog.client.sink.judgement import Verdict, judge
from tidelog.client.sink.marker import Marker, Published
from tidelog.client.sink.requests import (
    Found,
    ask_add_offsets,
    ask_any_marker,
    ask_identity,
    ask_mark,
    ask_marker,
    found_marker,
    told_identity,
)
from tidelog.client.sink.telling import must, trouble
from tidelog.client.sink.values import Begun, Receipt
from tidelog.core.model.ids import TopicPartition

NO_BATCH = -1
"""Of a ticket: which batch it is for will be known later, or never."""


class Outcome(Enum):
    """What became of a batch that did not fail."""

    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already published"


def open_batch(
    name: str, topics: Sequence[str], *, transaction_timeout_ms: int | None
) -> Steps[Begun]:
    """A ticket under this transactional id; whoever had one before is fenced."""
    facts = yield from check_cluster(transaction_timeout_ms)
    ask = ask_identity(name, transaction_timeout_ms=facts.transaction_timeout_ms)
    identity = told_identity(must((yield from asked(ask))))
    offsets, _ = yield from end_offsets(topics)
    return Begun(
        transactional_id=name,
        batch_id=NO_BATCH,
        identity=identity,
        end_offsets=offsets,
        transaction_timeout_ms=facts.transaction_timeout_ms,
    )


def publish_numbered(
    begun: Begun,
    receipts: Sequence[Receipt],
    offered: Published,
    *,
    run_id: str,
    resume_at: int | None = None,
) -> Steps[Outcome]:
    """Commit a batch of a query, or find that it was published before. Aborted if it raises."""
    name = begun.transactional_id
    try:
        found = yield from _marker_of(begun, run_id)
        verdict = judge(found.marker, offered, run_id=run_id, group=name, resume_at=resume_at)
        if verdict == Verdict.ALREADY_PUBLISHED:
            yield from ending.abort(name, begun.identity)
            return Outcome.ALREADY_PUBLISHED
        marked = Found(found.place, Marker(run_id=run_id, published=offered))
        yield from check_batch(begun, receipts, ask_add_offsets(name, begun.identity))
        must((yield from asked(ask_mark(name, begun.identity, marked))))
    except SinkError:
        yield from ending.abort(name, begun.identity)
        raise
    end = yield from ending.commit(name, begun.identity, marked, is_news=True)
    if isinstance(end, ending.NotCommitted):
        raise trouble(end.told)
    return Outcome.PUBLISHED


def publish_alone(begun: Begun, receipts: Sequence[Receipt]) -> Steps[Outcome]:
    """Commit everything or nothing, of a batch that will not come again."""
    name = begun.transactional_id
    try:
        yield from check_batch(begun, receipts)
    except SinkError:
        yield from ending.abort(name, begun.identity)
        raise
    if receipts:
        end = yield from ending.commit_unmarked(name, begun.identity)
        if isinstance(end, ending.NotCommitted):
            raise trouble(end.told)
    return Outcome.PUBLISHED


def abandon(begun: Begun) -> Steps[bool]:
    """Whether it is known to be over."""
    return ending.abort(begun.transactional_id, begun.identity)


def _marker_of(begun: Begun, run_id: str) -> Steps[Found]:
    """The sink's marker as ours; one that was never written tells of no batch."""
    name = begun.transactional_id
    known = found_marker(must((yield from asked(ask_any_marker(name)))), name)
    place = known.place if known is not None else TopicPartition(_first_topic(begun), 0)
    read = found_marker(must((yield from asked(ask_marker(name, place)))), name)
    marker = Marker(run_id=run_id) if read is None else read.marker.of_run(run_id)
    return Found(place, marker)


def _first_topic(begun: Begun) -> str:
    return min(each.topic for each in begun.end_offsets)
