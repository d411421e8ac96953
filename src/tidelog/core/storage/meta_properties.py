"""`meta.properties`: whose directory this is. Kafka's format: lines of `key=value`."""

from __future__ import annotations

from tidelog.core.formats import file_names
from tidelog.core.formats.properties import format_properties, parse_properties
from tidelog.core.storage.disk import Disk
from tidelog.core.storage.durable_directory import make_directory


def read(disk: Disk, directory: str) -> dict[str, str] | None:
    """The entries; None if there is no such file yet."""
    path = f"{directory}/{file_names.META_PROPERTIES}"
    if not disk.exists(path):
        return None
    file = disk.open(path)
    return parse_properties(file.read(0, file.size_bytes))


def write(disk: Disk, directory: str, entries: dict[str, str]) -> None:
    """Durable when this returns."""
    make_directory(disk, directory)
    path = f"{directory}/{file_names.META_PROPERTIES}"
    temporary = path + file_names.TEMPORARY
    if disk.exists(temporary):
        disk.open(temporary).remove()
    file = disk.open(temporary)
    file.append(format_properties(entries))
    file.sync_now()
    file.rename(path)
    disk.sync_directory_now(directory)
