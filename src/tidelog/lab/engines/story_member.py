"""A group member of the client room that a story decides for: it commits only what it is told to.

Both engines run it: one on a host of the simulator, the other on a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tidelog.client.client import Client
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.group.config import GroupConfig
from tidelog.client.group.group_consumer import GroupConsumerMachine
from tidelog.client.group.member import MembershipState
from tidelog.client.group.offset_commits import CommitOutcome
from tidelog.client.group.offset_requests import OffsetAndMetadata
from tidelog.core.model.ids import TopicPartition
from tidelog.lab.engine import Consumed, MemberAssigned


class StoryCommit:
    """One commit, until its outcome is known."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.outcome: CommitOutcome | None = None
        self.over_us: int | None = None


class StoryMember(GroupConsumerMachine):
    """Keeps what it was assigned. What is revoked is given back without a commit."""

    def __init__(
        self,
        client: Client,
        config: GroupConfig,
        topics: Iterable[str],
        now_us: Callable[[], int],
    ) -> None:
        self.assignments: list[MemberAssigned] = []
        self._now_us = now_us
        super().__init__(client, config, topics)

    @property
    def owned(self) -> tuple[TopicPartition, ...] | None:
        return self.assignment if self.member.state == MembershipState.STABLE else None

    def on_assigned(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], now_ms: int
    ) -> None:
        super().on_assigned(offsets, now_ms)
        identity = self.member.identity
        assert identity is not None, "assigned to nobody"
        self.assignments.append(
            MemberAssigned(
                at_us=self._now_us(),
                generation=identity.generation_id,
                member_id=identity.member_id,
                partitions=tuple(sorted(offsets)),
            )
        )

    def on_revoked(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        self.on_lost(partitions, now_ms)

    def position(self, partition: TopicPartition) -> int | None:
        """None for what it does not own, too."""
        if partition not in self.consumer.assignment:
            return None
        return self.consumer.position(partition)

    def begin_commit(
        self,
        commit: StoryCommit,
        offsets: Mapping[TopicPartition, int] | None,
        metadata: str,
        now_ms: int,
    ) -> None:
        """Where it stands, unless offsets are given; with the leader epoch of its position."""
        for name in self.consumer.assignment if offsets is None else offsets:
            owned = name in self.consumer.assignment
            position = self.consumer.full_position(name) if owned else None
            leader_epoch = None if position is None else position.offset_epoch
            if offsets is not None:
                commit.offsets[name] = OffsetAndMetadata(offsets[name], leader_epoch, metadata)
            elif position is not None:
                commit.offsets[name] = OffsetAndMetadata(position.offset, leader_epoch, metadata)

        def then(outcome: CommitOutcome, now_ms: int) -> None:
            commit.over_us = self._now_us()
            commit.outcome = outcome

        self.member.commit(commit.offsets, then, now_ms=now_ms)


def consumed(records: Iterable[ConsumerRecord], at_us: int) -> list[Consumed]:
    """As a story gets them."""
    return [
        Consumed(
            at_us=at_us,
            topic=each.partition.topic,
            index=each.partition.index,
            offset=each.offset,
            leader_epoch=each.leader_epoch,
            value=each.value,
        )
        for each in records
    ]
