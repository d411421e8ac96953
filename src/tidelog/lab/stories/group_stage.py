"""The stage of stories about groups: `orders`, and a coordinator where the story wants it.

`__consumer_offsets` has one partition here, with replicas in the story's order: whoever leads it
coordinates every group. Groups begin at once, and a dead process is noticed by its connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.lab.lab import Lab

GROUP = "order-processors"
SESSION_MS = 6_000
SESSION = {"session_timeout_ms": str(SESSION_MS), "heartbeat_interval_ms": "2000"}
"""The shortest session that brokers allow by default."""
SETTINGS = {"offsets.topic.num.partitions": "1", "replica.lag.time.max.ms": "10000"}


def stage(
    lab: Lab,
    *,
    count: int,
    replicas: Sequence[Sequence[int]] = ((1, 2, 3),),
    offsets_on: Sequence[int] = (3, 2, 1),
    brokers: Sequence[int] = (1, 2, 3),
    controllers: Sequence[int] = (9,),
    racks: Mapping[int, str] | None = None,
    **configs: str,
) -> None:
    """So many records in partition 0; the first of `offsets_on` is the coordinator."""
    lab.cluster(brokers, controllers=controllers, profile="tidelog", settings=SETTINGS, racks=racks)
    minimum = str(min(2, len(replicas[0])))
    lab.create("orders", *replicas, **{"min_insync_replicas": minimum, **configs})
    lab.create(
        OFFSETS_TOPIC,
        offsets_on,
        cleanup_policy="compact",
        min_insync_replicas=str(min(2, len(offsets_on))),
    )
    lab.fill(count)
    lab.until_quiet()
    lab.until("the group has a coordinator", lambda: lab.coordinator(GROUP) == offsets_on[0])


def committed_offset(lab: Lab, group: str = GROUP, index: int = 0) -> int | None:
    """What the group has committed, as soon as somebody can say it."""
    found: list[int | None] = []

    def is_answered() -> bool:
        committed = lab.committed(group, index)
        found.append(None if committed is None else committed.offset)
        return True

    lab.until(f"the offsets of {group} can be had", is_answered, within_ms=60_000)
    return found[-1]


def names(start: int, end: int) -> tuple[str, ...]:
    """The payloads of these offsets, as `fill` wrote them."""
    return tuple(f"r{number}" for number in range(start, end))


def offsets_in_sync(lab: Lab, *brokers: int) -> None:
    """Until these brokers hold all that groups have committed."""
    lab.until(
        f"the offsets are on {brokers}",
        lambda: lab.desc(topic=lab.groups.offsets_topic()).isr == brokers,
        within_ms=60_000,
    )
