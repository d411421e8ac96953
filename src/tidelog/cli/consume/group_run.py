"""One run of `tidelog consume --group`: a member of the group that prints, and commits that."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidelog.cli.exit_codes import Stop, VerbFailed, complain
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.shells.group_consumer import GroupConsumer
from tidelog.core.model.ids import TopicPartition

POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRead:
    """How far somebody wants to read."""

    topic: str
    stops_at_end: bool
    records_max: int | None
    timeout_s: float


def read_as_member(
    settings: Mapping[str, str], wanted: GroupRead, show: Callable[[ConsumerRecord], bytes]
) -> None:
    """Records to standard output; what was printed is committed, also when it ends."""
    with Stop() as stop, GroupConsumer(settings, [wanted.topic]) as consumer:
        ends = AssignedEnds(consumer)
        records_left = wanted.records_max
        progress_s = time.monotonic()
        while records_left != 0 and not stop.is_requested:
            records = consumer.poll(POLL_S, records_max=records_left)
            for record in records:
                sys.stdout.buffer.write(show(record))
            if records:
                sys.stdout.buffer.flush()
                progress_s = time.monotonic()
                records_left = None if records_left is None else records_left - len(records)
            consumer.commit()
            if wanted.stops_at_end:
                if ends.are_reached():
                    break
                if time.monotonic() - progress_s > wanted.timeout_s:
                    raise VerbFailed(f"nothing came for {wanted.timeout_s:g} s")
    if consumer.commit_failure is not None:
        failure = consumer.commit_failure
        known = "may not be" if failure.is_unknown else "is not"
        complain("consume", f"{failure.error.name}: the last of what was read {known} committed")


class AssignedEnds:
    """The ends that the assigned partitions had when they were assigned."""

    def __init__(self, consumer: GroupConsumer) -> None:
        self._consumer = consumer
        self._rebalances = 0
        self._ends: dict[TopicPartition, int] | None = None

    def are_reached(self) -> bool:
        """Also by a member that was given nothing."""
        consumer = self._consumer
        if not consumer.is_assigned:
            return False
        if self._rebalances != consumer.rebalances or self._ends is None:
            rebalances = consumer.rebalances
            ends = consumer.end_offsets(consumer.assignment)
            if ends is None or rebalances != consumer.rebalances:
                return False
            self._rebalances, self._ends = rebalances, ends
        positions = {each: consumer.position(each) for each in self._ends}
        return all(
            position is not None and position >= self._ends[each]
            for each, position in positions.items()
        )
