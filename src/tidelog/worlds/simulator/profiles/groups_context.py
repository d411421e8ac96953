"""What a groups run shares: the cluster of a replication run, and the history of its groups."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.judge.groups.group_history import GroupOperation, OffsetCommitted
from tidelog.judge.history import CallOutcome
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.profiles.context import RunContext
from tidelog.worlds.simulator.profiles.groups_plan import GroupsPlan

UNCERTAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""After these nobody knows: what was decided may be in the log, and may be committed yet."""


class LeaderSeen(NamedTuple):
    """Who coordinates a group, as the newest metadata has it."""

    leader: int | None
    leader_epoch: int


NO_LEADER = LeaderSeen(None, -1)


class GroupsContext(RunContext):
    """The cluster, its observer, and what members and committers were answered."""

    def __init__(self, plan: GroupsPlan, *, disk_type: type[SimDisk]) -> None:
        super().__init__(plan.cluster, disk_type=disk_type)
        self.groups = plan
        self.group_history: list[GroupOperation] = []
        self._open_commits: dict[str, OffsetCommitted] = {}
        self._tokens = 0

    @property
    def subscribed(self) -> list[str]:
        """All partitions that each group shares out."""
        topic = self.groups.topic
        return [f"{topic.name}-{index}" for index in range(topic.partitions)]

    def coordinator_of(self, group: str) -> LeaderSeen:
        name = f"{OFFSETS_TOPIC}-{partition_of(group, self.groups.offsets_partitions)}"
        known = self.checker.model.partitions.get(name)
        return NO_LEADER if known is None else LeaderSeen(known.leader, known.leader_epoch)

    def coordinator_known_to(self, node_id: int, group: str) -> LeaderSeen:
        """As this broker's own metadata has it."""
        node = self.cluster.running.get(node_id)
        topic = None if node is None else node.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return NO_LEADER
        known = topic.partitions[partition_of(group, self.groups.offsets_partitions)]
        return LeaderSeen(known.leader, known.leader_epoch)

    def new_token(self, who: str) -> str:
        self._tokens += 1
        return f"{who}.{self._tokens}"

    def begin_commit(self, commit: OffsetCommitted) -> None:
        """Until its outcome is recorded, it is unknown."""
        assert commit.outcome is CallOutcome.UNKNOWN
        self._open_commits[commit.token] = commit

    def close_history(self) -> None:
        super().close_history()
        for commit in list(self._open_commits.values()):
            self.record_group(commit)

    def record_group(self, operation: GroupOperation) -> None:
        if isinstance(operation, OffsetCommitted):
            self._open_commits.pop(operation.token, None)
        self.group_history.append(operation)
        self.world.trace.emit("history", operation)
        self.operations += 1


def outcome_of(error: ErrorCode | CallFailed) -> CallOutcome:
    """What the caller of a change knows about it."""
    if isinstance(error, CallFailed):
        return CallOutcome.UNKNOWN if error.was_sent else CallOutcome.REFUSED
    if error is ErrorCode.NONE:
        return CallOutcome.OK
    return CallOutcome.UNKNOWN if error in UNCERTAIN else CallOutcome.REFUSED
