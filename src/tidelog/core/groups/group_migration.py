"""A group of consumers changes its protocol while its members read on.

A classic group that a member of the new kind joins becomes a KIP-848 group. Its members keep what
they have, and go on to speak the classic protocol. When the last member of the new kind is gone,
the group becomes a classic one again, with the target assignment as its last generation. Both ways
the tombstones of the old kind and the records of the new one are one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.classic_member import NO_ASSIGNMENT, ClassicMember
from tidelog.core.groups.consumer_group import (
    NO_TIMESTAMP,
    ClusterTopics,
    ConsumerGroup,
    metadata_hash,
)
from tidelog.core.groups.consumer_member import ClassicSide, ConsumerMember
from tidelog.core.groups.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    EmbeddedSubscription,
    MalformedProtocol,
    read_assignment,
    read_protocol_version,
    read_subscription,
    write_assignment,
)
from tidelog.core.groups.consumer_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerRecordType,
    PartitionKey,
    by_topic,
    consumer_record,
    target_value,
)
from tidelog.core.groups.consumer_refusals import HeartbeatRefused
from tidelog.core.groups.group_settings import ConsumerGroupSettings
from tidelog.core.groups.member_call import partitions_by_id
from tidelog.core.model.errors import ErrorCode


def refuse_upgrade(group: ClassicGroup, settings: ConsumerGroupSettings) -> None:
    """Raise if a classic group with members may not become a KIP-848 group."""
    reason = None
    if not settings.migration_policy.may_upgrade:
        reason = "online upgrade is disabled"
    elif not group.is_of_consumers:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > settings.size_max:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        raise _cannot_upgrade(group.group_id, f"{reason}.")


def _cannot_upgrade(group_id: str, reason: str) -> HeartbeatRefused:
    return HeartbeatRefused(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because {reason}",
    )


def upgrade_records(group: ClassicGroup, topics: ClusterTopics) -> list[CoordinatorRecord]:
    """A classic group of consumers as a KIP-848 group: its generation is the epoch of everything.

    Raises if what the members wrote for each other cannot be carried over.
    """
    try:
        members = [_upgraded(group, member, topics) for member in group.members.values()]
    except MalformedProtocol as why:
        if not why.ends_early:
            raise HeartbeatRefused(ErrorCode.UNKNOWN_SERVER_ERROR, None) from why
        malformed = "the embedded consumer protocol is malformed."
        raise _cannot_upgrade(group.group_id, malformed) from why
    if _overlap(members):
        raise HeartbeatRefused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    types, group_id = ConsumerRecordType, group.group_id
    names = {name for member in members for name in member.subscribed_topics}
    group_value = ConsumerGroupMetadataValue(
        group_epoch=group.generation, metadata_hash=metadata_hash(names, topics)
    )
    assigned = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=group.generation, assignment_timestamp=NO_TIMESTAMP
    )
    records = []
    for it in members:
        value = it.metadata_value()
        records.append(consumer_record(types.MEMBER_METADATA, group_id, it.member_id, value))
    records.append(consumer_record(types.GROUP_METADATA, group_id, value=group_value))
    for it in members:
        target = target_value(it.assigned)
        records.append(
            consumer_record(types.TARGET_ASSIGNMENT_MEMBER, group_id, it.member_id, target)
        )
    records.append(consumer_record(types.TARGET_ASSIGNMENT_METADATA, group_id, value=assigned))
    for it in members:
        current = it.current_value()
        records.append(
            consumer_record(types.CURRENT_MEMBER_ASSIGNMENT, group_id, it.member_id, current)
        )
    return records


def _upgraded(group: ClassicGroup, member: ClassicMember, topics: ClusterTopics) -> ConsumerMember:
    """With the assignment of its last sync, or with none if it has never synced."""
    assigned: dict[PartitionKey, int] = {}
    if member.assignment != NO_ASSIGNMENT:
        assignment = read_assignment(member.assignment)
        if assignment.has_user_data:
            raise _cannot_upgrade(
                group.group_id,
                "an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade.",
            )
        keys = partitions_by_id(assignment.partitions, topics)
        assigned = dict.fromkeys(keys, group.generation)
    subscription = _subscription(group, member)
    return ConsumerMember(
        member_id=member.member_id,
        member_epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topics=subscription.topics,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        assigned=assigned,
        classic=ClassicSide(
            session_timeout_ms=member.session_timeout_ms, protocols=member.protocols
        ),
    )


def _subscription(group: ClassicGroup, member: ClassicMember) -> EmbeddedSubscription:
    """Before the first generation no protocol is chosen. Kafka fails then; here the member's
    favourite counts."""
    protocol = member.protocols[0].name if group.protocol is None else group.protocol
    return read_subscription(member.metadata(protocol))


def _overlap(members: Iterable[ConsumerMember]) -> bool:
    """A leader may assign what it likes, but a KIP-848 group gives a partition to one member."""
    seen: set[PartitionKey] = set()
    for member in members:
        if not seen.isdisjoint(member.assigned):
            return True
        seen.update(member.assigned)
    return False


def may_downgrade(
    left: Mapping[str, ConsumerMember], settings: ConsumerGroupSettings, *, size_max: int
) -> bool:
    """Whether a group with these members left becomes a classic one."""
    return (
        bool(left)
        and all(member.classic is not None for member in left.values())
        and settings.migration_policy.may_downgrade
        and len(left) <= size_max
    )


def downgraded(
    group: ConsumerGroup,
    members: Iterable[ConsumerMember],
    targets: Mapping[str, Iterable[PartitionKey]],
    topics: ClusterTopics,
    *,
    wall_ms: int,
) -> ClassicGroup:
    """The group as a stable classic one; MalformedProtocol if a member's metadata has no version.

    `targets` are the partitions of the members, by their ids.
    """
    classic = ClassicGroup(group.group_id, state_timestamp_ms=wall_ms)
    classic.generation = group.group_epoch
    for member in members:
        side = member.classic
        assert side is not None, "a member of the new kind cannot be in a classic group"
        classic.add(
            ClassicMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=side.session_timeout_ms,
                protocols=side.protocols,
            ),
            protocol_type=CONSUMER_PROTOCOL_TYPE,
        )
    classic.protocol = classic.chosen_protocol()
    for each in classic.members.values():
        version = read_protocol_version(each.metadata(classic.protocol))
        target = targets.get(each.member_id, ())
        each.assignment = embedded_assignment(target, topics, version=version)
    classic.state = ClassicState.STABLE
    classic.note_subscriptions()
    return classic


def embedded_assignment(
    partitions: Iterable[PartitionKey], topics: ClusterTopics, *, version: int
) -> bytes:
    """Partitions in the format that classic consumers read. Deleted topics are left out."""
    named = {topics.name(topic_id): indexes for topic_id, indexes in by_topic(partitions).items()}
    known = {name: indexes for name, indexes in named.items() if name is not None}
    return write_assignment(known, version=version)
