"""Which follower a client should read from: one in its own rack, if it has what is asked (KIP-392).

Chosen by the leader, from what it knows of its followers. A follower gives no more than its own
high watermark, which it learns from the leader.
"""

from __future__ import annotations

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.replication_settings import RACK_AWARE_SELECTOR
from tidelog.core.node.settings import NodeSettings
from tidelog.core.replication.partition import Partition
from tidelog.core.replication.progress import FollowerProgress


class ReplicaSelector:
    """Invariant: names only in-sync followers on living brokers of the asked rack."""

    def __init__(self, *, image: ClusterImage, own_rack: str | None) -> None:
        self._image = image
        self._own_rack = own_rack

    @classmethod
    def of(cls, settings: NodeSettings, image: ClusterImage) -> ReplicaSelector | None:
        """None: clients read from leaders only, which is the default."""
        if settings.value("replica.selector.class") != RACK_AWARE_SELECTOR:
            return None
        return cls(image=image, own_rack=settings.rack)

    def choose(self, partition: Partition, rack: str, fetch_offset: int) -> int | None:
        """The most caught-up replica in the rack; None: read here."""
        if partition.leadership is None or rack == self._own_rack:
            return None
        candidates = [
            follower
            for follower in partition.leadership.followers.values()
            if follower.broker_id in partition.isr
            and _has(follower, fetch_offset)
            and self._is_in(rack, follower.broker_id)
        ]
        if not candidates:
            return None
        return max(candidates, key=_readiness).broker_id

    def _is_in(self, rack: str, broker_id: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced and broker.rack == rack


def _has(follower: FollowerProgress, offset: int) -> bool:
    start_offset, end_offset = follower.log_start_offset, follower.log_end_offset
    if start_offset is None or end_offset is None:
        return False
    return start_offset <= offset <= end_offset


def _readiness(follower: FollowerProgress) -> tuple[int, int, int]:
    return follower.log_end_offset or 0, follower.caught_up_ms or 0, -follower.broker_id
