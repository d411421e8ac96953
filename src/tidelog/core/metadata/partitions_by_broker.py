"""Where brokers stand: which partitions have a broker in sync, eligible or leading, by broker.

Fencing a broker must not look at every partition of the cluster. Only whoever decides needs this,
so an image builds it at the first question and keeps it from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.core.metadata.cluster import PartitionState, TopicState
from tidelog.core.model.ids import TopicId


class PartitionKey(NamedTuple):
    """A partition by its topic's id: what stays the same while a topic lives."""

    topic_id: TopicId
    partition: int


class PartitionsByBroker:
    """Invariant: every set holds exactly the partitions of which its name is true."""

    def __init__(self, topics: Iterable[TopicState]) -> None:
        self._in_sync: dict[int, set[PartitionKey]] = {}
        self._eligible: dict[int, set[PartitionKey]] = {}
        self._led: dict[int, set[PartitionKey]] = {}
        self._leaderless: set[PartitionKey] = set()
        self._not_preferred: set[PartitionKey] = set()
        for topic in topics:
            for index, state in enumerate(topic.partitions):
                self.put(PartitionKey(topic.topic_id, index), state)

    def in_sync(self, broker_id: int) -> list[PartitionKey]:
        """The partitions whose in-sync set has this broker, in a fixed order."""
        return sorted(self._in_sync.get(broker_id, ()))

    def eligible(self, broker_id: int) -> list[PartitionKey]:
        """The partitions that may elect this broker when nobody is in sync."""
        return sorted(self._eligible.get(broker_id, ()))

    def leads_any(self, broker_id: int) -> bool:
        return bool(self._led.get(broker_id))

    def leaderless(self) -> list[PartitionKey]:
        return sorted(self._leaderless)

    def not_preferred(self) -> list[PartitionKey]:
        """The partitions that the first of their replicas does not lead."""
        return sorted(self._not_preferred)

    def put(self, key: PartitionKey, state: PartitionState) -> None:
        """A partition is new."""
        for broker_id in state.isr:
            self._in_sync.setdefault(broker_id, set()).add(key)
        for broker_id in state.eligible_leader_replicas:
            self._eligible.setdefault(broker_id, set()).add(key)
        if state.leader is None:
            self._leaderless.add(key)
        else:
            self._led.setdefault(state.leader, set()).add(key)
        if state.leader != state.replicas[0]:
            self._not_preferred.add(key)

    def drop(self, key: PartitionKey, state: PartitionState) -> None:
        """A partition is gone, or about to be put again in another state."""
        for broker_id in state.isr:
            self._in_sync[broker_id].discard(key)
        for broker_id in state.eligible_leader_replicas:
            self._eligible[broker_id].discard(key)
        if state.leader is not None:
            self._led[state.leader].discard(key)
        self._leaderless.discard(key)
        self._not_preferred.discard(key)

    def check(self, topics: Iterable[TopicState]) -> None:
        """As if it were built anew."""
        fresh = PartitionsByBroker(topics)
        for mine, theirs in (
            (self._in_sync, fresh._in_sync),
            (self._eligible, fresh._eligible),
            (self._led, fresh._led),
        ):
            assert {key: held for key, held in mine.items() if held} == theirs
        assert self._leaderless == fresh._leaderless
        assert self._not_preferred == fresh._not_preferred
