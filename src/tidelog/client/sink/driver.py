"""The sink's driver: takes over, begins a transaction per batch, and is the only one who commits.

Every method is a generator of calls (`conversation.py`). Each transaction has a producer epoch of
its own, so that nothing of an older one can reach it, not even a commit that comes late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tidelog.client.events import (
    BatchAborted,
    BatchBegun,
    BatchCommitted,
    BatchSkipped,
    MarkerDoubted,
    MarkerRenewed,
    SinkTakenOver,
)
from tidelog.client.sink import transaction_end
from tidelog.client.sink.cluster_checks import (
    ClusterFacts,
    check_cluster,
    end_offsets,
    partitions_of,
)
from tidelog.client.sink.conversation import Steps, call, pause_until, require
from tidelog.client.sink.decisions import RESENT, ErrorDecision
from tidelog.client.sink.errors import BatchLost, Fenced, OutOfTime, SinkError, SinkRefused
from tidelog.client.sink.guards import check_batch
from tidelog.client.sink.marker import (
    BatchIdentity,
    PublishDecision,
    SinkMarker,
    check_owner,
    check_query,
    judge,
)
from tidelog.client.sink.options import SinkOptions
from tidelog.client.sink.replies import CallStatus, as_timeout, error_for, require_answer
from tidelog.client.sink.requests import (
    SinkCall,
    StoredMarker,
    add_offsets_call,
    any_marker_call,
    identity_call,
    marker_call,
    next_epoch_call,
    read_identity,
    read_stored_marker,
    write_marker_call,
)
from tidelog.client.sink.values import AlreadyPublished, BatchTicket, Receipt
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.model.trace import Trace

T = TypeVar("T")
FRESH_MS = 500
"""Maximum age of the marker when a new producer epoch is asked for. Whoever takes over waits for
as long with his first batch, until nobody acts any more on a marker that named another run."""
DOUBTS_MAX = 20
"""How many answers in a row may be too old before the cluster counts as too slow."""
CONTEST_MS = 1_000
"""Time that somebody who takes over has to write the marker, before we claim the sink again."""
RENEWALS_PER_RETENTION = 7


class SinkDriverMachine:
    """One run of one sink. Inputs: the generators, run one at a time."""

    def __init__(self, options: SinkOptions, *, query_id: str, run_id: str, trace: Trace) -> None:
        self.name = options.group
        """Of the group and of the transactional id."""
        self.run_id = run_id
        self._options = options
        self._query_id = query_id
        self.open: BatchTicket | None = None
        """Invariant: only between a begin and its commit or abort."""
        self.facts: ClusterFacts | None = None
        self._trace = trace
        self._identity: ProducerIdAndEpoch | None = None
        self._stored: StoredMarker | None = None
        self._offered: BatchIdentity | None = None
        self._may_be_open = False
        """A transaction of ours may be open under an epoch that we do not use any more."""
        self._opened_ms = 0
        self._marked_ms = 0
        self._no_batch_before_ms = 0
        """Until then another driver may believe that the sink is its own."""
        self._final: SinkError | None = None

    @property
    def published(self) -> BatchIdentity | None:
        """What the sink has published last, as far as this run knows."""
        return self._stored.marker.published if self._stored is not None else None

    def open_for_ms(self, now_ms: int) -> int | None:
        """The age of the open transaction."""
        return None if self.open is None else now_ms - self._opened_ms

    def renewal_due_ms(self) -> int | None:
        """When the marker is to be written again; None before the sink was taken over."""
        if self.facts is None or self._stored is None:
            return None
        return self._marked_ms + self.facts.offsets_retention_ms // RENEWALS_PER_RETENTION

    # What a driver does

    def take_over(self) -> Steps[None]:
        """Fence whoever had the sink, and write our name into its marker."""
        return self._until_final(self._take_over())

    def begin(self, batch_id: int, source_hash: str) -> Steps[BatchTicket | AlreadyPublished]:
        """A ticket for the tasks, or the news that there is nothing to do."""
        if self._stored is None:
            raise SinkRefused("the sink has to be taken over first")
        offered = BatchIdentity(query_id=self._query_id, batch_id=batch_id, source_hash=source_hash)
        return self._until_final(self._begin(offered))

    def commit(self, receipts: Iterable[Receipt], *, now_ms: int) -> Steps[None]:
        """Publish what the receipts list. Raises only what was aborted, and CommitUnknown."""
        return self._until_final(self._commit(tuple(receipts), now_ms))

    def abort(self, because: str) -> Steps[None]:
        """Give the open batch up; nothing to do if there is none."""
        return self._until_final(self._abort(because))

    def give_up(self, error: SinkError, *, now_ms: int) -> Steps[None]:
        """A task failed: abort, and raise what that means for the run."""
        return self._until_final(self._give_up(error, now_ms))

    def renew(self) -> Steps[None]:
        """Write the marker once more, so that Kafka does not forget it."""
        return self._until_final(self._renew())

    def _until_final(self, steps: Steps[T]) -> Steps[T]:
        if self._final is not None:
            raise self._final
        try:
            return (yield from steps)
        except SinkError as error:
            if error.is_final:
                self._final = error
            raise

    # The protocol

    def _take_over(self) -> Steps[None]:
        topics = self._options.topic_names
        self.facts = yield from check_cluster(self._options.transaction_timeout_ms)
        yield from partitions_of(topics)
        # Nothing has been touched yet: a query that took the name of another one's sink stops here.
        yield from self._known_marker()
        timeout_ms = self.facts.transaction_timeout_ms
        identified = yield from require(identity_call(self.name, transaction_timeout_ms=timeout_ms))
        self._identity = read_identity(identified)
        # Whatever our predecessors began is decided now.
        former = yield from self._known_marker()
        found = former or StoredMarker(
            TopicPartition(min(topics), 0), SinkMarker(run_id=self.run_id)
        )
        yield from self._rewrite_marker(found._replace(marker=found.marker.of_run(self.run_id)))
        if former is not None:
            self._no_batch_before_ms = self._marked_ms + FRESH_MS
        self._trace.emit(
            SinkTakenOver(
                sink=self.name,
                run_id=self.run_id,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.producer_epoch,
                batch_id=self.published.batch_id if self.published is not None else None,
            )
        )

    def _known_marker(self) -> Steps[StoredMarker | None]:
        """The marker, of whichever partition; CheckpointForeign if it is another query's."""
        answer = yield from require(any_marker_call(self.name))
        found = read_stored_marker(answer, self.name)
        check_query(_marker(found), self._query_id, group=self.name)
        return found

    def _begin(self, offered: BatchIdentity) -> Steps[BatchTicket | AlreadyPublished]:
        if self.open is not None:
            yield from self._abort("another batch begins")

        def decide(found: StoredMarker | None) -> PublishDecision:
            return judge(
                _marker(found),
                offered,
                run_id=self.run_id,
                group=self.name,
                resume_at=self._options.resume_at,
            )

        decision = yield from self._next_epoch(decide)
        if decision == PublishDecision.ALREADY_PUBLISHED:
            self._trace.emit(BatchSkipped(batch_id=offered.batch_id))
            return AlreadyPublished(batch_id=offered.batch_id)
        assert self._identity is not None and self.facts is not None
        offsets, self._opened_ms = yield from end_offsets(self._options.topic_names)
        self._offered = offered
        self.open = BatchTicket(
            transactional_id=self.name,
            batch_id=offered.batch_id,
            identity=self._identity,
            end_offsets=offsets,
            transaction_timeout_ms=self.facts.transaction_timeout_ms,
        )
        self._trace.emit(BatchBegun(batch_id=offered.batch_id, **self._identity._asdict()))
        return self.open

    def _next_epoch(
        self, decide: Callable[[StoredMarker | None], PublishDecision]
    ) -> Steps[PublishDecision]:
        """Read the marker, and only with a fresh one in hand ask for a new producer epoch.

        An old answer is no ground to ask on, since Kafka aborts whatever is open:

          1. Driver A asks for the marker. The answer says that the sink is A's.
          2. A is stopped (SIGSTOP) before it reads it. B takes over and begins a batch.
          3. A wakes, reads the answer, and asks for its next epoch. A's own epoch is too old, but
             Kafka looks at that only while nothing is open: B's transaction is aborted.

        So an answer is good for half a second, and B begins nothing for as long.
        """
        assert self._stored is not None, "taken over first"
        doubts, is_contested = 0, False
        while True:
            read = yield from call(marker_call(self.name, self._stored.partition))
            found = read_stored_marker(require_answer(read), self.name)
            decision = decide(found)
            if decision == PublishDecision.ALREADY_PUBLISHED:
                return decision
            if read.now_ms < self._no_batch_before_ms:
                yield from pause_until(self._no_batch_before_ms)
                continue
            reply = yield from call(self._epoch_call(read.sent_ms + FRESH_MS))
            if reply.status == CallStatus.TOO_LATE:
                doubts += 1
                self._trace.emit(MarkerDoubted(age_ms=reply.now_ms - read.sent_ms))
                if doubts == DOUBTS_MAX:
                    raise OutOfTime(
                        f"{doubts} answers about the marker of {self.name} in a row came later"
                        f" than {FRESH_MS} ms after the question: too old to act on"
                    )
            elif reply.decision == ErrorDecision.FENCED and not is_contested:
                # A late task of our own may have done it, or somebody who is taking over.
                is_contested = self._may_be_open = True
                yield from pause_until(reply.now_ms + CONTEST_MS)
            elif reply.status == CallStatus.OUT_OF_TIME or reply.decision not in RESENT:
                self._identity = read_identity(require_answer(reply))
                self._stored, self._may_be_open = found or self._stored, False
                return decision

    def _epoch_call(self, not_after_ms: int) -> SinkCall:
        assert self.facts is not None and self._identity is not None, "taken over first"
        timeout_ms = self.facts.transaction_timeout_ms
        if self._may_be_open:
            unconditional = identity_call(self.name, transaction_timeout_ms=timeout_ms)
            return replace(unconditional, is_resent=False, not_after_ms=not_after_ms)
        return next_epoch_call(
            self.name,
            self._identity,
            transaction_timeout_ms=timeout_ms,
            not_after_ms=not_after_ms,
        )

    def _commit(self, receipts: Sequence[Receipt], now_ms: int) -> Steps[None]:
        ticket, offered, found = self.open, self._offered, self._stored
        if ticket is None or offered is None or found is None:
            raise SinkRefused("there is no open batch to commit")
        marked = StoredMarker(found.partition, SinkMarker(run_id=self.run_id, published=offered))
        try:
            yield from check_batch(ticket, receipts, add_offsets_call(self.name, ticket.identity))
            yield from require(write_marker_call(self.name, ticket.identity, marked))
        except SinkError as error:
            yield from self._give_up(error, now_ms)
            raise
        is_by_marker = yield from self._end(ticket.identity, marked)
        self._trace.emit(
            BatchCommitted(
                batch_id=offered.batch_id,
                partitions=len(receipts),
                records=sum(each.records for each in receipts),
                by_marker=is_by_marker,
            )
        )

    def _abort(self, because: str) -> Steps[None]:
        ticket, self.open = self.open, None
        if ticket is None:
            return
        self._may_be_open = True
        yield from transaction_end.abort(self.name, ticket.identity)
        self._trace.emit(BatchAborted(batch_id=ticket.batch_id, because=because))

    def _give_up(self, error: SinkError, now_ms: int) -> Steps[None]:
        if self.open is not None and isinstance(error, Fenced | BatchLost):
            timeout_ms = self.open.transaction_timeout_ms
            error = as_timeout(error, open_for_ms=now_ms - self._opened_ms, timeout_ms=timeout_ms)
        yield from self._abort(str(error))
        raise error

    def _renew(self) -> Steps[None]:
        if self.open is not None:
            return

        def is_ours(found: StoredMarker | None) -> PublishDecision:
            check_owner(_marker(found), run_id=self.run_id, group=self.name)
            return PublishDecision.PUBLISH

        yield from self._next_epoch(is_ours)
        assert self._stored is not None
        yield from self._rewrite_marker(self._stored)
        last = self.published
        self._trace.emit(MarkerRenewed(batch_id=last.batch_id if last is not None else None))

    def _rewrite_marker(self, found: StoredMarker) -> Steps[None]:
        """A transaction with nothing in it but the marker."""
        assert self._identity is not None
        self._may_be_open = True
        yield from require(add_offsets_call(self.name, self._identity))
        yield from require(write_marker_call(self.name, self._identity, found))
        yield from self._end(self._identity, found)
        self._may_be_open = False

    def _end(self, identity: ProducerIdAndEpoch, marked: StoredMarker) -> Steps[bool]:
        """The commit point. Returns whether only the marker showed that it is committed."""
        is_news = marked.marker.published != self.published
        end = yield from transaction_end.commit(self.name, identity, marked, is_news=is_news)
        if isinstance(end, transaction_end.NotCommitted):
            yield from self._give_up(error_for(end.reply), end.reply.now_ms)
            raise AssertionError("it raises")
        self.open, self._stored, self._marked_ms = None, marked, end.now_ms
        return end.by_marker


def _marker(found: StoredMarker | None) -> SinkMarker | None:
    return None if found is None else found.marker
