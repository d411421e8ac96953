"""Mutants of group coordinators: mistakes at a change of coordinators, and forgotten fences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidelog.core.coordinator import shard_loader
from tidelog.core.coordinator.hosted_shard import HostedShard
from tidelog.core.coordinator.outcome import Outcome
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.coordinator.runtime import CoordinatorRuntime
from tidelog.core.coordinator.shard_loader import ShardLoader
from tidelog.core.groups import (
    classic_groups,
    classic_refusals,
    offset_operations,
)
from tidelog.core.groups.classic_group import ClassicGroup
from tidelog.core.groups.classic_groups import ClassicGroups
from tidelog.core.groups.consumer_group import ConsumerGroup
from tidelog.core.groups.consumer_groups import ConsumerGroups
from tidelog.core.groups.consumer_member import Reconciliation
from tidelog.core.groups.consumer_offsets import validate_consumer_commit
from tidelog.core.groups.consumer_records import ConsumerRecordType, read_consumer_key
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.node.coordinators.group_coordinator import GroupCoordinator
from tidelog.core.node.coordinators.partition_log import PartitionLog
from tidelog.core.wire.records import iterate
from tidelog.judge.anomalies import (
    COMMIT_FORGOTTEN,
    DELETED_OFFSET_BACK,
    EPOCH_DENIED,
    FENCED_COMMIT,
    GENERATION_DENIED,
    NOT_RECOVERED,
    OWNED_TWICE,
    UNOWNED,
    AnomalyKind,
)
from tidelog.worlds.simulator.mutant import Mutant, Patch
from tidelog.worlds.simulator.mutants_of_replication import no_check

# What is replaced, as it is.

_run = HostedShard._run
_resign = CoordinatorRuntime.resign
_load = CoordinatorRuntime._load
_loader_init = ShardLoader.__init__
_refuse_commit = classic_refusals.refuse_commit
_begin_generation = ClassicGroup.begin_generation
_consider = GroupCoordinator._consider
_append = PartitionLog.append
_validate_commit = validate_consumer_commit
_apply = ConsumerGroups.apply


def answer_at_once(self: HostedShard[Any]) -> None:
    """Whatever is in the leader's log counts as decided."""
    while self.parked:
        first = self.parked.popleft()
        del self.waiting[first.reply_to]
        self._port.answer(first.reply_to, first.answer)
    self._unsettled.pop(self, None)


def answer_reads_at_once(self: HostedShard[Any], outcome: Outcome, now_ms: int) -> None:
    """Only those who change something wait for the high watermark."""
    if not outcome.records:
        for reply_to, answer in outcome.replies:
            del self.waiting[reply_to]
            self._port.answer(reply_to, answer)
        outcome.replies.clear()
    _run(self, outcome, now_ms)


def any_generation(group: ClassicGroup, member_id: str, *rest: Any, **more: Any) -> ErrorCode:
    """Once a member, always a member."""
    instance_id, generation_id = rest
    if generation_id >= 0:
        generation_id = group.generation
    return _refuse_commit(group, member_id, instance_id, generation_id, **more)


def keep_offsets(self: CoordinatorRuntime[GroupShard], index: int, reason: str) -> None:
    """Who resigns keeps its offsets, in case it leads again."""
    hosted = self.hosted.get(index)
    if hosted is not None and hosted.loader is None:
        vars(self).setdefault("kept_offsets", {})[index] = hosted.shard.offsets
    _resign(self, index, reason)


def load_kept_offsets(
    self: CoordinatorRuntime[GroupShard], index: int, records_max: int, now_ms: int
) -> int:
    hosted = self.hosted[index]
    count = _load(self, index, records_max, now_ms)
    if hosted.loader is None:
        kept = vars(self).get("kept_offsets", {})
        hosted.shard.offsets = kept.get(index, hosted.shard.offsets)
    return count


def never_resign(self: GroupCoordinator, index: int, now_ms: int) -> None:
    """A broker that leads a partition no more coordinates it nevertheless."""
    partition = self._parts.partitions.find(OFFSETS_TOPIC, index)
    if partition is not None and partition.leadership is not None:
        _consider(self, index, now_ms)


def always_led(self: PartitionLog, leader_epoch: int) -> bool:
    return True


def append_without_fence(self: PartitionLog, batch: bytearray, **rest: Any) -> int | None:
    """What a broker writes that does not lead is cut off later: here at once."""
    if self._partition.leadership is None:
        return self.log_end_offset
    return _append(self, batch, **rest)


def load_to_high_watermark(self: ShardLoader, shard: Any, log: Any, **rest: Any) -> None:
    """Whatever is not known to be committed is left out, and never applied later."""
    _loader_init(self, shard, log, **rest)
    self.end_offset = log.high_watermark


def without_tombstones(view: memoryview, position: int) -> Iterator[Any]:
    return (record for record in iterate(view, position) if record.value is not None)


def load_without_sessions(self: ClassicGroups, now_ms: int) -> Outcome:
    """A member begins its session with its next heartbeat, if one comes."""
    self._is_loaded = True
    return Outcome()


def stay_in_generation(self: ClassicGroup, *, wall_ms: int) -> None:
    _begin_generation(self, wall_ms=wall_ms)
    self.generation = max(1, self.generation - 1)


def any_epoch(
    group: ConsumerGroup, member_id: str, instance_id: str | None, member_epoch: int, **more: Any
) -> Any:
    """Once a member of a KIP-848 group, always a member."""
    member = group.members.get(member_id)
    if member is not None and member_epoch >= 0:
        member_epoch = member.member_epoch
    return _validate_commit(group, member_id, instance_id, member_epoch, **more)


def always_free(self: ConsumerGroup, partition: Any) -> bool:
    """What the target says is given at once."""
    return False


def has_given_back(self: Reconciliation, partitions: Any) -> bool:
    """Who is asked to give something back has done so."""
    return False


def load_without_assignments(self: ConsumerGroups, record: CoordinatorRecord) -> str:
    """A new coordinator knows the members, but not what they have and in which epochs they are."""
    type_, group_id, _ = read_consumer_key(record.key)
    if not self._is_loaded and type_ is ConsumerRecordType.CURRENT_MEMBER_ASSIGNMENT:
        return group_id
    return _apply(self, record)


def load_consumers_without_sessions(self: ConsumerGroups, now_ms: int) -> None:
    """A member begins its session with its next heartbeat, if one comes."""
    self._is_loaded = True


def load_without_epochs(self: ConsumerGroups, record: CoordinatorRecord) -> str:
    """A new coordinator begins with the first epoch of the group."""
    type_, group_id, _ = read_consumer_key(record.key)
    epochs = (ConsumerRecordType.GROUP_METADATA, ConsumerRecordType.TARGET_ASSIGNMENT_METADATA)
    if not self._is_loaded and type_ in epochs and record.value is not None:
        return group_id
    return _apply(self, record)


def _mutant(
    name: str, about: str, *patches: Patch, caught_by: set[AnomalyKind], within: int
) -> Mutant:
    return Mutant(
        name=name,
        about=about,
        caught_by=frozenset(caught_by),
        within_seeds=within,
        profile="groups",
        patches=patches,
    )


GROUP_MUTANTS: tuple[Mutant, ...] = (
    _mutant(
        "answer-before-commit",
        "a coordinator answers before the high watermark has passed what it wrote",
        Patch(HostedShard, "settle", answer_at_once),
        caught_by={
            COMMIT_FORGOTTEN,
            GENERATION_DENIED,
            EPOCH_DENIED,
            OWNED_TWICE,
            DELETED_OFFSET_BACK,
        },
        within=30,
    ),
    _mutant(
        "read-before-commit",
        "a fetch of offsets, a refusal or a heartbeat shows what is not committed",
        Patch(HostedShard, "_run", answer_reads_at_once),
        caught_by={COMMIT_FORGOTTEN, DELETED_OFFSET_BACK},
        within=60,
    ),
    _mutant(
        "forget-the-generation",
        "a member may commit in whatever generation",
        Patch(classic_groups, "refuse_commit", any_generation),
        caught_by={FENCED_COMMIT},
        within=10,
    ),
    _mutant(
        "keep-offsets-after-resignation",
        "a coordinator that leads again knows the offsets of its last time, not the log's",
        Patch(CoordinatorRuntime, "resign", keep_offsets),
        Patch(CoordinatorRuntime, "_load", load_kept_offsets),
        Patch(GroupShard, "check", no_check),
        caught_by={COMMIT_FORGOTTEN, DELETED_OFFSET_BACK},
        within=150,
    ),
    _mutant(
        "coordinate-without-leadership",
        "a coordinator goes on in its old leader epoch, though another broker leads",
        Patch(GroupCoordinator, "_consider", never_resign),
        Patch(PartitionLog, "is_led_in", always_led),
        Patch(PartitionLog, "append", append_without_fence),
        caught_by={COMMIT_FORGOTTEN, DELETED_OFFSET_BACK, GENERATION_DENIED, EPOCH_DENIED},
        within=10,
    ),
    _mutant(
        "load-to-high-watermark",
        "a new coordinator leaves out what it does not yet know to be committed",
        Patch(ShardLoader, "__init__", load_to_high_watermark),
        caught_by={COMMIT_FORGOTTEN, GENERATION_DENIED, EPOCH_DENIED, DELETED_OFFSET_BACK},
        within=30,
    ),
    _mutant(
        "load-without-tombstones",
        "a new coordinator does not notice what was deleted",
        Patch(shard_loader, "iterate", without_tombstones),
        caught_by={DELETED_OFFSET_BACK},
        within=20,
    ),
    _mutant(
        "load-without-sessions",
        "members of a loaded group never time out",
        Patch(ClassicGroups, "on_loaded", load_without_sessions),
        Patch(ClassicGroups, "check", no_check),
        caught_by={UNOWNED, NOT_RECOVERED},
        within=60,
    ),
    _mutant(
        "stay-in-the-generation",
        "a rebalance does not begin a new generation",
        Patch(ClassicGroup, "begin_generation", stay_in_generation),
        caught_by={OWNED_TWICE, GENERATION_DENIED},
        within=10,
    ),
    _mutant(
        "give-before-release",
        "a member of a KIP-848 group is given what its last owner has not released",
        Patch(ConsumerGroup, "is_owned", always_free),
        Patch(ConsumerGroup, "check", no_check),
        caught_by={OWNED_TWICE},
        within=10,
    ),
    _mutant(
        "take-without-asking",
        "a member of a KIP-848 group counts as having released what it was asked to give back",
        Patch(Reconciliation, "_still_owns", has_given_back),
        caught_by={OWNED_TWICE},
        within=10,
    ),
    _mutant(
        "forget-the-member-epoch",
        "a member of a KIP-848 group may commit in whatever epoch",
        Patch(offset_operations, "validate_consumer_commit", any_epoch),
        caught_by={FENCED_COMMIT},
        within=10,
    ),
    _mutant(
        "load-without-assignments",
        "a new coordinator forgets the epochs and partitions of the members of a KIP-848 group",
        Patch(ConsumerGroups, "apply", load_without_assignments),
        caught_by={EPOCH_DENIED},
        within=10,
    ),
    _mutant(
        "load-without-epochs",
        "a new coordinator of a KIP-848 group counts its epochs from the beginning",
        Patch(ConsumerGroups, "apply", load_without_epochs),
        Patch(ConsumerGroup, "check", no_check),
        caught_by={EPOCH_DENIED},
        within=10,
    ),
    _mutant(
        "load-consumers-without-sessions",
        "members of a loaded KIP-848 group never time out",
        Patch(ConsumerGroups, "on_loaded", load_consumers_without_sessions),
        Patch(ConsumerGroups, "check", no_check),
        caught_by={UNOWNED, NOT_RECOVERED},
        within=60,
    ),
)
