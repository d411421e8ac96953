"""What a snapshot of the metadata holds: a header, the records that rebuild an image, a footer.

The same batches as in the log, with offsets of their own that mean nothing outside. Without its
footer a snapshot is not whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import MetadataRecord, decode_record, encode_record
from tidelog.core.node.metadata.metadata_records import MetadataUnreadable
from tidelog.core.quorum.values import LogPosition
from tidelog.core.wire.control_records import (
    ControlType,
    SnapshotFooter,
    SnapshotHeader,
    control_type,
    quorum_record,
)
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.record_batch import CorruptBatch, batches, crc_is_valid
from tidelog.core.wire.records import NewRecord, build, iterate

RECORDS_PER_BATCH = 500


def snapshot_of(image: ClusterImage, position: LogPosition, *, timestamp_ms: int) -> bytearray:
    """`timestamp_ms` is that of the newest record that the snapshot stands for."""
    header = SnapshotHeader(version=0, last_contained_log_timestamp=timestamp_ms)
    content = bytearray()
    next_offset = 0

    def add(records: list[NewRecord], *, control: bool = False) -> None:
        nonlocal next_offset
        content.extend(
            build(
                records,
                base_offset=next_offset,
                leader_epoch=position.quorum_epoch,
                control=control,
            )
        )
        next_offset += len(records)

    add([quorum_record(header, timestamp_ms=timestamp_ms)], control=True)
    records = image.records()
    while portion := list(islice(records, RECORDS_PER_BATCH)):
        add([NewRecord(value=encode_record(each), timestamp_ms=timestamp_ms) for each in portion])
    add([quorum_record(SnapshotFooter(version=0), timestamp_ms=timestamp_ms)], control=True)
    return content


def image_of(content: memoryview) -> ClusterImage:
    """Raises MetadataUnreadable for anything that is not a whole snapshot."""
    image = ClusterImage()
    for record in _records(content):
        image.apply(record)
    return image


def _records(content: memoryview) -> Iterator[MetadataRecord]:
    kinds: list[int] = []
    end = 0
    try:
        for position, header in batches(content):
            if not crc_is_valid(content, position, header):
                raise MetadataUnreadable(f"a snapshot is damaged at byte {position}")
            end = position + header.size_bytes
            for record in iterate(content, position):
                if header.is_control:
                    kinds.append(control_type(record))
                else:
                    yield decode_record(record.value)
    except (CorruptBatch, MalformedMessage) as error:
        raise MetadataUnreadable(f"a snapshot is damaged: {error}") from error
    is_whole = (
        end == len(content)
        and kinds[:1] == [ControlType.SNAPSHOT_HEADER]
        and kinds[-1:] == [ControlType.SNAPSHOT_FOOTER]
    )
    if not is_whole:
        raise MetadataUnreadable("a snapshot is not whole")
