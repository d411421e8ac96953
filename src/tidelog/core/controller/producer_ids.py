"""Producer ids: given to brokers in blocks, so that no id is ever given twice.

A block is a record. Only when it is committed may its first id be used; what a broker has not used
of its block when it stops is lost, and nobody misses it.
"""

from __future__ import annotations

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import ProducerIdsRecord
from tidelog.core.model.limits import INT64_MAX, PRODUCER_IDS_PER_BLOCK


def decide_block(image: ClusterImage, *, broker_id: int) -> tuple[ProducerIdsRecord, range]:
    """The record that reserves the next block for a registered broker, and the ids in it."""
    first = image.next_producer_id
    assert first <= INT64_MAX - PRODUCER_IDS_PER_BLOCK, "all producer ids of the universe are used"
    block = range(first, first + PRODUCER_IDS_PER_BLOCK)
    record = ProducerIdsRecord(
        broker_id=broker_id,
        broker_epoch=image.brokers[broker_id].broker_epoch,
        next_producer_id=block.stop,
    )
    return record, block
