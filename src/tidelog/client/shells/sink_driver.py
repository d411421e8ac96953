"""The sink's driver for programs: real sockets, calls that wait, errors that tell.

    with SinkDriver({"bootstrap.servers": "localhost:9092"}, sink_id="revenue",
                    topics=["revenue"], query_id=query_id) as sink:
        sink.take_over()
        begun = sink.begin(batch_id, source_hash)
        if isinstance(begun, Begun):
            sink.commit(run_tasks(begun))

Calls may come from several threads; one waits for the other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from tidelog.client.settings import Given
from tidelog.client.shells.sink_leading import TIMEOUT_S, SinkLeader
from tidelog.client.sink.driver import Driver, Plan
from tidelog.client.sink.errors import SinkError, SinkRefused
from tidelog.client.sink.marker import Published
from tidelog.client.sink.values import AlreadyPublished, Begun, Receipt
from tidelog.core.model.trace import NullTrace, Trace


class SinkDriver(SinkLeader):
    """One run of one sink."""

    def __init__(
        self,
        settings: Given,
        *,
        sink_id: str,
        topics: Sequence[str],
        query_id: str,
        run_id: str | None = None,
        transaction_timeout_ms: int | None = None,
        resume_at: int | None = None,
        timeout_s: float = TIMEOUT_S,
        trace: Trace | None = None,
    ) -> None:
        """`settings` are Kafka's, for a client; a run id is made up unless it is given."""
        if not sink_id or not topics:
            raise SinkRefused("a sink needs a sink id and at least one topic")
        plan = Plan(
            sink_id=sink_id,
            topics=tuple(dict.fromkeys(topics)),
            query_id=query_id,
            run_id=run_id or uuid.uuid4().hex,
            transaction_timeout_ms=transaction_timeout_ms,
            resume_at=resume_at,
        )
        super().__init__(settings, plan.name, timeout_s=timeout_s, trace=trace)
        self._driver = Driver(plan, trace if trace is not None else NullTrace())

    @property
    def run_id(self) -> str:
        return self._driver.plan.run_id

    @property
    def published(self) -> Published | None:
        """What was published last, as far as this run knows."""
        return self._driver.published

    @property
    def transaction_age_ms(self) -> int | None:
        """How long the open batch has been open; None: there is none."""
        return self._driver.open_for_ms(self._loop.now_ms())

    @property
    def transaction_timeout_ms(self) -> int | None:
        """How long a batch may take; None before the sink was taken over."""
        facts = self._driver.facts
        return None if facts is None else facts.transaction_timeout_ms

    def take_over(self) -> None:
        """Fence whoever runs this sink, and make it ours. SinkError if it cannot be."""
        self.lead(self._driver.take_over())

    def begin(self, batch_id: int, source_hash: str) -> Begun | AlreadyPublished:
        """The ticket for the tasks of this batch, or the news that it is published already."""
        return self.lead(self._driver.begin(batch_id, source_hash))

    def commit(self, receipts: Iterable[Receipt]) -> None:
        """Publish the open batch, all of it. CommitUnknown: it may be published, or not."""
        self.lead(self._driver.commit(receipts, now_ms=self._loop.now_ms()))

    def abort(self, because: str) -> None:
        """Give the open batch up."""
        self.lead(self._driver.abort(because))

    def give_up(self, error: SinkError) -> None:
        """Abort because a task failed, and raise what that means for the run."""
        self.lead(self._driver.give_up(error, now_ms=self._loop.now_ms()))

    def renew_if_due(self) -> bool:
        """Write the marker again before Kafka forgets it. An idle pipeline calls this at times."""
        with self._lock:
            due_ms = self._driver.renewal_due_ms()
            if due_ms is None or self._driver.open is not None or self._loop.now_ms() < due_ms:
                return False
            self.lead(self._driver.renew())
            return True
