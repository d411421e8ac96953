"""Looks up which topics the regular expressions of groups match, in slices.

With many topics this takes longer than a turn of the loop may, whatever the expressions are. So a
job does a bounded amount of work whenever its time comes, and its result is an event like others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tidelog.core.groups.regex_syntax import InvalidRegex
from tidelog.core.groups.topic_regex import State, TopicRegex

SLICE_WORK: Final = 15_000
"""Looks at instructions of one slice: about 2 ms."""
SLICE_PAUSE_MS: Final = 1


@dataclass(slots=True)
class RegexJob:
    """All expressions of one group, over the topics that there were when it began."""

    group_id: str
    version: int
    started_wall_ms: int
    patterns: Sequence[str]
    names: Sequence[str]
    matched: dict[str, set[str]] = field(default_factory=dict)
    _regex: TopicRegex | None = None
    _name_at: int = 0
    _character_at: int = 0
    _state: State | None = None

    @property
    def is_done(self) -> bool:
        return self._regex is None and len(self.matched) == len(self.patterns)

    def proceed(self, work_max: int) -> None:
        """Do as much as is allowed, and then a little."""
        while work_max > 0 and not self.is_done:
            if self._regex is None:
                work_max -= self._begin(self.patterns[len(self.matched)])
                continue
            regex, before = self._regex, self._regex.work
            self._step(regex)
            work_max -= 1 + regex.work - before

    def _begin(self, pattern: str) -> int:
        """The next expression. One that is none here, but was to another coordinator, is empty."""
        self.matched[pattern] = set()
        try:
            self._regex = TopicRegex(pattern)
        except InvalidRegex:
            return len(pattern)
        self._name_at, self._character_at, self._state = 0, 0, None
        return len(pattern) + self._regex.work

    def _step(self, regex: TopicRegex) -> None:
        """One character, or the end of a name, or of all names."""
        if self._name_at == len(self.names):
            self._regex = None
            return
        name = self.names[self._name_at]
        state = regex.start if self._state is None else self._state
        if self._character_at < len(name):
            self._state = regex.step(state, name[self._character_at])
            self._character_at += 1
            if self._state[0]:
                return
        elif regex.accepts(state):
            self.matched[regex.pattern].add(name)
        self._name_at, self._character_at, self._state = self._name_at + 1, 0, None


class RegexResolution:
    """The jobs of all groups, one after the other."""

    def __init__(self) -> None:
        self._jobs: dict[str, RegexJob] = {}
        self._due_ms: int | None = None

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._jobs

    def begin(self, job: RegexJob, now_ms: int) -> None:
        assert job.group_id not in self._jobs, "one job of a group at a time"
        self._jobs[job.group_id] = job
        if self._due_ms is None:
            self._due_ms = now_ms

    def forget(self, group_id: str) -> None:
        self._jobs.pop(group_id, None)
        if not self._jobs:
            self._due_ms = None

    def next_deadline_ms(self) -> int | None:
        return self._due_ms

    def on_timer(self, now_ms: int) -> RegexJob | None:
        """One slice of the oldest job; the job, if that was its last."""
        job = next(iter(self._jobs.values()))
        job.proceed(SLICE_WORK)
        self._due_ms = now_ms + SLICE_PAUSE_MS
        if not job.is_done:
            return None
        self.forget(job.group_id)
        return job
