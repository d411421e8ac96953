"""Makes a batch's offsets durable before the batch is published.

Spark never syncs its checkpoint. After a power loss the topics would have batch N, and the
checkpoint nothing of it: the next batch N would have other offsets, and could not be told from a
mistake. Only files of this machine can be synced; other stores do it by themselves.
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit


def sync_offsets(checkpoint: str, batch_id: int) -> None:
    """`checkpoint` is the address of the query's checkpoint."""
    root = local_path(checkpoint)
    if root is None:
        return
    for path in (f"{root}/metadata", f"{root}/offsets/{batch_id}", f"{root}/offsets", root):
        _sync(path)


def local_path(address: str) -> str | None:
    """The path, if it is one of this machine."""
    parts = urlsplit(address)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        return None
    return unquote(parts.path)


def _sync(path: str) -> None:
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # a checkpoint on another machine, under the same name
    try:
        os.fsync(file)
    finally:
        os.close(file)
