"""Members of consumer groups in a story: they read what their group gives them, and commit.

A member is Kafka's consumer after `subscribe()`, without automatic commits: a story decides between
which record and which commit something happens to it. All that a member was given and answered is
kept for the audit of its group (group_audit.py), also after its death.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from tidelog.client.consumer.errors import ConsumerError
from tidelog.client.group.offset_commits import CommitOutcome
from tidelog.core.model.ids import TopicPartition
from tidelog.judge.groups.group_history import OffsetCommitted
from tidelog.judge.history import CallOutcome
from tidelog.lab.engine import CommitHandle, Consumed, MemberAssigned

if TYPE_CHECKING:
    from tidelog.lab.lab import Lab

E = TypeVar("E", bound=ConsumerError)
SETTLED_WITHIN_MS = 120_000
"""Longer than any session and any rebalance of a story."""


class LabCommit:
    """One commit that a member was told to make."""

    def __init__(self, handle: CommitHandle, begun_us: int, assigned: MemberAssigned) -> None:
        self.handle = handle
        self.begun_us = begun_us
        self._assigned = assigned
        """What the member had when it committed."""

    @property
    def outcome(self) -> CommitOutcome | None:
        return self.handle.outcome

    @property
    def is_ok(self) -> bool:
        return self.outcome is not None and self.outcome.is_ok

    def as_operations(self, group: str, now_us: int) -> list[OffsetCommitted]:
        """For the judge."""
        outcome, over_us = self.outcome, self.handle.over_us
        word = CallOutcome.UNKNOWN
        if outcome is not None and not outcome.is_unknown:
            word = CallOutcome.OK if outcome.is_ok else CallOutcome.REFUSED
        return [
            OffsetCommitted(
                at_us=now_us if over_us is None else over_us,
                invoked_us=self.begun_us,
                group=group,
                partition=str(name),
                token=committed.metadata,
                offset=committed.offset,
                outcome=word,
                member=self._assigned.member_id,
                generation=self._assigned.generation,
                error=None if outcome is None else outcome.error.name,
            )
            for name, committed in self.handle.offsets.items()
        ]


class LabMember:
    """A member that a story can wait for."""

    def __init__(
        self, lab: Lab, name: str, group: str, config: Mapping[str, str], topics: Sequence[str]
    ) -> None:
        self._lab = lab
        self.name = name
        self.group = group
        given = {"auto.offset.reset": "earliest", **config, "group.id": group}
        self.handle = lab.engine.member(name, given, topics)
        self.got: list[Consumed] = []
        self.commits: list[LabCommit] = []
        self.assigned_when_got: list[MemberAssigned] = []
        """Of each record in `got`: the assignment by which it came."""

    # What it has

    @property
    def payloads(self) -> list[str]:
        return [(each.value or b"").decode() for each in self.got]

    @property
    def offsets(self) -> list[int]:
        return [each.offset for each in self.got]

    @property
    def rebalances(self) -> int:
        """How often its group gave it something, be it the same as before."""
        return len(self.handle.assignments)

    @property
    def generation(self) -> int | None:
        """Of its newest assignment."""
        assignments = self.handle.assignments
        return assignments[-1].generation if assignments else None

    @property
    def owned(self) -> list[int]:
        """The partitions that it may read now; none while its group rebalances."""
        return [each.index for each in self.handle.owned or ()]

    def position(self, index: int = 0) -> int | None:
        return self.handle.position(self._partition(index))

    def reads(self) -> Iterator[tuple[str, Consumed]]:
        """For the audit each assignment is a reader of its own: it may begin anywhere."""
        for got, assigned in zip(self.got, self.assigned_when_got, strict=True):
            yield f"{self.name} in generation {assigned.generation}", got

    # What it does

    def until_assigned(self, *indexes: int) -> None:
        """Until its group gave it exactly these partitions of the story's topic."""
        wanted = [self._partition(index) for index in sorted(indexes)]

        def is_assigned() -> bool:
            owned = self.handle.owned
            return owned is not None and sorted(owned) == wanted

        what = f"{self.name} has {', '.join(map(str, wanted)) or 'nothing'}"
        self._lab.until(what, is_assigned, within_ms=SETTLED_WITHIN_MS)

    def poll(self, records_max: int | None = None) -> list[Consumed]:
        """What there is now."""
        got = self.handle.poll(records_max)
        if got:
            self.got += got
            self.assigned_when_got += [self.handle.assignments[-1]] * len(got)
        return got

    def read(self, count: int, *, within_ms: int = SETTLED_WITHIN_MS) -> list[Consumed]:
        """Poll until its program has exactly this many more."""
        before = len(self.got)

        def has_all() -> bool:
            missing = before + count - len(self.got)
            if missing:
                self.poll(missing)
            return len(self.got) == before + count

        self._lab.until(f"{self.name} is given {count} records", has_all, within_ms=within_ms)
        return self.got[before:]

    def read_for(self, duration_ms: int) -> list[Consumed]:
        """Poll for the given time, and return what came."""
        before = len(self.got)
        end_us = self._lab.engine.now_us + duration_ms * 1_000
        while self._lab.engine.now_us < end_us:
            self.poll()
            self._lab.engine.pass_ms(10)
        self.poll()
        return self.got[before:]

    def poll_until_error(self, kind: type[E]) -> E:
        """The error that comes out of its poll; it must not be given anything before that."""
        errors: list[E] = []

        def has_failed() -> bool:
            try:
                assert not self.poll(), f"{self.name} was given {self.got}"
            except kind as error:
                errors.append(error)
            return bool(errors)

        self._lab.until(f"{self.name} hears of it", has_failed)
        return errors[0]

    def begin_commit(self, offset: int | None = None, *, index: int = 0) -> LabCommit:
        """Commit this offset, or where it stands in all that it owns; don't wait."""
        offsets = None if offset is None else {self._partition(index): offset}
        token = f"{self.name} {len(self.commits)}"
        begun_us = self._lab.engine.now_us
        handle = self.handle.commit(offsets, token)
        assert self.handle.assignments, f"{self.name} was never assigned anything"
        self.commits.append(LabCommit(handle, begun_us, self.handle.assignments[-1]))
        return self.commits[-1]

    def commit(self, offset: int | None = None, *, index: int = 0) -> CommitOutcome:
        """The same, and wait for the outcome."""
        return self.wait(self.begin_commit(offset, index=index))

    def wait(self, commit: LabCommit, *, within_ms: int = SETTLED_WITHIN_MS) -> CommitOutcome:
        self._lab.engine.wait(lambda: commit.outcome is not None, within_ms=within_ms)
        assert commit.outcome is not None, f"{self.name} still waits for its commit"
        return commit.outcome

    # What happens to it

    def leave(self) -> None:
        """It says goodbye, without a commit."""
        self.handle.leave()

    def kill(self) -> None:
        """Its process is gone; its group learns that when its session is over."""
        self.handle.kill()

    def pause(self) -> None:
        """Its process stands still: no heartbeat, and what it is told to do waits."""
        self.handle.pause()

    def resume(self) -> None:
        self.handle.resume()

    def _partition(self, index: int) -> TopicPartition:
        return TopicPartition(self._lab.topic.name, index)
