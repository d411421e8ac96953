"""What a member of a KIP-848 group says of itself, in either protocol.

A member of the new kind says it in heartbeats and leaves out what has not changed. A classic member
of such a group says it when it joins, in the metadata that consumers write for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tidelog.core.groups.classic_join import NEW_MEMBER, Joiner
from tidelog.core.groups.consumer_member import JOIN_EPOCH, NO_TIMEOUT, ClassicSide
from tidelog.core.groups.consumer_protocol import EmbeddedSubscription, TopicPartitions
from tidelog.core.groups.consumer_records import PartitionKey
from tidelog.core.model.ids import TopicId
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatCaller:
    """What the connection says of a member."""

    client_id: str
    client_host: str


class TopicIds(Protocol):
    """Names to ids."""

    def topic_id(self, name: str) -> TopicId | None:
        """None: there is no such topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberCall:
    """One call. None: as before, or never said."""

    group_id: str
    member_id: str
    caller: HeartbeatCaller
    member_epoch: int | None
    """None: of a classic member, whose joins are in no epoch."""
    may_be_new: bool
    """Whoever is not known becomes a member."""
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int | None
    server_assignor: str | None
    topics: frozenset[str] | None
    regex: str | None
    owned: frozenset[PartitionKey] | None
    classic: ClassicSide | None = None
    """Of a classic member."""

    @classmethod
    def from_heartbeat(
        cls, request: ConsumerGroupHeartbeatRequest, caller: HeartbeatCaller
    ) -> MemberCall:
        names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
        owned = None
        if request.topic_partitions is not None:
            owned = frozenset(
                (TopicId(bytes(topic.topic_id)), index)
                for topic in request.topic_partitions
                for index in topic.partitions
            )
        return cls(
            group_id=request.group_id,
            member_id=request.member_id,
            caller=caller,
            member_epoch=request.member_epoch,
            may_be_new=request.member_epoch == JOIN_EPOCH,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_timeout_ms=None if timeout_ms == NO_TIMEOUT else timeout_ms,
            server_assignor=request.server_assignor,
            topics=None if names is None else frozenset(names),
            regex=request.subscribed_topic_regex,
            owned=owned,
        )

    @classmethod
    def from_join(
        cls, joiner: Joiner, subscription: EmbeddedSubscription, topics: TopicIds
    ) -> MemberCall:
        """A dynamic member is let in under any id, a static one under the id that it has."""
        is_dynamic = joiner.group_instance_id is None
        timeout_ms = joiner.rebalance_timeout_ms
        return cls(
            group_id=joiner.group_id,
            member_id=joiner.member_id,
            caller=HeartbeatCaller(client_id=joiner.client_id, client_host=joiner.client_host),
            member_epoch=None,
            may_be_new=is_dynamic or joiner.member_id == NEW_MEMBER,
            instance_id=joiner.group_instance_id,
            rack_id=subscription.rack_id,
            rebalance_timeout_ms=None if timeout_ms == NO_TIMEOUT else timeout_ms,
            server_assignor=None,
            topics=subscription.topics,
            regex="",
            owned=frozenset(partitions_by_id(subscription.owned, topics)),
            classic=ClassicSide(
                session_timeout_ms=joiner.session_timeout_ms, protocols=joiner.protocols
            ),
        )


def partitions_by_id(partitions: TopicPartitions, topics: TopicIds) -> Iterable[PartitionKey]:
    """Those of topics that exist."""
    for name, indexes in partitions:
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            yield from ((topic_id, index) for index in indexes)
