"""A mutant: a known mistake planted from outside, to prove that the simulator would catch it.

Nothing in the product has a switch for it. A mutant is another disk, or functions of the product
replaced while it is active; it says which check must condemn it and within how many seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.judge.anomalies import AnomalyKind
from tidelog.worlds.simulator.disk import SimDisk


class Patch(NamedTuple):
    """A function of the product, and what stands in its place while a mistake is planted."""

    owner: object
    attribute: str
    replacement: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mistake, who catches it, and how soon."""

    name: str
    about: str
    caught_by: frozenset[AnomalyKind]
    within_seeds: int
    profile: str = "storage"
    disk_type: type[SimDisk] = SimDisk
    patches: tuple[Patch, ...] = ()

    @contextmanager
    def planted(self) -> Iterator[type[SimDisk]]:
        """The mistake is active inside; what comes is the disk to use."""
        with ExitStack() as stack:
            for patch in self.patches:
                original = getattr(patch.owner, patch.attribute)
                setattr(patch.owner, patch.attribute, patch.replacement)
                stack.callback(setattr, patch.owner, patch.attribute, original)
            yield self.disk_type


def replication_mutant(
    name: str,
    about: str,
    *,
    caught_by: Sequence[AnomalyKind],
    within: int,
    patches: Sequence[Patch],
) -> Mutant:
    """A mistake of the profile `replication`."""
    return Mutant(
        name=name,
        about=about,
        caught_by=frozenset(caught_by),
        within_seeds=within,
        profile="replication",
        patches=tuple(patches),
    )
