"""The sink's drivers for programs: real sockets, and calls that wait.

    options = SinkOptions(bootstrap="localhost:9092", sink_id="revenue", topic="revenue")
    with SinkDriver(options, query_id=query_id) as sink:
        sink.take_over()
        ticket = sink.begin(batch_id, source_hash)
        if isinstance(ticket, BatchTicket):
            sink.commit(run_tasks(ticket))

Calls may come from several threads; one waits for the other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from tidelog.client.shells.closeable import Closeable
from tidelog.client.shells.sink_runner import TIMEOUT_S, SinkRunner
from tidelog.client.sink import stateless_driver
from tidelog.client.sink.driver import SinkDriverMachine
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.marker import BatchIdentity
from tidelog.client.sink.options import SinkOptions
from tidelog.client.sink.stateless_driver import PublishOutcome
from tidelog.client.sink.values import AlreadyPublished, BatchTicket, Receipt
from tidelog.core.model.trace import NullTrace, Trace


class SinkDriver(Closeable):
    """One run of one sink, for one query."""

    def __init__(
        self,
        options: SinkOptions,
        *,
        query_id: str,
        run_id: str | None = None,
        timeout_s: float = TIMEOUT_S,
        trace: Trace | None = None,
    ) -> None:
        """A run id is made up unless it is given."""
        self._runner = SinkRunner(
            options.client_settings, options.group, timeout_s=timeout_s, trace=trace
        )
        self._machine = SinkDriverMachine(
            options,
            query_id=query_id,
            run_id=run_id or uuid.uuid4().hex,
            trace=trace if trace is not None else NullTrace(),
        )

    @property
    def run_id(self) -> str:
        return self._machine.run_id

    @property
    def published(self) -> BatchIdentity | None:
        """What was published last, as far as this run knows."""
        return self._machine.published

    @property
    def transaction_age_ms(self) -> int | None:
        """How long the open batch has been open; None: there is none."""
        return self._machine.open_for_ms(self._runner.now_ms())

    @property
    def transaction_timeout_ms(self) -> int | None:
        """How long a batch may take; None before the sink was taken over."""
        facts = self._machine.facts
        return None if facts is None else facts.transaction_timeout_ms

    def take_over(self) -> None:
        """Fence whoever runs this sink, and make it ours. SinkError if it cannot be."""
        self._runner.run(self._machine.take_over())

    def begin(self, batch_id: int, source_hash: str) -> BatchTicket | AlreadyPublished:
        """The ticket for the tasks of this batch, or the news that it is published already."""
        return self._runner.run(self._machine.begin(batch_id, source_hash))

    def commit(self, receipts: Iterable[Receipt]) -> None:
        """Publish the open batch, all of it. CommitUnknown: it may be published, or not."""
        self._runner.run(self._machine.commit(receipts, now_ms=self._runner.now_ms()))

    def abort(self, because: str) -> None:
        """Give the open batch up."""
        self._runner.run(self._machine.abort(because))

    def give_up(self, error: SinkError) -> None:
        """Abort because a task failed, and raise what that means for the run."""
        self._runner.run(self._machine.give_up(error, now_ms=self._runner.now_ms()))

    def renew_if_due(self) -> bool:
        """Write the marker again before Kafka forgets it. An idle pipeline calls this at times."""
        with self._runner.lock:
            due_ms = self._machine.renewal_due_ms()
            if due_ms is None or self._machine.open is not None or self._runner.now_ms() < due_ms:
                return False
            self._runner.run(self._machine.renew())
            return True

    def close(self) -> None:
        """Drop the connections. An open batch is aborted by the next run, or by its timeout."""
        self._runner.close()


class StatelessSink(Closeable):
    """Opened here, written by tasks, published there: the ticket is all they share.

    For programs that keep nothing between the parts of a batch; see `client.sink.stateless_driver`.
    """

    def __init__(
        self, options: SinkOptions, *, timeout_s: float = TIMEOUT_S, trace: Trace | None = None
    ) -> None:
        self._options = options
        self._runner = SinkRunner(
            options.client_settings, options.group, timeout_s=timeout_s, trace=trace
        )

    def open(self) -> BatchTicket:
        """A ticket; whoever had one before is fenced."""
        return self._runner.run(
            stateless_driver.open_batch(
                self._options.group,
                self._options.topic_names,
                transaction_timeout_ms=self._options.transaction_timeout_ms,
            )
        )

    def publish_numbered(
        self,
        ticket: BatchTicket,
        receipts: Sequence[Receipt],
        offered: BatchIdentity,
        *,
        run_id: str,
    ) -> PublishOutcome:
        """Publish a batch of a query, which may have come before."""
        return self._runner.run(
            stateless_driver.publish_numbered(
                ticket, receipts, offered, run_id=run_id, resume_at=self._options.resume_at
            )
        )

    def publish_alone(self, ticket: BatchTicket, receipts: Sequence[Receipt]) -> PublishOutcome:
        """Publish everything or nothing."""
        return self._runner.run(stateless_driver.publish_alone(ticket, receipts))

    def abandon(self, ticket: BatchTicket) -> bool:
        """Abort the batch. Returns whether it is known to be aborted."""
        return self._runner.run(stateless_driver.abandon(ticket))

    def close(self) -> None:
        self._runner.close()
