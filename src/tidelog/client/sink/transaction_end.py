"""How a transaction ends: the one commit point, what to do when its answer is lost, and the abort.

`failed` is said only of what certainly is not committed. The marker moves in the transaction
itself, and a reader that insists on stable offsets is answered only when it is decided, so a marker
that can be read is true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tidelog.client.sink.conversation import Steps, call
from tidelog.client.sink.decisions import ErrorDecision
from tidelog.client.sink.errors import CommitUnknown, MarkerUnreadable
from tidelog.client.sink.replies import CallStatus, SinkReply
from tidelog.client.sink.requests import (
    SinkCall,
    StoredMarker,
    end_transaction_call,
    marker_call,
    read_stored_marker,
    transaction_call,
)
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsResponse

ABORT_TIMEOUT_MS = 10_000
"""An abort that gets no answer is made up for by whoever uses the sink next."""
MARKER_TIMEOUT_MS = 60_000
_COMMITTED = ("PrepareCommit", "CompleteCommit")
_ABORTED = ("PrepareAbort", "CompleteAbort")


class CommitConfirmed(NamedTuple):
    """It is committed; `by_marker`: the marker shows it, since EndTxn got no clear yes."""

    by_marker: bool
    now_ms: int


class NotCommitted(NamedTuple):
    """It certainly is not committed, and `reply` says why."""

    reply: SinkReply


def commit(
    name: str, identity: ProducerIdAndEpoch, marked: StoredMarker, *, is_news: bool
) -> Steps[CommitConfirmed | NotCommitted]:
    """Ask for the commit; CommitUnknown if nobody knows what became of it.

    `marked` is what the transaction wrote, and `is_news` whether it names another batch than
    before, and not only another run.
    """
    end = yield from call(end_transaction_call(name, identity, is_commit=True))
    if end.is_success:
        return CommitConfirmed(by_marker=False, now_ms=end.now_ms)
    if end.status == CallStatus.ANSWERED:
        # Undecided, it would keep everybody waiting: an abort decides, or is refused as late.
        aborted = yield from call(_abort_call(name, identity))
        if aborted.is_success:
            return NotCommitted(end)
    check = yield from call(marker_call(name, marked.partition, timeout_ms=MARKER_TIMEOUT_MS))
    if not check.is_success:
        raise CommitUnknown(
            f"the commit was asked for and not answered ({end.reason}), and the marker cannot be"
            f" read ({check.reason}): nobody knows whether the batch is published. Start the query"
            f" again: it will find out"
        )
    assert check.answer is not None
    try:
        found = read_stored_marker(check.answer, name)
    except MarkerUnreadable as unreadable:
        raise CommitUnknown(f"the commit was not answered, and {unreadable}") from None
    # Whoever took over since has kept what was published, under another run id.
    published = marked.marker.published
    if found is not None and (found == marked or (is_news and found.marker.published == published)):
        return CommitConfirmed(by_marker=True, now_ms=check.now_ms)
    return NotCommitted(end)


def commit_unmarked(
    name: str, identity: ProducerIdAndEpoch
) -> Steps[CommitConfirmed | NotCommitted]:
    """The same for a transaction without a marker: then the coordinator itself is asked."""
    end = yield from call(end_transaction_call(name, identity, is_commit=True))
    if end.is_success:
        return CommitConfirmed(by_marker=False, now_ms=end.now_ms)
    if (yield from call(_abort_call(name, identity))).is_success:
        return NotCommitted(end)
    check = yield from call(replace(transaction_call(name), timeout_ms=MARKER_TIMEOUT_MS))
    if check.is_success and isinstance(check.answer, DescribeTransactionsResponse):
        (state,) = check.answer.transaction_states
        if (state.producer_id, state.producer_epoch) == identity:
            if state.transaction_state in _COMMITTED:
                return CommitConfirmed(by_marker=True, now_ms=check.now_ms)
            if state.transaction_state in _ABORTED:
                return NotCommitted(end)
    raise CommitUnknown(
        f"the commit was asked for and not answered ({end.reason}), and nobody can say what became"
        f" of it: look into the topics before you write again"
    )


def abort(name: str, identity: ProducerIdAndEpoch) -> Steps[bool]:
    """Abort the transaction. Returns whether it is known to be over."""
    reply = yield from call(_abort_call(name, identity))
    return reply.is_success or reply.decision == ErrorDecision.OVER


def _abort_call(name: str, identity: ProducerIdAndEpoch) -> SinkCall:
    return end_transaction_call(name, identity, is_commit=False, timeout_ms=ABORT_TIMEOUT_MS)
