"""KIP-848 groups as ConsumerGroupDescribe and ListGroups show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.core.groups.consumer_group import ClusterTopics, ConsumerGroup, preferred_assignor
from tidelog.core.groups.consumer_groups import ConsumerGroups
from tidelog.core.groups.consumer_member import ConsumerMember
from tidelog.core.groups.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from tidelog.core.groups.consumer_records import PartitionKey, by_topic
from tidelog.core.model.ids import TopicId
from tidelog.core.wire.messages.api_16_list_groups import ListedGroup
from tidelog.core.wire.messages.api_69_consumer_group_describe import (
    ConsumerGroupAssignment,
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribedMember,
    ConsumerGroupTopicPartitions,
)

CONSUMER_TYPE = "consumer"
_SPEAKS_CLASSIC_PROTOCOL, _SPEAKS_CONSUMER_PROTOCOL = 0, 1


def describe_consumer_group(
    group: ConsumerGroup, topics: ClusterTopics
) -> ConsumerGroupDescribedGroup:
    """One group with all its members."""
    return ConsumerGroupDescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members),
        members=[_described(group, member, topics) for member in group.members.values()],
    )


def _described(
    group: ConsumerGroup, member: ConsumerMember, topics: ClusterTopics
) -> ConsumerGroupDescribedMember:
    """A member still answers for what it has to give back, so that is shown, too."""
    return ConsumerGroupDescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(topics, member.assigned, member.revoking),
        target_assignment=_assignment(topics, group.target.get(member.member_id, ())),
        member_type=(
            _SPEAKS_CONSUMER_PROTOCOL if member.classic is None else _SPEAKS_CLASSIC_PROTOCOL
        ),
    )


def _assignment(
    topics: ClusterTopics, *partitions: Iterable[PartitionKey]
) -> ConsumerGroupAssignment:
    """Topics that are deleted have no name, and are left out."""
    joined: dict[TopicId, list[int]] = {}
    for part in partitions:
        for topic_id, indexes in by_topic(part).items():
            joined.setdefault(topic_id, []).extend(indexes)
    named = [(topics.name(topic_id), topic_id, indexes) for topic_id, indexes in joined.items()]
    return ConsumerGroupAssignment(
        topic_partitions=[
            ConsumerGroupTopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for name, topic_id, indexes in named
            if name is not None
        ]
    )


def list_consumer_groups(
    groups: ConsumerGroups, *, states: Sequence[str], types: Sequence[str]
) -> list[ListedGroup]:
    """As `list_groups` does for classic ones."""
    if types and CONSUMER_TYPE not in {name.lower() for name in types}:
        return []
    wanted = {name.strip().lower() for name in states}
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            group_state=group.state.value,
            group_type=CONSUMER_TYPE,
        )
        for group in groups
        if not wanted or group.state.value.lower() in wanted
    ]
