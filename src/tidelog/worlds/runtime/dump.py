"""What the files of a log directory say, read offline and without changing a byte.

`dump` yields one plain dictionary per fact, in the order of the files; each has a `kind`. Printing
them for people is the command line's affair. Bytes that are no batch, a torn checkpoint or a cut
index are facts like others: a tool for bad days must not fall over what it is to show.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from struct import Struct
from typing import BinaryIO

from tidelog.core.formats import file_names
from tidelog.core.formats.producer_snapshots import CorruptSnapshot
from tidelog.core.formats.text_checkpoints import CorruptCheckpoint, decode_offsets
from tidelog.core.metadata.records import decode_record
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.storage import offset_index, time_index
from tidelog.core.storage.epochs import LeaderEpochs
from tidelog.core.storage.producer_snapshot import decode as decode_snapshot
from tidelog.core.wire import records
from tidelog.core.wire.compression import Compression
from tidelog.core.wire.control_records import ControlType, control_type
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    crc_is_valid,
    read_whole_header,
)

Fact = dict[str, object]

_CHECKPOINTS = (
    file_names.RECOVERY_POINTS,
    file_names.HIGH_WATERMARKS,
    file_names.LOG_STARTS,
)
_METADATA_TOPIC = "__cluster_metadata"
_ABORTED = Struct(">hqqqq")


class NothingToDump(TidelogError):
    """The path is not something that a broker wrote."""


def dump(path: str, *, with_records: bool = False) -> Iterator[Fact]:
    """Everything about a log directory, a partition's directory, or one file of it."""
    if not os.path.exists(path):
        raise NothingToDump(f"{path}: there is no such file or directory")
    if not os.path.isdir(path):
        if _reader_of(os.path.basename(path)) is None:
            raise NothingToDump(f"{path}: is no file of a log directory")
        return _file(path, with_records=with_records)
    names = sorted(os.listdir(path))
    if any(name.endswith(file_names.LOG) for name in names) or _is_partition(path):
        return _partition(path, with_records=with_records)
    if file_names.META_PROPERTIES in names or any(name in names for name in _CHECKPOINTS):
        return _log_directory(path, with_records=with_records)
    if any(_is_partition(os.path.join(path, name)) for name in names):
        return _log_directory(path, with_records=with_records)
    raise NothingToDump(
        f"{path}: is neither a log directory (with {file_names.META_PROPERTIES}) "
        f"nor a partition's directory (like orders-0)"
    )


def _log_directory(path: str, *, with_records: bool) -> Iterator[Fact]:
    names = sorted(os.listdir(path))
    partitions = [name for name in names if _is_partition(os.path.join(path, name))]
    yield {
        "kind": "log directory",
        "path": path,
        "partitions": len(partitions),
        "stopped_cleanly": file_names.CLEAN_SHUTDOWN in names,
    }
    for name in (file_names.META_PROPERTIES, *_CHECKPOINTS):
        if name in names:
            yield from _file(os.path.join(path, name), with_records=with_records)
    for name in partitions:
        yield from _partition(os.path.join(path, name), with_records=with_records)


def _partition(path: str, *, with_records: bool) -> Iterator[Fact]:
    names = sorted(os.listdir(path))
    yield {
        "kind": "partition",
        "path": path,
        "name": os.path.basename(os.path.abspath(path)),
        "topic_id": _topic_id(path),
        "files": len(names),
    }
    first = [name for name in names if name == file_names.LEADER_EPOCHS]
    for name in first + [name for name in names if name not in first]:
        if _reader_of(name) is not None:
            yield from _file(os.path.join(path, name), with_records=with_records)


def _file(path: str, *, with_records: bool) -> Iterator[Fact]:
    reader = _reader_of(os.path.basename(path))
    assert reader is not None
    try:
        yield from reader(path, with_records)
    except OSError as error:
        yield {"kind": "unreadable", "path": path, "reason": error.strerror or str(error)}


def _reader_of(name: str) -> Callable[[str, bool], Iterator[Fact]] | None:
    if name in _CHECKPOINTS:
        return _checkpoint
    if name == file_names.META_PROPERTIES:
        return _properties
    if name == file_names.LEADER_EPOCHS:
        return _leader_epochs
    for suffix, reader in _READERS.items():
        if file_names.offset_of(name, suffix) is not None:
            return reader
    return None


def _is_partition(path: str) -> bool:
    name = os.path.basename(os.path.abspath(path))
    return os.path.isdir(path) and file_names.topic_partition_of(name) is not None


# Small files.


def _properties(path: str, with_records: bool) -> Iterator[Fact]:
    lines = _content(path).decode("utf-8", "replace").splitlines()
    pairs = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]
    yield {"kind": "properties", "path": path, "entries": dict(pairs)}


def _checkpoint(path: str, with_records: bool) -> Iterator[Fact]:
    try:
        offsets = decode_offsets(_content(path))
    except CorruptCheckpoint as error:
        yield {"kind": "unreadable", "path": path, "reason": str(error)}
        return
    entries = {str(partition): offset for partition, offset in sorted(offsets.items())}
    yield {"kind": "checkpoint", "path": path, "entries": entries}


def _leader_epochs(path: str, with_records: bool) -> Iterator[Fact]:
    try:
        epochs = LeaderEpochs.decode(_content(path))
    except CorruptCheckpoint as error:
        yield {"kind": "unreadable", "path": path, "reason": str(error)}
        return
    entries = [
        {"leader_epoch": leader_epoch, "start_offset": start_offset}
        for leader_epoch, start_offset in epochs.entries
    ]
    yield {"kind": "leader epochs", "path": path, "entries": entries}


def _snapshot(path: str, with_records: bool) -> Iterator[Fact]:
    try:
        producers = decode_snapshot(_content(path))
    except CorruptSnapshot as error:
        yield {"kind": "unreadable", "path": path, "reason": str(error)}
        return
    entries = []
    for producer in producers:
        batch = producer.batches[-1] if producer.batches else None
        entries.append(
            {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "next_sequence": batch.next_sequence if batch else None,
                "base_offset": batch.base_offset if batch else None,
                "end_offset": batch.end_offset if batch else None,
                "timestamp_ms": producer.timestamp_ms,
                "coordinator_epoch": producer.coordinator_epoch,
                "transaction_first_offset": producer.transaction_first_offset,
            }
        )
    at_offset = file_names.offset_of(os.path.basename(path), file_names.SNAPSHOT)
    yield {"kind": "producers", "path": path, "at_offset": at_offset, "entries": entries}


# Indexes. Kafka fills an active segment's index with zeros beforehand: those are no entries.


def _offset_index(path: str, with_records: bool) -> Iterator[Fact]:
    base_offset = _base_offset(path, file_names.OFFSET_INDEX)
    data, cut_bytes = _whole_entries(path, offset_index.ENTRY_BYTES)
    entries = [
        {"offset": base_offset + key, "position": position}
        for key, position in offset_index.ENTRY.iter_unpack(data)
        if key or position
    ]
    yield {"kind": "offset index", "path": path, "entries": entries, "cut_bytes": cut_bytes}


def _time_index(path: str, with_records: bool) -> Iterator[Fact]:
    base_offset = _base_offset(path, file_names.TIME_INDEX)
    data, cut_bytes = _whole_entries(path, time_index.ENTRY_BYTES)
    entries = [
        {"timestamp_ms": timestamp_ms, "offset": base_offset + key}
        for timestamp_ms, key in time_index.ENTRY.iter_unpack(data)
        if timestamp_ms or key
    ]
    yield {"kind": "time index", "path": path, "entries": entries, "cut_bytes": cut_bytes}


def _aborted_index(path: str, with_records: bool) -> Iterator[Fact]:
    data, cut_bytes = _whole_entries(path, _ABORTED.size)
    entries = [
        {
            "producer_id": producer_id,
            "first_offset": first_offset,
            "end_offset": marker_offset + 1,
            "last_stable_offset": stable_offset,
        }
        for _, producer_id, first_offset, marker_offset, stable_offset in _ABORTED.iter_unpack(data)
    ]
    yield {"kind": "aborted transactions", "path": path, "entries": entries, "cut_bytes": cut_bytes}


def _whole_entries(path: str, entry_bytes: int) -> tuple[bytes, int]:
    data = _content(path)
    cut_bytes = len(data) % entry_bytes
    return data[: len(data) - cut_bytes], cut_bytes


# Segments.


def _segment(path: str, with_records: bool) -> Iterator[Fact]:
    size_bytes = os.path.getsize(path)
    base_offset = _base_offset(path, file_names.LOG)
    yield {"kind": "segment", "path": path, "base_offset": base_offset, "size_bytes": size_bytes}
    topic = os.path.basename(os.path.dirname(os.path.abspath(path))).rpartition("-")[0]
    with open(path, "rb") as file:
        position = 0
        while position < size_bytes:
            try:
                header, batch = _read_batch(file, position, size_bytes)
            except CorruptBatch as error:
                yield {
                    "kind": "no batch",
                    "position": position,
                    "size_bytes": size_bytes - position,
                    "reason": str(error),
                }
                return
            yield _batch(position, header, batch)
            if with_records:
                yield from _records(batch, header, is_metadata=topic == _METADATA_TOPIC)
            position += header.size_bytes


def _read_batch(file: BinaryIO, position: int, size_bytes: int) -> tuple[BatchHeader, bytes]:
    file.seek(position)
    start = file.read(HEADER_BYTES)
    claimed_bytes = int.from_bytes(start[8:12], "big", signed=True)
    if 0 < claimed_bytes <= size_bytes - position:
        start += file.read(claimed_bytes + 12 - len(start))
    return read_whole_header(start), start


def _batch(position: int, header: BatchHeader, batch: bytes) -> Fact:
    return {
        "kind": "batch",
        "position": position,
        "size_bytes": header.size_bytes,
        "base_offset": header.base_offset,
        "end_offset": header.end_offset,
        "records": header.records_count,
        "leader_epoch": _or_none(header.leader_epoch),
        "compression": _codec(header.compression),
        "base_timestamp_ms": _or_none(header.base_timestamp_ms),
        "max_timestamp_ms": _or_none(header.max_timestamp_ms),
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "producer_id": _or_none(header.producer_id),
        "producer_epoch": _or_none(header.producer_epoch),
        "base_sequence": _or_none(header.base_sequence),
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "crc": f"{header.crc:08x}",
        "crc_is_valid": crc_is_valid(batch, 0, header),
    }


def _records(batch: bytes, header: BatchHeader, *, is_metadata: bool) -> Iterator[Fact]:
    try:
        for record in records.iterate(batch):
            fact: Fact = {
                "kind": "record",
                "offset": record.offset,
                "timestamp_ms": _or_none(record.timestamp_ms),
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [[name, _text(value)] for name, value in record.headers],
            }
            if header.is_control:
                fact["control"] = _control(record)
            elif is_metadata:
                fact["metadata"] = _metadata(record.value)
            yield fact
    except CorruptBatch as error:
        yield {"kind": "no records", "base_offset": header.base_offset, "reason": str(error)}


def _control(record: records.Record) -> str:
    kind = control_type(record)
    return ControlType(kind).name if kind in list(ControlType) else f"type {kind}"


def _metadata(value: bytes | None) -> str:
    try:
        return repr(decode_record(value))
    except (MalformedMessage, ValueError) as error:
        return f"not readable: {error}"


def _text(data: bytes | None) -> str | None:
    """Text where it is text, otherwise hexadecimal with 0x before it."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + data.hex()
    return text if text.isprintable() else "0x" + data.hex()


def _codec(number: int) -> str:
    return Compression(number).name.lower() if number in list(Compression) else f"codec {number}"


def _or_none(number: int) -> int | None:
    return None if number == -1 else number


def _base_offset(path: str, suffix: str) -> int:
    base_offset = file_names.offset_of(os.path.basename(path), suffix)
    assert base_offset is not None
    return base_offset


def _topic_id(directory: str) -> str | None:
    try:
        lines = _content(os.path.join(directory, file_names.PARTITION_METADATA)).splitlines()
    except OSError:
        return None
    texts = [line.partition(b": ")[2] for line in lines if line.startswith(b"topic_id: ")]
    return texts[0].decode("ascii", "replace") if texts else None


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


_READERS: dict[str, Callable[[str, bool], Iterator[Fact]]] = {
    file_names.LOG: _segment,
    file_names.OFFSET_INDEX: _offset_index,
    file_names.TIME_INDEX: _time_index,
    file_names.ABORTED_INDEX: _aborted_index,
    file_names.SNAPSHOT: _snapshot,
}
