"""The sink's driver: takes over, begins a transaction per batch, and is the only one who commits.

Every method is a generator of wishes (`conversation.py`). Each transaction has a producer epoch of
its own, so that nothing of an older one can reach it, not even a commit that comes late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tidelog.client.producer.batch import ProducerIdentity
from tidelog.client.sink import ending
from tidelog.client.sink.asking import Ask, Ending
from tidelog.client.sink.checking import check_batch
from tidelog.client.sink.conversation import Steps, asked, paused
from tidelog.client.sink.decisions import RESENT, Decision
from tidelog.client.sink.end_offsets import end_offsets
from tidelog.client.sink.errors import BatchLost, Fenced, OutOfTime, SinkError, SinkRefused
from tidelog.client.sink.events import (
    BatchAborted,
    BatchBegun,
    BatchCommitted,
    BatchSkipped,
    MarkerDoubted,
    MarkerRenewed,
    SinkTakenOver,
)
from tidelog.client.sink.fitness import ClusterFacts, check_cluster
from tidelog.client.sink.judgement import Verdict, check_owner, check_query, judge
from tidelog.client.sink.marker import Marker, Published
from tidelog.client.sink.requests import (
    Found,
    ask_add_offsets,
    ask_any_marker,
    ask_identity,
    ask_mark,
    ask_marker,
    ask_next_epoch,
    found_marker,
    told_identity,
)
from tidelog.client.sink.telling import must, too_old, trouble
from tidelog.client.sink.topics import partitions_of
from tidelog.client.sink.values import AlreadyPublished, Begun, Receipt, name_of
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import Trace

T = TypeVar("T")
FRESH_MS = 500
"""So old the marker may be when a new producer epoch is asked for; and so long whoever takes over
waits with his first batch, until nobody acts any more on a marker that named another run."""
DOUBTS_MAX = 20
"""So many answers in a row may be too old; a cluster that never answers in time is told of."""
CONTEST_MS = 1_000
"""So long somebody who takes over has to write the marker, before we claim the sink again."""
RENEWALS_PER_RETENTION = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which sink, for which query, and in which run of it."""

    sink_id: str
    topics: tuple[str, ...]
    query_id: str
    run_id: str
    transaction_timeout_ms: int | None = None
    resume_at: int | None = None

    @property
    def name(self) -> str:
        """Of the group and of the transactional id."""
        return name_of(self.sink_id)


class Driver:
    """One run of one sink. Inputs: the generators, led one at a time."""

    def __init__(self, plan: Plan, trace: Trace) -> None:
        self.plan = plan
        self.name = plan.name
        self.open: Begun | None = None
        """Invariant: only between a begin and its commit or abort."""
        self.facts: ClusterFacts | None = None
        self._trace = trace
        self._identity: ProducerIdentity | None = None
        self._found: Found | None = None
        self._offered: Published | None = None
        self._is_loose = False
        """A transaction of ours may be open under an epoch that we do not use any more."""
        self._opened_ms = 0
        self._marked_ms = 0
        self._quiet_until_ms = 0
        """Until then somebody may believe that the sink is his."""
        self._final: SinkError | None = None

    @property
    def published(self) -> Published | None:
        """What the sink has published last, as far as this run knows."""
        return self._found.marker.published if self._found is not None else None

    def open_for_ms(self, now_ms: int) -> int | None:
        """The age of the open transaction."""
        return None if self.open is None else now_ms - self._opened_ms

    def renewal_due_ms(self) -> int | None:
        """When the marker is to be written again; None before the sink was taken over."""
        if self.facts is None or self._found is None:
            return None
        return self._marked_ms + self.facts.offsets_retention_ms // RENEWALS_PER_RETENTION

    # What a driver does

    def take_over(self) -> Steps[None]:
        """Fence whoever had the sink, and write our name into its marker."""
        return self._until_final(self._take_over())

    def begin(self, batch_id: int, source_hash: str) -> Steps[Begun | AlreadyPublished]:
        """A ticket for the tasks, or the news that there is nothing to do."""
        if self._found is None:
            raise SinkRefused("the sink has to be taken over first")
        offered = Published(query_id=self.plan.query_id, batch_id=batch_id, source_hash=source_hash)
        return self._until_final(self._begin(offered))

    def commit(self, receipts: Iterable[Receipt], *, now_ms: int) -> Steps[None]:
        """Publish what the receipts tell of. Raises only what was aborted, and CommitUnknown."""
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
        plan = self.plan
        self.facts = yield from check_cluster(plan.transaction_timeout_ms)
        yield from partitions_of(plan.topics)
        # Nothing has been touched yet: a query that took the name of another one's sink stops here.
        yield from self._known_marker()
        timeout_ms = self.facts.transaction_timeout_ms
        identified = yield from asked(ask_identity(self.name, transaction_timeout_ms=timeout_ms))
        self._identity = told_identity(must(identified))
        # Whatever our predecessors began is decided now.
        former = yield from self._known_marker()
        found = former or Found(TopicPartition(min(plan.topics), 0), Marker(run_id=plan.run_id))
        yield from self._rewrite_marker(found._replace(marker=found.marker.of_run(plan.run_id)))
        if former is not None:
            self._quiet_until_ms = self._marked_ms + FRESH_MS
        self._trace.emit(
            SinkTakenOver(
                sink=self.name,
                run_id=plan.run_id,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.producer_epoch,
                batch_id=self.published.batch_id if self.published is not None else None,
            )
        )

    def _known_marker(self) -> Steps[Found | None]:
        """Wherever it stands; CheckpointForeign if it is another query's."""
        read = yield from asked(ask_any_marker(self.name))
        found = found_marker(must(read), self.name)
        check_query(_marker(found), self.plan.query_id, group=self.name)
        return found

    def _begin(self, offered: Published) -> Steps[Begun | AlreadyPublished]:
        if self.open is not None:
            yield from self._abort("another batch begins")

        def belongs(found: Found | None) -> Verdict:
            return judge(
                _marker(found),
                offered,
                run_id=self.plan.run_id,
                group=self.name,
                resume_at=self.plan.resume_at,
            )

        verdict = yield from self._next_epoch(belongs)
        if verdict == Verdict.ALREADY_PUBLISHED:
            self._trace.emit(BatchSkipped(batch_id=offered.batch_id))
            return AlreadyPublished(batch_id=offered.batch_id)
        assert self._identity is not None and self.facts is not None
        offsets, self._opened_ms = yield from end_offsets(self.plan.topics)
        self._offered = offered
        self.open = Begun(
            transactional_id=self.name,
            batch_id=offered.batch_id,
            identity=self._identity,
            end_offsets=offsets,
            transaction_timeout_ms=self.facts.transaction_timeout_ms,
        )
        self._trace.emit(BatchBegun(batch_id=offered.batch_id, **self._identity._asdict()))
        return self.open

    def _next_epoch(self, belongs: Callable[[Found | None], Verdict]) -> Steps[Verdict]:
        """Read the marker, and only with a fresh one in hand ask for a new producer epoch.

        An old answer is no ground to ask on, since Kafka aborts whatever is open:

          1. Driver A asks for the marker. The answer says that the sink is A's.
          2. A is stopped (SIGSTOP) before it reads it. B takes over and begins a batch.
          3. A wakes, reads the answer, and asks for its next epoch. A's own epoch is too old, but
             Kafka looks at that only while nothing is open: B's transaction is aborted.

        So an answer is good for half a second, and B begins nothing for as long.
        """
        assert self._found is not None, "taken over first"
        doubts, is_contested = 0, False
        while True:
            read = yield from asked(ask_marker(self.name, self._found.place))
            found = found_marker(must(read), self.name)
            verdict = belongs(found)
            if verdict == Verdict.ALREADY_PUBLISHED:
                return verdict
            if read.now_ms < self._quiet_until_ms:
                yield from paused(self._quiet_until_ms)
                continue
            told = yield from asked(self._ask_epoch(read.asked_ms + FRESH_MS))
            if told.ending == Ending.TOO_LATE:
                doubts += 1
                self._trace.emit(MarkerDoubted(age_ms=told.now_ms - read.asked_ms))
                if doubts == DOUBTS_MAX:
                    raise OutOfTime(
                        f"{doubts} answers about the marker of {self.name} in a row came later"
                        f" than {FRESH_MS} ms after the question: too old to act on"
                    )
            elif told.decision == Decision.FENCED and not is_contested:
                # A late task of our own may have done it, or somebody who is taking over.
                is_contested = self._is_loose = True
                yield from paused(told.now_ms + CONTEST_MS)
            elif told.ending == Ending.OUT_OF_TIME or told.decision not in RESENT:
                self._identity = told_identity(must(told))
                self._found, self._is_loose = found or self._found, False
                return verdict

    def _ask_epoch(self, not_after_ms: int) -> Ask:
        assert self.facts is not None and self._identity is not None, "taken over first"
        timeout_ms = self.facts.transaction_timeout_ms
        if self._is_loose:
            ask = ask_identity(self.name, transaction_timeout_ms=timeout_ms)
            return replace(ask, is_resent=False, not_after_ms=not_after_ms)
        return ask_next_epoch(
            self.name,
            self._identity,
            transaction_timeout_ms=timeout_ms,
            not_after_ms=not_after_ms,
        )

    def _commit(self, receipts: Sequence[Receipt], now_ms: int) -> Steps[None]:
        begun, offered, found = self.open, self._offered, self._found
        if begun is None or offered is None or found is None:
            raise SinkRefused("there is no open batch to commit")
        marked = Found(found.place, Marker(run_id=self.plan.run_id, published=offered))
        try:
            yield from check_batch(begun, receipts, ask_add_offsets(self.name, begun.identity))
            must((yield from asked(ask_mark(self.name, begun.identity, marked))))
        except SinkError as error:
            yield from self._give_up(error, now_ms)
            raise
        is_by_marker = yield from self._end(begun.identity, marked)
        self._trace.emit(
            BatchCommitted(
                batch_id=offered.batch_id,
                partitions=len(receipts),
                records=sum(each.records for each in receipts),
                by_marker=is_by_marker,
            )
        )

    def _abort(self, because: str) -> Steps[None]:
        begun, self.open = self.open, None
        if begun is None:
            return
        self._is_loose = True
        yield from ending.abort(self.name, begun.identity)
        self._trace.emit(BatchAborted(batch_id=begun.batch_id, because=because))

    def _give_up(self, error: SinkError, now_ms: int) -> Steps[None]:
        if self.open is not None and isinstance(error, Fenced | BatchLost):
            timeout_ms = self.open.transaction_timeout_ms
            error = too_old(error, open_for_ms=now_ms - self._opened_ms, timeout_ms=timeout_ms)
        yield from self._abort(str(error))
        raise error

    def _renew(self) -> Steps[None]:
        if self.open is not None:
            return

        def is_ours(found: Found | None) -> Verdict:
            check_owner(_marker(found), run_id=self.plan.run_id, group=self.name)
            return Verdict.PUBLISH

        yield from self._next_epoch(is_ours)
        assert self._found is not None
        yield from self._rewrite_marker(self._found)
        last = self.published
        self._trace.emit(MarkerRenewed(batch_id=last.batch_id if last is not None else None))

    def _rewrite_marker(self, found: Found) -> Steps[None]:
        """A transaction with nothing in it but the marker."""
        assert self._identity is not None
        self._is_loose = True
        must((yield from asked(ask_add_offsets(self.name, self._identity))))
        must((yield from asked(ask_mark(self.name, self._identity, found))))
        yield from self._end(self._identity, found)
        self._is_loose = False

    def _end(self, identity: ProducerIdentity, marked: Found) -> Steps[bool]:
        """The commit point; whether it was the marker that told of it."""
        is_news = marked.marker.published != self.published
        end = yield from ending.commit(self.name, identity, marked, is_news=is_news)
        if isinstance(end, ending.NotCommitted):
            yield from self._give_up(trouble(end.told), end.told.now_ms)
            raise AssertionError("it raises")
        self.open, self._found, self._marked_ms = None, marked, end.now_ms
        return end.by_marker


def _marker(found: Found | None) -> Marker | None:
    return None if found is None else found.marker
