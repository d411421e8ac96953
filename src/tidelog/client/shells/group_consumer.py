"""A member of a consumer group for programs.

    settings = {"bootstrap.servers": "localhost:9092", "group.id": "mail"}
    with GroupConsumer(settings, ["orders"]) as consumer:
        for record in consumer.poll(1.0):
            ...
        consumer.commit()

It works only while somebody calls it: a program that does not poll sends no heartbeats, and is out
of the group after `session.timeout.ms`. With `group.protocol=consumer` it is a member of a KIP-848
group, whose coordinator assigns the partitions and decides about the session.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.consumer.offset_lookup import LookupResult
from tidelog.client.group.config import group_config
from tidelog.client.group.group_consumer import GroupConsumerMachine
from tidelog.client.group.member import LEAVE_TIMEOUT_MS, MembershipState
from tidelog.client.group.offset_commits import CommitOutcome
from tidelog.client.group.offset_requests import ConsumerGroupMetadata
from tidelog.client.settings import Given
from tidelog.client.shells.blocking_clients import DrivenClient, RequestFailed
from tidelog.client.shells.loop import Loop
from tidelog.core.model.ids import TopicPartition


class MembershipFailed(RequestFailed):
    """The group does not take this member."""


class GroupConsumer(DrivenClient):
    """`poll` joins the group, reads what it gives, and stays in it."""

    def __init__(self, settings: Given, topics: Iterable[str]) -> None:
        config = group_config(settings)
        super().__init__(Loop(config.consumer.client))
        self._group_id = config.group_id
        self._machine = GroupConsumerMachine(self._loop.client, config, topics)
        self._machine.on_commit = self._on_commit
        self._is_closed = False
        self.commit_failure: CommitOutcome | None = None
        """The last commit that did not count; None again after one that did."""

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return self._machine.assignment

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """For a producer's `send_offsets_to_transaction`."""
        return self._machine.group_metadata

    @property
    def rebalances(self) -> int:
        """Grows with every assignment."""
        return self._machine.rebalances

    @property
    def is_assigned(self) -> bool:
        """Whether the group has settled, with or without partitions for this member."""
        return self._machine.member.state == MembershipState.STABLE

    def poll(
        self, timeout_s: float = 0.0, *, records_max: int | None = None
    ) -> list[ConsumerRecord]:
        """Records as soon as there are some, none after the time.

        What the last poll gave counts as done: it is committed when partitions are revoked.
        MembershipFailed if the group refuses this member, ConsumerError if the program must decide.
        """
        taken: list[ConsumerRecord] = []

        def has_some() -> bool:
            self._check()
            taken.extend(self._machine.poll(self._loop.now_ms(), records_max=records_max))
            return bool(taken)

        self._turn_until(has_some, timeout_s)
        return taken

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset to be read; None while it is being found, or if it is not assigned."""
        if partition not in self._machine.consumer.assignment:
            return None
        return self._machine.consumer.position(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._machine.consumer.seek(partition, offset)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int] | None:
        """The high watermarks, None if they could not be had; the membership goes on meanwhile."""
        results: list[LookupResult] = []
        self._machine.consumer.end_offsets(
            partitions,
            lambda result, now_ms: results.append(result),
            now_ms=self._loop.now_ms(),
        )
        self._turn_until(lambda: bool(results), LEAVE_TIMEOUT_MS / 1_000)
        if not results or not isinstance(results[0], dict):
            return None
        return {name: each.offset for name, each in results[0].items() if each is not None}

    def commit(self) -> None:
        """Commit what was read; it does not wait, see `commit_failure`."""
        self._machine.commit_positions(self._loop.now_ms())
        self._loop.turn(0)

    def close(self, *, commits: bool = True) -> None:
        """Commit, leave the group, drop the connections."""
        if self._is_closed:
            return
        self._is_closed = True
        member = self._machine.member
        self._machine.leave(self._loop.now_ms(), commits=commits)
        self._turn_until(lambda: member.is_over, LEAVE_TIMEOUT_MS / 1_000 + 1)
        self._machine.consumer.close(self._loop.now_ms())
        self._loop.turn(0)
        super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(commits=kind is None)

    def _on_commit(self, outcome: CommitOutcome) -> None:
        self.commit_failure = None if outcome.is_ok else outcome

    def _check(self) -> None:
        error = self._machine.member.error
        if error is not None:
            raise MembershipFailed(f"{error.name}: group {self._group_id} refuses this member")
