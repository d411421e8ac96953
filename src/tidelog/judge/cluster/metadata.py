"""Metadata: every node applies the same changes, and none before it is committed."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.cluster.facts import METADATA, Complaint, Life, QuorumFacts
from tidelog.judge.cluster.picture import Picture

AGREES = "metadata agrees"
COMMITTED = "only committed metadata is applied"


def applied_is_committed(picture: Picture, facts: QuorumFacts) -> Iterator[Complaint]:
    """A node's image holds nothing beyond what the quorum has committed."""
    committed_end_offset = picture.committed_log(METADATA).end_offset
    if facts.applied_end_offset > committed_end_offset:
        yield Complaint(
            COMMITTED,
            METADATA,
            f"{facts.life} applied up to {facts.applied_end_offset}, "
            f"committed is {committed_end_offset}",
        )


def image_differs(life: Life, evidence: str) -> Iterator[Complaint]:
    """A node that has applied as much as is committed believes something else."""
    yield Complaint(AGREES, METADATA, f"{life}: {evidence}")
