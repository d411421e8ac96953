"""Sends the markers of decided transactions to the leaders of their partitions until all have them.

One request per broker is under way at a time, with all that waits for that broker: many short
transactions share it. Who leads a partition is looked up when a request leaves; if nobody does, or
the leader refuses for the time being, it is tried again. A partition of a topic that was deleted
needs no marker.

A coordinator that resigned stops here: its successor finds the decisions in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarm, Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.trace import Trace
from tidelog.core.node.coordinators.broker_links import BrokerLinks
from tidelog.core.transactions.transaction_calls import MarkersDue
from tidelog.core.transactions.transaction_metadata import Partition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidelog.core.wire.schema import Message

VERSION = 2
RETRY_MS = 20
"""How soon a marker is sent again that a leader could not take."""
MARKERS_PER_REQUEST_MAX = 1_000

_FINAL = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""A later coordinator, or a later transaction of the producer, has been there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkersAbandoned:
    """A partition refused a marker for good: somebody else has decided since."""

    transactional_id: str
    partition: str
    error: str


class Coordination(Protocol):
    """Whether a decision is still ours to carry out."""

    def __call__(self, index: int, leader_epoch: int) -> bool: ...


class PendingMarkers:
    """One decided transaction. `left` are the partitions without their marker."""

    __slots__ = ("due", "index", "leader_epoch", "left")

    def __init__(self, index: int, leader_epoch: int, due: MarkersDue) -> None:
        self.index = index
        self.leader_epoch = leader_epoch
        self.due = due
        self.left = set(due.partitions)


Routed = tuple[PendingMarkers, Partition]


class MarkerSender:
    """Inputs: send, settle, on_change. Invariant: what is left of a transaction is waiting, queued
    for a broker, or on its way."""

    def __init__(
        self,
        *,
        image: ClusterImage,
        links: BrokerLinks,
        alarms: Alarms,
        trace: Trace,
        is_ours: Coordination,
        on_written: Callable[[PendingMarkers, int], None],
    ) -> None:
        self._image = image
        self._links = links
        self._alarms = alarms
        self._trace = trace
        self._is_ours = is_ours
        self._on_written = on_written
        self._to_route: list[Routed] = []
        self._waiting: list[Routed] = []
        """For a leader, or for the next try."""
        self._queued: dict[int, list[Routed]] = {}
        """By broker."""
        self._under_way: dict[int, list[Routed]] = {}
        self._retry: Alarm | None = None
        self.is_due = False
        """There is something to send at the end of the tick."""

    def send(self, index: int, leader_epoch: int, due: MarkersDue, now_ms: int) -> None:
        pending = PendingMarkers(index, leader_epoch, due)
        if not pending.left:
            self._on_written(pending, now_ms)
            return
        self._to_route += [(pending, partition) for partition in sorted(pending.left)]
        self.is_due = True

    def on_change(self) -> None:
        """The metadata has changed: there may be a leader now."""
        if self._waiting:
            self._try_again()

    def settle(self, now_ms: int) -> None:
        """At the end of a tick."""
        self.is_due = False
        to_route, self._to_route = self._to_route, []
        for pending, partition in to_route:
            self._route(pending, partition, now_ms)
        for broker_id in list(self._queued):
            if broker_id not in self._under_way:
                self._ask(broker_id, now_ms)
        if self._waiting:
            self._arm(now_ms)

    def _route(self, pending: PendingMarkers, partition: Partition, now_ms: int) -> None:
        if not self._is_ours(pending.index, pending.leader_epoch):
            return
        state = self._image.partition(*partition)
        if state is None:
            self._done(pending, partition, now_ms)
        elif state.leader is None:
            self._waiting.append((pending, partition))
        else:
            self._queued.setdefault(state.leader, []).append((pending, partition))

    def _arm(self, now_ms: int) -> None:
        if self._retry is None or not self._retry.is_pending:
            self._retry = self._alarms.at(now_ms + RETRY_MS, self._on_retry)

    def _on_retry(self, now_ms: int) -> None:
        self._try_again()

    def _try_again(self) -> None:
        self._to_route += self._waiting
        self._waiting = []
        self.is_due = True

    # One broker

    def _ask(self, broker_id: int, now_ms: int) -> None:
        queued = self._queued.pop(broker_id)
        routed, rest = queued[:MARKERS_PER_REQUEST_MAX], queued[MARKERS_PER_REQUEST_MAX:]
        if rest:
            self._queued[broker_id] = rest
        self._under_way[broker_id] = routed
        by_transaction: dict[PendingMarkers, list[Partition]] = {}
        for pending, partition in routed:
            by_transaction.setdefault(pending, []).append(partition)
        request = WriteTxnMarkersRequest(
            markers=[_marker(pending, each) for pending, each in by_transaction.items()]
        )
        self._links.ask(
            broker_id,
            request,
            VERSION,
            lambda answer, now_ms: self._on_answer(broker_id, answer, now_ms),
            now_ms,
        )

    def _on_answer(self, broker_id: int, answer: Message | NoAnswer, now_ms: int) -> None:
        routed = self._under_way.pop(broker_id)
        errors: dict[tuple[int, Partition], int] = {}
        if isinstance(answer, WriteTxnMarkersResponse):
            for result in answer.markers:
                for topic in result.topics:
                    for each in topic.partitions:
                        key = (result.producer_id, (topic.name, each.partition_index))
                        errors[key] = each.error_code
        for pending, partition in routed:
            error = errors.get(
                (pending.due.producer.producer_id, partition), ErrorCode.REQUEST_TIMED_OUT
            )
            if error == ErrorCode.NONE:
                self._done(pending, partition, now_ms)
            elif error in _FINAL:
                self._trace.emit(
                    MarkersAbandoned(
                        transactional_id=pending.due.transactional_id,
                        partition=f"{partition[0]}-{partition[1]}",
                        error=ErrorCode(error).name,
                    )
                )
            else:
                self._waiting.append((pending, partition))
        if self._waiting:
            self._arm(now_ms)
        if broker_id in self._queued or self._to_route:
            self.is_due = True

    def _done(self, pending: PendingMarkers, partition: Partition, now_ms: int) -> None:
        pending.left.discard(partition)
        if not pending.left and self._is_ours(pending.index, pending.leader_epoch):
            self._on_written(pending, now_ms)

    def check(self) -> None:
        if self._waiting:
            is_armed = self._retry is not None and self._retry.is_pending
            assert is_armed, "a marker waits, and nobody will try again"
        assert self.is_due or not self._to_route, "a marker waits, and nobody will send it"
        for broker_id, queued in self._queued.items():
            assert queued and (broker_id in self._under_way or self.is_due), "stands still"


def _marker(pending: PendingMarkers, partitions: list[Partition]) -> WritableTxnMarker:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    due = pending.due
    return WritableTxnMarker(
        producer_id=due.producer.producer_id,
        producer_epoch=due.producer.producer_epoch,
        transaction_result=due.is_commit,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic.items()
        ],
        coordinator_epoch=pending.leader_epoch,
        transaction_version=due.transaction_version,
    )
