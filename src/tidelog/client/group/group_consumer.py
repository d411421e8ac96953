"""A consumer that reads what its group gives it, and commits what it has given to its program.

Whoever polls again has finished with what the last poll gave: what is committed are the positions,
as with Kafka's automatic commits. A program that dies in between reads those records again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tidelog.client.client import Client
from tidelog.client.consumer.consumer import ConsumerMachine
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.group.config import GroupConfig, RebalanceProtocol
from tidelog.client.group.consumer_group_member import ConsumerGroupMember
from tidelog.client.group.member import GroupMember
from tidelog.client.group.offset_commits import CommitOutcome
from tidelog.client.group.offset_requests import ConsumerGroupMetadata, OffsetAndMetadata
from tidelog.core.model.ids import TopicPartition


class GroupConsumerMachine:
    """A member and a consumer on one client."""

    def __init__(self, client: Client, config: GroupConfig, topics: Iterable[str]) -> None:
        self.consumer = ConsumerMachine(client, config.consumer)
        self._group_id = config.group_id
        self._committed: dict[TopicPartition, int] = {}
        """By partition that is assigned: what the group has, as far as we know."""
        self._is_committing = False
        self._commits_when_revoked = config.commits_when_revoked
        self.rebalances = 0
        """Grows with every assignment."""
        self.revocations = 0
        """Grows whenever partitions go."""
        self.on_commit: Callable[[CommitOutcome], None] | None = None
        """Called with the outcome of each commit."""
        is_classic = config.protocol is RebalanceProtocol.CLASSIC
        kind = GroupMember if is_classic else ConsumerGroupMember
        self.member: GroupMember | ConsumerGroupMember = kind(client, config, topics, self)

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return self.member.owned

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who commits, for `send_offsets_to_transaction`; no member while it is in no group."""
        return ConsumerGroupMetadata(self._group_id, *(self.member.identity or ()))

    def poll(self, now_ms: int, *, records_max: int | None = None) -> list[ConsumerRecord]:
        """What there is; ConsumerError if the program must decide about a partition."""
        return self.consumer.poll(now_ms, records_max=records_max)

    def commit_positions(self, now_ms: int) -> None:
        """Commit what was read, unless the last commit is still under way."""
        if not self._is_committing:
            self._commit(self.consumer.assignment, now_ms)

    def leave(self, now_ms: int, *, commits: bool = True) -> None:
        """`commits=False`: the program has not finished with what the last poll gave."""
        self._commits_when_revoked &= commits
        self.member.leave(now_ms)

    # What the member tells

    def on_assigned(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], now_ms: int
    ) -> None:
        self.consumer.assign([*self.consumer.assignment, *offsets])
        for name, committed in offsets.items():
            if committed is not None:
                self._committed[name] = committed.offset
                self.consumer.seek(name, committed.offset, leader_epoch=committed.leader_epoch)
        self.rebalances += 1

    def on_revoked(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        if self._commits_when_revoked:
            self._commit(partitions, now_ms)
        self._give_up(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        self._give_up(partitions)

    def _give_up(self, partitions: Sequence[TopicPartition]) -> None:
        self.consumer.assign([each for each in self.consumer.assignment if each not in partitions])
        for name in partitions:
            self._committed.pop(name, None)
        self.revocations += 1

    def _commit(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for name in partitions:
            position = self.consumer.full_position(name)
            if position is not None and position.offset != self._committed.get(name):
                offsets[name] = OffsetAndMetadata(position.offset, position.offset_epoch)
        if not offsets:
            return
        revocations = self.revocations

        def then(outcome: CommitOutcome, now_ms: int) -> None:
            self._is_committing = False
            if outcome.is_ok and revocations == self.revocations:
                self._committed.update((name, each.offset) for name, each in offsets.items())
            if self.on_commit is not None:
                self.on_commit(outcome)

        self._is_committing = True
        self.member.commit(offsets, then, now_ms=now_ms)
