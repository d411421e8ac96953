"""A driver that keeps no state between its steps: all that it knows travels in the ticket.

For programs in which no process lives from batch to batch, such as Spark's Python data sources.
Whoever opens a batch fences everybody else, and the marker is read only when it is published. So
each batch is still published once, but a driver that wakes up late may make its successor fail
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tidelog.client.sink import transaction_end
from tidelog.client.sink.cluster_checks import check_cluster, end_offsets
from tidelog.client.sink.conversation import Steps, require
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.guards import check_batch
from tidelog.client.sink.marker import BatchIdentity, PublishDecision, SinkMarker, judge
from tidelog.client.sink.replies import error_for
from tidelog.client.sink.requests import (
    StoredMarker,
    add_offsets_call,
    any_marker_call,
    identity_call,
    marker_call,
    read_identity,
    read_stored_marker,
    write_marker_call,
)
from tidelog.client.sink.values import BatchTicket, Receipt
from tidelog.core.model.ids import TopicPartition

NO_BATCH = -1
"""In a ticket: the batch that it is for will be known later, or never."""


class PublishOutcome(Enum):
    """What became of a batch that did not fail."""

    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already published"


def open_batch(
    name: str, topics: Sequence[str], *, transaction_timeout_ms: int | None
) -> Steps[BatchTicket]:
    """A ticket under this transactional id; whoever had one before is fenced."""
    facts = yield from check_cluster(transaction_timeout_ms)
    timeout_ms = facts.transaction_timeout_ms
    answer = yield from require(identity_call(name, transaction_timeout_ms=timeout_ms))
    offsets, _ = yield from end_offsets(topics)
    return BatchTicket(
        transactional_id=name,
        batch_id=NO_BATCH,
        identity=read_identity(answer),
        end_offsets=offsets,
        transaction_timeout_ms=facts.transaction_timeout_ms,
    )


def publish_numbered(
    ticket: BatchTicket,
    receipts: Sequence[Receipt],
    offered: BatchIdentity,
    *,
    run_id: str,
    resume_at: int | None = None,
) -> Steps[PublishOutcome]:
    """Commit a batch of a query, or find that it was published before. Aborted if it raises."""
    name = ticket.transactional_id
    try:
        found = yield from _marker_of(ticket, run_id)
        decision = judge(found.marker, offered, run_id=run_id, group=name, resume_at=resume_at)
        if decision == PublishDecision.ALREADY_PUBLISHED:
            yield from transaction_end.abort(name, ticket.identity)
            return PublishOutcome.ALREADY_PUBLISHED
        marked = StoredMarker(found.partition, SinkMarker(run_id=run_id, published=offered))
        yield from check_batch(ticket, receipts, add_offsets_call(name, ticket.identity))
        yield from require(write_marker_call(name, ticket.identity, marked))
    except SinkError:
        yield from transaction_end.abort(name, ticket.identity)
        raise
    end = yield from transaction_end.commit(name, ticket.identity, marked, is_news=True)
    if isinstance(end, transaction_end.NotCommitted):
        raise error_for(end.reply)
    return PublishOutcome.PUBLISHED


def publish_alone(ticket: BatchTicket, receipts: Sequence[Receipt]) -> Steps[PublishOutcome]:
    """Commit everything or nothing, of a batch that will not come again."""
    name = ticket.transactional_id
    try:
        yield from check_batch(ticket, receipts)
    except SinkError:
        yield from transaction_end.abort(name, ticket.identity)
        raise
    if receipts:
        end = yield from transaction_end.commit_unmarked(name, ticket.identity)
        if isinstance(end, transaction_end.NotCommitted):
            raise error_for(end.reply)
    return PublishOutcome.PUBLISHED


def abandon(ticket: BatchTicket) -> Steps[bool]:
    """Abort the batch. Returns whether it is known to be over."""
    return transaction_end.abort(ticket.transactional_id, ticket.identity)


def _marker_of(ticket: BatchTicket, run_id: str) -> Steps[StoredMarker]:
    """The sink's marker as this run's; one that was never written names no batch."""
    name = ticket.transactional_id
    known = read_stored_marker((yield from require(any_marker_call(name))), name)
    first = TopicPartition(min(each.topic for each in ticket.end_offsets), 0)
    partition = first if known is None else known.partition
    read = read_stored_marker((yield from require(marker_call(name, partition))), name)
    marker = SinkMarker(run_id=run_id) if read is None else read.marker.of_run(run_id)
    return StoredMarker(partition, marker)
