"""One batch by a program that keeps nothing between its parts; see `client.sink.errand`."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.client.settings import Given
from tidelog.client.shells.sink_leading import TIMEOUT_S, SinkLeader
from tidelog.client.sink.errand import (
    Outcome,
    abandon,
    open_batch,
    publish_alone,
    publish_numbered,
)
from tidelog.client.sink.marker import Published
from tidelog.client.sink.values import Begun, Receipt
from tidelog.core.model.trace import Trace


class StatelessSink(SinkLeader):
    """Opened here, written by tasks, published there: the ticket is all they share."""

    def __init__(
        self,
        settings: Given,
        name: str,
        *,
        timeout_s: float = TIMEOUT_S,
        trace: Trace | None = None,
    ) -> None:
        """`name` is the transactional id, and the group if there is a marker."""
        super().__init__(settings, name, timeout_s=timeout_s, trace=trace)
        self._name = name

    def open(self, topics: Sequence[str], *, transaction_timeout_ms: int | None) -> Begun:
        return self.lead(
            open_batch(self._name, topics, transaction_timeout_ms=transaction_timeout_ms)
        )

    def publish_numbered(
        self,
        begun: Begun,
        receipts: Sequence[Receipt],
        offered: Published,
        *,
        run_id: str,
        resume_at: int | None,
    ) -> Outcome:
        """A batch of a query, which may have come before."""
        steps = publish_numbered(begun, receipts, offered, run_id=run_id, resume_at=resume_at)
        return self.lead(steps)

    def publish_alone(self, begun: Begun, receipts: Sequence[Receipt]) -> Outcome:
        """Everything or nothing."""
        return self.lead(publish_alone(begun, receipts))

    def abandon(self, begun: Begun) -> bool:
        """Whether the batch is known to be aborted."""
        return self.lead(abandon(begun))
