"""All cases with three nodes: importing this package declares them."""

from tests.golden.cases.registry import CLUSTER_CASES
from tests.golden.cluster_cases import (  # noqa: F401
    controllers,
    departures,
    directories,
    envelopes,
    leadership,
    reassignments,
    registrations,
    topics,
    voters,
)

__all__ = ["CLUSTER_CASES"]
