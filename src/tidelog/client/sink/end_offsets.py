"""Where every partition ends that a sink may write, before anybody writes."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.client.sink.conversation import Steps
from tidelog.client.sink.requests import ask_end_offset, told_end_offset
from tidelog.client.sink.telling import must
from tidelog.client.sink.topics import partitions_of
from tidelog.core.model.ids import TopicPartition


def end_offsets(topics: Sequence[str]) -> Steps[tuple[dict[TopicPartition, int], int]]:
    """By partition, and the time at which all of them were known."""
    partitions = yield from partitions_of(topics)
    told = yield tuple(ask_end_offset(each) for each in partitions)
    offsets = [told_end_offset(must(each)) for each in told]
    return dict(zip(partitions, offsets, strict=True)), max(each.now_ms for each in told)
