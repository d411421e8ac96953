"""A range of one partition for programs: real sockets, and an iterator over what is in the log.

    with RangeClient({"bootstrap.servers": "localhost:9092"}) as client:
        for fetched in client.read(TopicPartition("orders", 0), start_offset=100, end_offset=900):
            decode(fetched.records, fetched.aborted)

While the program works on one piece, the next one is on its way. Ranges of one client are read one
after the other or by turns, by one thread; they share its connections and its metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidelog.client.consumer.offset_lookup import ListOffsetsLookup, LookupFailed, LookupResult
from tidelog.client.ranges.config import STALLED_MS, range_config
from tidelog.client.ranges.errors import RangeStalled
from tidelog.client.ranges.fetched_range import FetchedRange
from tidelog.client.ranges.range_fetch import RangeFetch
from tidelog.client.settings import Given
from tidelog.client.shells.closeable import Closeable
from tidelog.client.shells.loop import Loop
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP


class RangeClient(Closeable):
    """Connections and metadata for any number of ranges; settings are a consumer's."""

    def __init__(self, settings: Given, *, stalled_s: float = STALLED_MS / 1_000) -> None:
        """A range that gets nothing new for `stalled_s` raises RangeStalled."""
        self._config = range_config(settings, stalled_ms=int(stalled_s * 1_000))
        self._loop = Loop(self._config.consumer.client)

    def read(
        self, partition: TopicPartition, *, start_offset: int, end_offset: int
    ) -> Iterator[FetchedRange]:
        """Everything in the log from `start_offset` to before `end_offset`, piece by piece.

        Raises RangeLost where records are gone, RangeRefused and RangeStalled. What the program
        leaves of the iterator is not fetched.
        """
        loop = self._loop
        machine = RangeFetch(
            loop.client,
            self._config,
            partition,
            start_offset=start_offset,
            end_offset=end_offset,
            now_ms=loop.now_ms(),
            keep=_as_they_are,
        )
        try:
            while not machine.is_complete:
                taken = self._wait_for(machine)
                if machine.next_offset < end_offset:
                    loop.turn(0)  # the next fetch leaves before the program works on this one
                yield taken
        finally:
            machine.close()

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """Where the partition begins now, and where it ends for a reader with these settings."""
        now_ms = self._loop.now_ms()
        results: dict[int, LookupResult] = {}

        def note(timestamp: int, result: LookupResult, now_ms: int) -> None:
            results[timestamp] = result

        for timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP):
            ListOffsetsLookup(
                self._loop.client,
                {partition: timestamp},
                partial(note, timestamp),
                is_read_committed=self._config.consumer.is_read_committed,
                deadline_ms=now_ms + self._config.stalled_ms,
            )
        wait_ms: int | None = 0
        while len(results) < 2:
            self._loop.turn(wait_ms)
            wait_ms = None
        first, end = (_offset(results[each], partition) for each in sorted(results))
        return first, end

    def _wait_for(self, machine: RangeFetch) -> FetchedRange:
        machine.wait_begins(self._loop.now_ms())
        wait_ms: int | None = 0  # the first turn lets leave what has just been asked for
        while machine.fetched is None:
            if machine.error is not None:
                raise machine.error
            self._loop.turn(wait_ms)
            wait_ms = None
        taken = machine.take(self._loop.now_ms())
        assert taken is not None
        return taken

    def close(self) -> None:
        self._loop.close()


def _offset(result: LookupResult, partition: TopicPartition) -> int:
    if isinstance(result, LookupFailed):
        raise RangeStalled(partition, 0, result.reason)
    found = result[partition]
    assert found is not None, "each end of a partition is somewhere"
    return found.offset


def _as_they_are(records: memoryview) -> memoryview:
    """The loop allocates the bytes of every answer, so they last as long as they are referenced."""
    return records
