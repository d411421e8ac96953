"""A watch over leaders: each high watermark that one had, with the time at which it had it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from tidelog.core.replication.partition import Partition
from tidelog.judge.history import HighWatermarkSet
from tidelog.worlds.simulator.cluster import SimCluster


class HighWatermarkWatch:
    """Collects what leaders committed, for the check of dirty reads."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._newest: dict[tuple[str, int], int] = {}
        self.seen: list[HighWatermarkSet] = []

    def note(self, partition: str, leader_epoch: int, high_watermark: int) -> None:
        """A leader has this high watermark now."""
        key = (partition, leader_epoch)
        if high_watermark > self._newest.get(key, -1):
            self._newest[key] = high_watermark
            self.seen.append(
                HighWatermarkSet(
                    at_us=self._now_us(),
                    partition=partition,
                    leader_epoch=leader_epoch,
                    high_watermark=high_watermark,
                )
            )

    def look(self, partitions: Iterable[Partition]) -> None:
        """Note what a node leads."""
        for partition in partitions:
            if partition.leadership is not None:
                name = str(partition.topic_partition)
                self.note(name, partition.leader_epoch, partition.high_watermark)


def watch_cluster(cluster: SimCluster) -> HighWatermarkWatch:
    """A watch that looks after each tick of each node, and once more before its end."""
    watch = HighWatermarkWatch(lambda: cluster.world.now_us)

    def look(node_id: int, how: str = "") -> None:
        if how != "halted":
            watch.look(cluster.node(node_id).partitions)

    for node_id, process in cluster.processes.items():
        process.on_ticked = partial(look, node_id)
        process.on_ending = partial(look, node_id)
    return watch
