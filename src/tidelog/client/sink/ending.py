"""How a transaction ends: the one commit point, what to do when its answer is lost, and the abort.

`failed` is said only of what certainly is not committed. The marker moves in the transaction
itself, and a reader that insists on stable offsets is answered only when it is decided, so a marker
that can be read tells the truth.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tidelog.client.producer.batch import ProducerIdentity
from tidelog.client.sink.asking import Ask, Ending, Told
from tidelog.client.sink.conversation import Steps, asked
from tidelog.client.sink.decisions import Decision
from tidelog.client.sink.errors import CommitUnknown, MarkerUnreadable
from tidelog.client.sink.requests import (
    Found,
    ask_end,
    ask_marker,
    ask_transaction,
    found_marker,
)
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsResponse

ABORT_PATIENCE_MS = 10_000
"""An abort that gets no answer is made up for by whoever uses the sink next."""
LOOK_PATIENCE_MS = 60_000
_COMMITTED = ("PrepareCommit", "CompleteCommit")
_ABORTED = ("PrepareAbort", "CompleteAbort")


class Committed(NamedTuple):
    """It is; `by_marker` if the commit itself was not answered with a yes."""

    by_marker: bool
    now_ms: int


class NotCommitted(NamedTuple):
    """It certainly is not, and `told` says why."""

    told: Told


def commit(
    name: str, identity: ProducerIdentity, marked: Found, *, is_news: bool
) -> Steps[Committed | NotCommitted]:
    """Ask for the commit. CommitUnknown: nobody knows.

    `marked` is what the transaction wrote, and `is_news` whether it tells of another batch than
    before, and not only of another run.
    """
    told = yield from asked(ask_end(name, identity, is_commit=True))
    if _is_yes(told):
        return Committed(by_marker=False, now_ms=told.now_ms)
    if told.ending == Ending.ANSWERED:
        # Undecided, it would keep everybody waiting: an abort decides, or is told that it is late.
        aborted = yield from asked(_ask_abort(name, identity))
        if _is_yes(aborted):
            return NotCommitted(told)
    looked = yield from asked(ask_marker(name, marked.place, patience_ms=LOOK_PATIENCE_MS))
    if not _is_yes(looked):
        raise CommitUnknown(
            f"the commit was asked for and not answered ({told.reason}), and the marker cannot be"
            f" read ({looked.reason}): nobody knows whether the batch is published. Start the query"
            f" again: it will find out"
        )
    assert looked.answer is not None
    try:
        found = found_marker(looked.answer, name)
    except MarkerUnreadable as unreadable:
        raise CommitUnknown(f"the commit was not answered, and {unreadable}") from None
    # Whoever took over since has kept what was published, under another run id.
    published = marked.marker.published
    if found is not None and (found == marked or (is_news and found.marker.published == published)):
        return Committed(by_marker=True, now_ms=looked.now_ms)
    return NotCommitted(told)


def commit_unmarked(name: str, identity: ProducerIdentity) -> Steps[Committed | NotCommitted]:
    """The same for a transaction without a marker: then the coordinator itself is asked."""
    told = yield from asked(ask_end(name, identity, is_commit=True))
    if _is_yes(told):
        return Committed(by_marker=False, now_ms=told.now_ms)
    if _is_yes((yield from asked(_ask_abort(name, identity)))):
        return NotCommitted(told)
    looked = yield from asked(replace(ask_transaction(name), patience_ms=LOOK_PATIENCE_MS))
    if _is_yes(looked) and isinstance(looked.answer, DescribeTransactionsResponse):
        (state,) = looked.answer.transaction_states
        if (state.producer_id, state.producer_epoch) == identity:
            if state.transaction_state in _COMMITTED:
                return Committed(by_marker=True, now_ms=looked.now_ms)
            if state.transaction_state in _ABORTED:
                return NotCommitted(told)
    raise CommitUnknown(
        f"the commit was asked for and not answered ({told.reason}), and nobody can say what became"
        f" of it: look into the topics before you write again"
    )


def abort(name: str, identity: ProducerIdentity) -> Steps[bool]:
    """Whether it is known to be over."""
    told = yield from asked(_ask_abort(name, identity))
    return _is_yes(told) or told.decision == Decision.OVER


def _ask_abort(name: str, identity: ProducerIdentity) -> Ask:
    return ask_end(name, identity, is_commit=False, patience_ms=ABORT_PATIENCE_MS)


def _is_yes(told: Told) -> bool:
    return told.ending == Ending.ANSWERED and told.decision == Decision.GO_ON
