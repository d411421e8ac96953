"""Producer state: what a replica remembers of a producer is what its own log says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.judge.cluster.facts import Complaint, ProducerFacts
from tidelog.judge.cluster.picture import Picture

NAME = "producer state matches the log"


def producer_state(
    picture: Picture, partition: str, node_id: int, remembered: Sequence[ProducerFacts]
) -> Iterator[Complaint]:
    """The newest batch of each remembered producer stands in the log, and no newer one does.

    A producer may be forgotten, and its batches may be deleted; a batch that was cut off may not be
    remembered: a retry would be taken for a duplicate.
    """
    mirror = picture.mirror(partition, node_id)
    newest = {
        batch.producer_id: batch
        for batch in mirror.batches.values()
        if batch.producer_id is not None
    }
    for state in remembered:
        batch = newest.get(state.producer_id)
        if batch is None:
            if state.end_offset > mirror.end_offset:
                yield Complaint(NAME, partition, f"node {node_id}: {state} is not in its log")
        elif (
            batch.producer_epoch != state.producer_epoch
            or batch.end_sequence != state.end_sequence
            or batch.end_offset != state.end_offset
        ):
            yield Complaint(NAME, partition, f"node {node_id}: {state}, but its log has {batch}")
