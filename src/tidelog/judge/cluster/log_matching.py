"""Log matching: the same offset in the same leader epoch is the same batch, on every replica.

And so is everything before it: each batch is held against the one that preceded it where it was
first seen, which by induction compares whole prefixes. Nothing excuses a breach, not even an
unclean election: that writes in a leader epoch of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidelog.judge.cluster.facts import Batch, Complaint
from tidelog.judge.cluster.picture import Picture

NAME = "log matching"


def on_appended(
    picture: Picture, partition: str, node_id: int, batches: Iterable[Batch], before: Batch | None
) -> Iterator[Complaint]:
    """Batches came to the end of a replica's log, behind `before`."""
    for batch in batches:
        key = (partition, batch.leader_epoch, batch.base_offset)
        first, predecessor = picture.batches.setdefault(key, (batch, before))
        if first != batch:
            yield Complaint(NAME, partition, f"node {node_id} has {batch}, another had {first}")
        elif before is not None and predecessor is not None and before != predecessor:
            yield Complaint(
                NAME,
                partition,
                f"node {node_id}: before {batch} stands {before}, elsewhere {predecessor}",
            )
        elif predecessor is None and before is not None:
            picture.batches[key] = (first, before)
        before = batch


def log_matching(picture: Picture, partition: str) -> Iterator[Complaint]:
    """All batches of all replicas once more."""
    for node_id, mirror in sorted(picture.mirrors.get(partition, {}).items()):
        yield from on_appended(picture, partition, node_id, mirror.batches.values(), None)
