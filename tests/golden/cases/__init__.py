"""All cases: importing this package declares them."""

from tests.golden.cases import (  # noqa: F401
    api_versions,
    clusters,
    configs,
    configs_alter,
    configs_replace,
    coordinated,
    coordinators,
    elections,
    fetch,
    fetch_limits,
    fetch_sessions,
    frames,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    partitions,
    partitions_describe,
    produce,
    produce_corrupt,
    produce_records,
    produce_sequences,
    produce_topics,
    producers,
    quorum,
    reassignments,
    records_deletion,
    sasl,
    topics_create,
    topics_delete,
)
from tests.golden.cases.registry import CASES, COORDINATED_CASES, Case, case

__all__ = ["CASES", "COORDINATED_CASES", "Case", "case"]
