"""`meta.properties`: whose directory this is. Kafka's format: lines of `key=value`."""

from __future__ import annotations

from tidelog.core.storage import file_names
from tidelog.core.storage.disk import Disk
from tidelog.core.storage.durable_directory import make_directory


def read(disk: Disk, directory: str) -> dict[str, str] | None:
    """The entries; None if there is no such file yet."""
    path = f"{directory}/{file_names.META_PROPERTIES}"
    if not disk.exists(path):
        return None
    file = disk.open(path)
    text = file.read(0, file.size_bytes).decode("utf-8", "replace")
    entries = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            entries[key.strip()] = value.strip()
    return entries


def write(disk: Disk, directory: str, entries: dict[str, str]) -> None:
    """Durable when this returns."""
    make_directory(disk, directory)
    path = f"{directory}/{file_names.META_PROPERTIES}"
    temporary = path + file_names.TEMPORARY
    if disk.exists(temporary):
        disk.open(temporary).remove()
    file = disk.open(temporary)
    lines = ["#", *(f"{key}={value}" for key, value in sorted(entries.items()))]
    file.append("".join(f"{line}\n" for line in lines).encode("utf-8"))
    file.sync_now()
    file.rename(path)
    disk.sync_directory_now(directory)
