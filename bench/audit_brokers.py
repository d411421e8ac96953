"""Three brokers of this checkout that hold what segment files hold, offset for offset."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bench.audit_load import TOPIC, Load
from bench.brokers import TIDELOG
from bench.clusters import Cluster, NotInTime, running_cluster
from bench.topics import leaders
from tests.process.wire import WireClient
from tidelog.core.wire.record_batch import batches, rebase

SETTINGS = {"log.retention.ms": "-1"}
"""The records are of long ago."""


@contextmanager
def brokers_with(root: Path, load: Load) -> Iterator[Cluster]:
    """Each partition is written by a thread of its own, with acks=all."""
    with running_cluster(TIDELOG, SETTINGS) as cluster:
        everybody = sorted(cluster.addresses)
        turns = [everybody[each:] + everybody[:each] for each in range(len(everybody))]
        cluster.create_topic(TOPIC, [turns[index % len(turns)] for index in range(load.partitions)])
        addresses = leaders(cluster, TOPIC)
        with ThreadPoolExecutor(max_workers=load.partitions) as pool:
            list(pool.map(_write, addresses, range(load.partitions), [root] * load.partitions))
        cluster.wait_until_in_sync(TOPIC)
        yield cluster


def _write(address: str, partition: int, root: Path) -> None:
    with WireClient(address) as wire:
        for path in sorted((root / "node-1" / "data" / f"{TOPIC}-{partition}").glob("*.log")):
            data = memoryview(path.read_bytes())
            for position, header in batches(data):
                batch = bytearray(data[position : position + header.size_bytes])
                rebase(batch, 0, base_offset=0, leader_epoch=-1)  # as clients send it
                answer = wire.produce(TOPIC, batch, partition=partition)
                if answer.error_code or answer.base_offset != header.base_offset:
                    raise NotInTime(f"{TOPIC}-{partition} at {header.base_offset}: {answer}")
