"""How much of a campaign a run has: a part of it, or with `--whole-campaigns` all of it.

Which part follows from the code: the same code has the same one, here and everywhere, and other
code has another, so that successive changes meet all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Step = TypeVar("Step")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignExtent:
    """What the fixture `extent` gives."""

    is_whole: bool
    number: int
    """Made of the code; it says which part is next."""

    def size(self, part: int, *, whole: int) -> int:
        """How often, where one time is like the other."""
        return whole if self.is_whole else part

    def share(self, steps: Sequence[Step], *, parts: int) -> list[Step]:
        """Every so-manieth step, in their order."""
        return list(steps if self.is_whole else steps[self.number % parts :: parts])
