"""The small files beside the segments: topic id, leader epochs, producer snapshots.

All are written without waiting. What a power loss can do to them is recognised when they are read:
the checkpoint by its count, the snapshot by its checksum.
"""

from __future__ import annotations

from tidelog.core.formats import file_names
from tidelog.core.formats.properties import format_partition_metadata, parse_partition_metadata
from tidelog.core.model.ids import TopicId
from tidelog.core.storage.disk import Disk, File, SyncListener


def read_topic_id(disk: Disk, directory: str) -> TopicId | None:
    """None if the file is missing or torn."""
    path = f"{directory}/{file_names.PARTITION_METADATA}"
    if not disk.exists(path):
        return None
    file = disk.open(path)
    return parse_partition_metadata(file.read(0, file.size_bytes))


def write_topic_id(disk: Disk, directory: str, topic_id: TopicId) -> File:
    """For whoever finds the directory later: which topic of that name it belonged to."""
    path = f"{directory}/{file_names.PARTITION_METADATA}"
    if read_topic_id(disk, directory) == topic_id:
        return disk.open(path)
    return replace(disk, path, format_partition_metadata(topic_id), None)


def replace(disk: Disk, path: str, content: bytes, owner: SyncListener | None) -> File:
    """A new file under this name: never a mixture of the old content and the new."""
    temporary = path + file_names.TEMPORARY
    if disk.exists(temporary):
        disk.open(temporary).remove()
    file = disk.open(temporary)
    file.append(content)
    file.owner = owner
    file.rename(path)
    return file
