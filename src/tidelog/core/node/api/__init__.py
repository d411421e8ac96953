"""One file per API, found by its number; this page is the list of what a broker serves.

Each module has `API_KEY`, `VERSIONS` (served) and `handle(node, request, now_ms)`; one that must
advertise more than it serves has `ADVERTISED` too. `INTERNAL = True`: nodes speak it among
themselves, clients are not told. `FORWARDED = True`: only the active controller decides it, and
every other node passes it on (forwarding.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tidelog.core.node.api import (
    api_00_produce,
    api_01_fetch,
    api_02_list_offsets,
    api_03_metadata,
    api_10_find_coordinator,
    api_18_api_versions,
    api_19_create_topics,
    api_20_delete_topics,
    api_21_delete_records,
    api_22_init_producer_id,
    api_23_offset_for_leader_epoch,
    api_32_describe_configs,
    api_37_create_partitions,
    api_43_elect_leaders,
    api_44_incremental_alter_configs,
    api_46_list_partition_reassignments,
    api_52_vote,
    api_53_begin_quorum_epoch,
    api_54_end_quorum_epoch,
    api_55_describe_quorum,
    api_56_alter_partition,
    api_57_update_features,
    api_58_envelope,
    api_59_fetch_snapshot,
    api_60_describe_cluster,
    api_61_describe_producers,
    api_62_broker_registration,
    api_63_broker_heartbeat,
    api_64_unregister_broker,
    api_67_allocate_producer_ids,
    api_73_assign_replicas_to_dirs,
    api_75_describe_topic_partitions,
)

if TYPE_CHECKING:
    from tidelog.core.node.node import Node
    from tidelog.core.node.request import Request


class Api(NamedTuple):
    """One served API: the versions it takes, those it advertises, and who answers."""

    versions: range
    advertised: range
    handle: Callable[[Node, Request, int], None]
    is_internal: bool
    is_forwarded: bool
    forward: Callable[[Node, Request, memoryview, int], None] | None
    """On the node that was asked: what comes before the passing on, if anything does."""


_MODULES = (
    api_00_produce,
    api_01_fetch,
    api_02_list_offsets,
    api_03_metadata,
    api_10_find_coordinator,
    api_18_api_versions,
    api_19_create_topics,
    api_20_delete_topics,
    api_21_delete_records,
    api_22_init_producer_id,
    api_23_offset_for_leader_epoch,
    api_32_describe_configs,
    api_37_create_partitions,
    api_43_elect_leaders,
    api_44_incremental_alter_configs,
    api_46_list_partition_reassignments,
    api_52_vote,
    api_53_begin_quorum_epoch,
    api_54_end_quorum_epoch,
    api_55_describe_quorum,
    api_56_alter_partition,
    api_57_update_features,
    api_58_envelope,
    api_59_fetch_snapshot,
    api_60_describe_cluster,
    api_61_describe_producers,
    api_62_broker_registration,
    api_63_broker_heartbeat,
    api_64_unregister_broker,
    api_67_allocate_producer_ids,
    api_73_assign_replicas_to_dirs,
    api_75_describe_topic_partitions,
)

HANDLERS: dict[int, Api] = {
    module.API_KEY: Api(
        versions=module.VERSIONS,
        advertised=getattr(module, "ADVERTISED", module.VERSIONS),
        handle=module.handle,
        is_internal=getattr(module, "INTERNAL", False),
        is_forwarded=getattr(module, "FORWARDED", False),
        forward=getattr(module, "forward", None),
    )
    for module in _MODULES
}
assert len(HANDLERS) == len(_MODULES), "two files claim one API"
