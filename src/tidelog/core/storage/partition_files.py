"""The small files beside the segments: topic id, leader epochs, producer snapshots.

All are written without waiting. What a power loss can do to them is recognised when they are read:
the checkpoint by its count, the snapshot by its checksum.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error

from tidelog.core.model.ids import TopicId
from tidelog.core.storage import file_names
from tidelog.core.storage.disk import Disk, File, SyncListener

_TOPIC_ID_BYTES = 16


def read_topic_id(disk: Disk, directory: str) -> TopicId | None:
    """None if the file is missing or torn."""
    path = f"{directory}/{file_names.PARTITION_METADATA}"
    if not disk.exists(path):
        return None
    file = disk.open(path)
    lines = file.read(0, file.size_bytes).split(b"\n")
    if len(lines) < 2 or lines[0] != b"version: 0" or not lines[1].startswith(b"topic_id: "):
        return None
    try:
        topic_id = urlsafe_b64decode(lines[1].removeprefix(b"topic_id: ") + b"==")
    except Base64Error:
        return None
    return TopicId(topic_id) if len(topic_id) == _TOPIC_ID_BYTES else None


def write_topic_id(disk: Disk, directory: str, topic_id: TopicId) -> File:
    """For whoever finds the directory later: which topic of that name it belonged to."""
    path = f"{directory}/{file_names.PARTITION_METADATA}"
    if read_topic_id(disk, directory) == topic_id:
        return disk.open(path)
    text = urlsafe_b64encode(topic_id).rstrip(b"=")
    return replace(disk, path, b"version: 0\ntopic_id: " + text, None)


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
