"""A leader that was paused: others were elected meanwhile, so it must take no write before it asks.

Only pauses that are longer than a broker session count. What a leader wrote before its pause, and
what one that is awake writes while it has not heard of its successor, is what acks=1 risks.
Coordinators risk nothing: whatever they write to internal topics, nobody is answered before it is
committed, and of a deposed leader's records none is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidelog.core.model.topic_name import INTERNAL_TOPICS
from tidelog.judge.anomalies import PAUSED_LEADER_ASKS
from tidelog.judge.cluster.cluster_model import Violation, violation
from tidelog.judge.cluster.facts import ObservedBatch, ObservedReplica


class PausedTime(NamedTuple):
    """From when to when a process stood still, for longer than its session."""

    from_us: int
    to_us: int


class PausedLeaders:
    """Knows who was paused when, and who was elected when."""

    def __init__(self) -> None:
        self._pauses: dict[int, list[PausedTime]] = {}
        self._elected: dict[str, list[tuple[int, int]]] = {}
        """By partition: leader epochs, and when they were committed."""

    def on_resumed(self, node_id: int, pause: PausedTime) -> None:
        self._pauses.setdefault(node_id, []).append(pause)

    def on_down(self, node_id: int) -> None:
        """Another process comes back, and leads nothing by itself."""
        self._pauses.pop(node_id, None)

    def on_elected(self, partition: str, leader_epoch: int, *, at_us: int) -> None:
        self._elected.setdefault(partition, []).append((leader_epoch, at_us))

    def believed_until_us(self, replica: ObservedReplica, *, now_us: int) -> int:
        """Until when it took itself for the leader with good reason, if it hears the truth now."""
        pause = self._replaced_in(replica)
        return now_us if pause is None else pause.from_us

    def wrote(
        self, leader: ObservedReplica | None, appended: Sequence[ObservedBatch]
    ) -> Iterator[Violation]:
        """What a leader has appended, all since it was looked at when its pause began."""
        if leader is None or not leader.is_leader or not self._pauses:
            return
        if leader.partition.rpartition("-")[0] in INTERNAL_TOPICS:
            return
        own = [batch for batch in appended if batch.leader_epoch == leader.leader_epoch]
        if own and (pause := self._replaced_in(leader)) is not None:
            yield violation(
                PAUSED_LEADER_ASKS,
                leader.partition,
                leader=leader.incarnation,
                leader_epoch=leader.leader_epoch,
                offset=own[0].base_offset,
                paused_us=pause.from_us,
                resumed_us=pause.to_us,
            )

    def _replaced_in(self, leader: ObservedReplica) -> PausedTime | None:
        """The first pause in which somebody was elected after this leadership."""
        elected_us = [
            at_us
            for leader_epoch, at_us in self._elected.get(leader.partition, ())
            if leader_epoch > leader.leader_epoch
        ]
        for pause in self._pauses.get(leader.incarnation.node_id, ()):
            if any(pause.from_us <= at_us <= pause.to_us for at_us in elected_us):
                return pause
        return None
