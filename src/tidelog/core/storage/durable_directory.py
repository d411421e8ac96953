"""Making a directory whose name is as durable as what will be written in it."""

from __future__ import annotations

from tidelog.core.formats import file_names
from tidelog.core.storage.disk import Disk


def make_directory(disk: Disk, path: str) -> None:
    """With its parents; every name that is new is durable when this returns.

    1. A fresh broker makes its log directory, syncs what it writes there, and acknowledges.
    2. The power fails. The directory's own name was never synced: it is gone, with everything.
    """
    made, above = [], path
    while above and not disk.is_directory(above):
        made.append(above)
        above = file_names.parent(above)
    disk.make_directory(path)
    for new in made:
        disk.sync_directory_now(file_names.parent(new))
