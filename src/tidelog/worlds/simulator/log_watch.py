"""A watch over a log on a simulated disk: what is new in it, without reading through the disk port.

Reading through the node's own disk would count as one of its operations, and meet the faults that
are meant for it. So the bytes are read directly from the store.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.core.storage.log import Log
from tidelog.core.storage.producers import ProducerStates
from tidelog.core.storage.segment import Segment
from tidelog.core.wire.record_batch import CONTROL_BIT, BatchHeader, read_header
from tidelog.judge.cluster.facts import ObservedBatch, ObservedProducer
from tidelog.worlds.simulator.disk import SimFile

SEQUENCES = 2**31


class LogWatch:
    """Remembers where it stopped reading; a truncation makes it read again from there."""

    __slots__ = ("_position", "_segment", "end_offset", "log")

    def __init__(self, log: Log, start_offset: int | None = None) -> None:
        self.log = log
        self._segment: Segment | None = None
        self._position = 0
        self.end_offset = log.log_start_offset if start_offset is None else start_offset

    def rewind(self, end_offset: int) -> None:
        """Whatever comes after this offset is new."""
        self._segment = None
        self.end_offset = min(self.end_offset, end_offset)

    def new_batches(self) -> list[ObservedBatch]:
        return [_batch(header) for header, _ in self._new()]

    def new_bytes(self) -> bytes:
        """The same as they stand in the files."""
        return b"".join(data for _, data in self._new())

    def _new(self) -> Iterator[tuple[BatchHeader, bytes]]:
        segments = self.log.files.segments
        if not segments or self.end_offset >= self.log.log_end_offset:
            return
        at = len(segments) - 1
        if self._segment is None or not any(each is self._segment for each in segments):
            while at > 0 and segments[at].base_offset > self.end_offset:
                at -= 1
            self._position = 0
        else:
            while segments[at] is not self._segment:
                at -= 1
        for segment in segments[at:]:
            if segment is not segments[at]:
                self._position = 0
            self._segment = segment
            file = segment.file
            assert isinstance(file, SimFile)
            data = file.node.sound_data()
            while self._position < len(data):
                header = read_header(data, self._position)
                start, self._position = self._position, self._position + header.size_bytes
                if header.end_offset > self.end_offset:
                    self.end_offset = header.end_offset
                    yield header, bytes(data[start : self._position])


class DurableWatch:
    """Up to where the batches of a log are on its disk, whatever the log itself believes."""

    __slots__ = ("_log", "_position", "_segment", "end_offset")

    def __init__(self, log: Log) -> None:
        self._log = log
        self.rewind()

    def rewind(self) -> None:
        """The log was cut: look again from its start."""
        self._segment: Segment | None = None
        self._position = 0
        self.end_offset = 0

    def reach(self, end_offset: int) -> int:
        """Look on until this offset, or until the first byte that a power loss may take."""
        segments = self._log.files.segments
        if self._segment is None or not any(each is self._segment for each in segments):
            self._segment = None
        for segment in segments:
            if self._segment is None:
                self._segment, self._position = segment, 0
                self.end_offset = max(self.end_offset, segment.base_offset)
            if segment.base_offset < self._segment.base_offset:
                continue
            if segment is not self._segment:
                self._segment, self._position = segment, 0
            if not self._walk(segment, end_offset):
                break
        # What was deleted, or was never here, cannot be lost.
        return max(self.end_offset, self._log.log_start_offset)

    def _walk(self, segment: Segment, end_offset: int) -> bool:
        """False: it ends here."""
        file = segment.file
        assert isinstance(file, SimFile)
        data, durable, clean_bytes = file.node.data, file.node.durable, file.node.clean_bytes
        while self._position < len(data) and self.end_offset < end_offset:
            header = read_header(data, self._position)
            end = self._position + header.size_bytes
            if end > clean_bytes and data[self._position : end] != durable[self._position : end]:
                return False
            self._position = end
            self.end_offset = max(self.end_offset, header.end_offset)
        return self._position >= len(data)


def remembered(producers: ProducerStates) -> list[ObservedProducer]:
    return [
        ObservedProducer(
            producer.producer_id,
            producer.producer_epoch,
            producer.batches[-1].next_sequence,
            producer.batches[-1].end_offset,
        )
        for producer in producers.by_id.values()
        if producer.batches
    ]


def _batch(header: BatchHeader) -> ObservedBatch:
    """A marker is the coordinator's, not the producer's; offsets have no sequence."""
    has_producer = header.producer_id >= 0 and not header.attributes & CONTROL_BIT
    has_sequence = has_producer and header.base_sequence >= 0
    return ObservedBatch(
        header.base_offset,
        header.end_offset,
        header.leader_epoch,
        header.crc,
        header.producer_id if has_producer else None,
        header.producer_epoch if has_producer else 0,
        (header.base_sequence + header.records_count) % SEQUENCES if has_sequence else 0,
    )
