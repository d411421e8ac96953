"""The replicas of a partition while it moves: all of them, those that come, those that go.

While a reassignment runs, `replicas` is the target followed by those that go. One that comes counts
for nothing until it is in sync; one that goes keeps all its duties until the end. A replica that
came with an earlier target and is not in the new one is in both lists: it is dropped at the end,
however that comes. So the assignment to go back to is always "all but those that come".
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.core.metadata.cluster import PartitionState


class CompletedReassignment(NamedTuple):
    """The partition after its reassignment."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ReassignmentReplicas(NamedTuple):
    """Invariant: adding and removing are parts of replicas."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def is_in_progress(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def original(self) -> tuple[int, ...]:
        """What a cancellation goes back to."""
        return _without(self.replicas, self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        return _without(self.replicas, self.removing)

    def toward(self, target: tuple[int, ...]) -> ReassignmentReplicas:
        """The same partition on its way to another target; one under way is given up."""
        removing = sorted(set(self.replicas) - set(target))
        adding = sorted({*self.adding, *target} - (set(self.replicas) - set(self.adding)))
        return ReassignmentReplicas((*target, *removing), tuple(adding), tuple(removing))

    def completed(self, isr: tuple[int, ...]) -> CompletedReassignment | None:
        """The end of the reassignment, or None while it must wait.

        All that come must be in sync. If the replication factor shrinks, all that stay must be:
        for [1, 2, 3, 4] -> [3, 4, 5] with 1, 2 and 5 in sync, only 5 would be left in sync.
        """
        if not self.is_in_progress:
            return None
        target, staying = self.target, _without(isr, self.removing)
        shrinks = len(target) < len(self.original)
        awaited = set(target) if shrinks else set(self.adding) - set(self.removing)
        if not target or not staying or not awaited <= set(staying):
            return None
        return CompletedReassignment(target, staying)


def reassignment_of(state: PartitionState) -> ReassignmentReplicas:
    return ReassignmentReplicas(state.replicas, state.adding_replicas, state.removing_replicas)


def _without(replicas: tuple[int, ...], dropped: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in dropped)
