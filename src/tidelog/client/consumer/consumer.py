"""The consumer: assigned partitions, a position in each, and records for a program that polls.

`poll` never waits. `on_ready` says that it has something to give; a host without it polls whenever
it likes, and ends its turn with the client's `end_of_tick`, which is where the next fetches leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.client.client import Client
from tidelog.client.consumer.config import ConsumerConfig, Reset
from tidelog.client.consumer.errors import ConsumerError, CorruptRecords
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.consumer.fetcher import ConsumerFetcher
from tidelog.client.consumer.offset_lookup import ListOffsetsLookup, LookupResult
from tidelog.client.consumer.position_finder import PositionFinder
from tidelog.client.consumer.positions import AssignedPartition, FetchPosition
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP


class ConsumerMachine:
    """Attached to a client; `run` and `deadlines_ms` are the client's to call."""

    def __init__(self, client: Client, config: ConsumerConfig) -> None:
        self._client = client
        self._config = config
        self._partitions: dict[TopicPartition, AssignedPartition] = {}
        self._position_finder = PositionFinder(client, config)
        self._fetcher = ConsumerFetcher(client, config, self._partitions)
        self._metadata_version: int | None = None
        self._polls_given = 0
        self.on_ready: Callable[[int], None] | None = None
        """Called when `poll` has something to give, records or an error."""
        self._announced: tuple[object, ...] = ()
        client.attach(self)

    # Which partitions, and where in them

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these and no others; those that stay keep their positions."""
        wanted = dict.fromkeys(partitions)
        for name in [each for each in self._partitions if each not in wanted]:
            del self._partitions[name]
            self._fetcher.fetched.pop(name, None)
        for name in wanted:
            if name not in self._partitions:
                self._partitions[name] = AssignedPartition(name)
            self._client.refresh.add_topic(name.topic)

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return tuple(self._partitions)

    def seek(
        self, partition: TopicPartition, offset: int, *, leader_epoch: int | None = None
    ) -> None:
        """Read on from here. With the leader epoch of the record before it, it is validated."""
        metadata = self._client.metadata
        if leader_epoch is not None and metadata.see_leader_epoch(partition, leader_epoch):
            self._client.refresh.request_update()
        leader = metadata.leader(partition)
        position = FetchPosition(offset=offset, offset_epoch=leader_epoch, leader=leader)
        self._of(partition).seek(position)
        self._fetcher.fetched.pop(partition, None)

    def seek_to_beginning(self, partition: TopicPartition) -> None:
        self._reset(partition, Reset.EARLIEST)

    def seek_to_end(self, partition: TopicPartition) -> None:
        self._reset(partition, Reset.LATEST)

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset to be read; None while it is being found."""
        position = self._of(partition).position
        return position.offset if position is not None else None

    def full_position(self, partition: TopicPartition) -> FetchPosition | None:
        """With the leader epochs that it was read under."""
        return self._of(partition).position

    def is_reading(self, partition: TopicPartition) -> bool:
        """Whether its position is known and valid."""
        return self._of(partition).may_fetch

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """As the last fetch said."""
        return self._of(partition).high_watermark

    def pause(self, partition: TopicPartition) -> None:
        self._of(partition).is_paused = True

    def resume(self, partition: TopicPartition) -> None:
        self._of(partition).is_paused = False

    def _reset(self, partition: TopicPartition, reset: Reset) -> None:
        self._of(partition).request_reset(reset)
        self._fetcher.fetched.pop(partition, None)

    def _of(self, partition: TopicPartition) -> AssignedPartition:
        try:
            return self._partitions[partition]
        except KeyError:
            raise ValueError(f"{partition} is not assigned to this consumer") from None

    # Records

    def poll(self, now_ms: int, *, records_max: int | None = None) -> list[ConsumerRecord]:
        """What there is, up to `max.poll.records`; ConsumerError if a program must decide."""
        self._polls_given += 1
        for partition in self._partitions.values():
            if partition.error is not None:
                raise partition.error
        limit = self._config.poll_records_max if records_max is None else records_max
        taken: list[ConsumerRecord] = []
        for name in list(self._fetcher.fetched):
            if len(taken) >= limit:
                break
            try:
                taken += self._take(name, limit - len(taken))
            except CorruptRecords as damaged:
                self._partitions[name].stuck(damaged)
                if not taken:
                    raise
                break
        return taken

    def _take(self, name: TopicPartition, limit: int) -> list[ConsumerRecord]:
        fetched = self._fetcher.fetched[name][1]
        partition = self._partitions[name]
        position = partition.position
        if partition.is_paused:
            return []
        if not partition.may_fetch or position is None or position.offset != fetched.next_offset:
            del self._fetcher.fetched[name]
            return []
        try:
            records = fetched.take(limit)
        finally:
            if fetched.is_empty:
                del self._fetcher.fetched[name]
        if fetched.next_offset > position.offset:
            partition.advance(offset=fetched.next_offset, offset_epoch=fetched.next_epoch)
        return records

    # Offsets

    def beginning_offsets(
        self,
        partitions: Iterable[TopicPartition],
        then: Callable[[LookupResult, int], None],
        *,
        now_ms: int,
    ) -> None:
        timestamps = dict.fromkeys(partitions, EARLIEST_TIMESTAMP)
        self.offsets_for_times(timestamps, then, now_ms=now_ms)

    def end_offsets(
        self,
        partitions: Iterable[TopicPartition],
        then: Callable[[LookupResult, int], None],
        *,
        now_ms: int,
    ) -> None:
        """The high watermarks; under read_committed the last stable offsets."""
        timestamps = dict.fromkeys(partitions, LATEST_TIMESTAMP)
        self.offsets_for_times(timestamps, then, now_ms=now_ms)

    def offsets_for_times(
        self,
        timestamps: dict[TopicPartition, int],
        then: Callable[[LookupResult, int], None],
        *,
        now_ms: int,
    ) -> None:
        """The first offset at or after each time; `then(result, now_ms)` gets all together."""
        ListOffsetsLookup(
            self._client,
            timestamps,
            then,
            is_read_committed=self._config.is_read_committed,
            deadline_ms=now_ms + self._config.api_timeout_ms,
        )

    def close(self, now_ms: int) -> None:
        """Ends the fetch sessions and detaches; the client stays."""
        self._fetcher.close(now_ms)
        self._partitions.clear()
        self._client.detach(self)

    # What the client calls

    def run(self, now_ms: int) -> None:
        metadata = self._client.metadata
        if self._metadata_version != metadata.version:
            self._metadata_version = metadata.version
            for partition in self._partitions.values():
                partition.on_leader(metadata.leader(partition.name))
        self._position_finder.run(self._partitions.values(), now_ms)
        self._announce(now_ms)
        self._fetcher.run(now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        return (self._position_finder.next_deadline_ms(), self._fetcher.next_deadline_ms())

    def _announce(self, now_ms: int) -> None:
        """Say it once for everything new, and again as long as the program takes some of it."""
        while self.on_ready is not None:
            ready = self._ready()
            if not ready or ready == self._announced:
                break
            self._announced = ready
            polls_given = self._polls_given
            self.on_ready(now_ms)
            if self._polls_given == polls_given:
                break
        if not self._ready():
            self._announced = ()

    def _ready(self) -> tuple[object, ...]:
        """What there is, so that it can be compared with what there was."""
        errors: list[ConsumerError] = [
            each.error for each in self._partitions.values() if each.error is not None
        ]
        records = [
            (name, fetched.next_offset)
            for name, (_, fetched) in self._fetcher.fetched.items()
            if not self._partitions[name].is_paused
        ]
        return (*errors, *records)
