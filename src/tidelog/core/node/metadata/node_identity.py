"""Whose directories these are: each one says its cluster, its node and its own id.

A fresh directory is claimed at its first start, without a separate formatting step. A directory of
another node or another cluster is refused, because its records would be served as ours.

Nodes of one cluster must agree on its id before their first exchange: each request among voters
carries it, so that nodes of different clusters never elect each other. So several voters
must be given one; only a node alone may make one up.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from tidelog.core.controller.topic_ids import new_uuid
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.storage import meta_properties
from tidelog.core.storage.disk import Disk

_VERSION = "1"
_UUID_BYTES = 16


class CannotStart(TidelogError):
    """A node finds something on its disk with which it must not begin; the message says what."""


class NodeIdentity(NamedTuple):
    """The cluster that this node belongs to, and the ids of its log directories, in order."""

    cluster_id: str
    directory_ids: tuple[bytes, ...]


def claim_directories(
    disk: Disk,
    paths: Sequence[str],
    *,
    node_id: int,
    cluster_id: str | None,
    random: Random,
    is_alone: bool = True,
) -> NodeIdentity:
    """Read who we are, and write it where it is not written yet; durable on return."""
    known = {path: meta_properties.read(disk, path) for path in paths}
    for path, entries in known.items():
        if entries is not None:
            cluster_id = _agreed(path, entries, node_id=node_id, cluster_id=cluster_id)
    if cluster_id is None:
        if not is_alone:
            raise CannotStart("several voters, but no cluster.id that they share")
        cluster_id = _text(new_uuid(random))
    directory_ids = []
    for path, entries in known.items():
        directory_id = None if entries is None else _directory_id(path, entries)
        if directory_id is None:
            directory_id = new_uuid(random)
            _write(disk, path, node_id, cluster_id, directory_id)
        directory_ids.append(directory_id)
    return NodeIdentity(cluster_id, tuple(directory_ids))


def _agreed(path: str, entries: dict[str, str], *, node_id: int, cluster_id: str | None) -> str:
    if entries.get("version") != _VERSION:
        raise CannotStart(f"{path}: meta.properties has version {entries.get('version')}")
    if entries.get("node.id") != str(node_id):
        raise CannotStart(f"{path} belongs to node {entries.get('node.id')}, this is {node_id}")
    theirs = entries.get("cluster.id")
    if theirs is None:
        raise CannotStart(f"{path}: meta.properties has no cluster.id")
    if cluster_id not in (None, theirs):
        raise CannotStart(f"{path} belongs to cluster {theirs}, this is {cluster_id}")
    return theirs


def _directory_id(path: str, entries: dict[str, str]) -> bytes | None:
    """None where Kafka wrote the file before directories had ids."""
    text = entries.get("directory.id")
    if text is None:
        return None
    try:
        directory_id = urlsafe_b64decode(text + "==")
    except (ValueError, NotBase64):
        directory_id = b""
    if len(directory_id) != _UUID_BYTES:
        raise CannotStart(f"{path}: directory.id {text!r} is not an id")
    return directory_id


def _write(disk: Disk, path: str, node_id: int, cluster_id: str, directory_id: bytes) -> None:
    entries = {
        "version": _VERSION,
        "cluster.id": cluster_id,
        "node.id": str(node_id),
        "directory.id": _text(directory_id),
    }
    meta_properties.write(disk, path, entries)


def _text(uuid: bytes) -> str:
    return urlsafe_b64encode(uuid).decode("ascii").rstrip("=")
