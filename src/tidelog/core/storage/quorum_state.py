"""`quorum-state`: what a voter of the metadata quorum must remember. Kafka's file, one JSON object.

It lies beside the segments of the metadata log. A vote is a promise, so the file is durable, with
its name, before `write` returns.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from tidelog.core.formats import file_names
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.storage.disk import Disk
from tidelog.core.storage.durable_directory import make_directory

_VERSION = 1
_NO_NODE = -1
_NO_DIRECTORY = "A" * 22
"""Sixteen zero bytes in Kafka's url-safe base64."""


class CorruptQuorumState(TidelogError):
    """Not a file that was written to its end by us or by Kafka."""


class RememberedElection(NamedTuple):
    """The newest epoch that this node knows of, its leader, and this node's vote in it."""

    leader_epoch: int
    leader_id: int | None
    voted_id: int | None


def read(disk: Disk, directory: str) -> RememberedElection | None:
    """None: nothing is remembered, because there was never an election."""
    path = f"{directory}/{file_names.QUORUM_STATE}"
    if not disk.exists(path):
        return None
    file = disk.open(path)
    try:
        entries = json.loads(file.read(0, file.size_bytes))
        leader_epoch = int(entries["leaderEpoch"])
        leader_id = _optional(int(entries["leaderId"]))
        voted_id = _optional(int(entries["votedId"]))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptQuorumState(f"{path}: {error!r}") from None
    return RememberedElection(leader_epoch, leader_id, voted_id)


def write(
    disk: Disk, directory: str, election: RememberedElection, *, durably: bool = True
) -> None:
    """Replace what was remembered. Without `durably` the log itself must know enough."""
    if durably and not disk.is_directory(directory):
        make_directory(disk, directory)
    elif not durably:
        disk.make_directory(directory)
    path = f"{directory}/{file_names.QUORUM_STATE}"
    temporary = path + file_names.TEMPORARY
    if disk.exists(temporary):
        disk.open(temporary).remove()
    file = disk.open(temporary)
    file.append(_encode(election))
    if durably:
        file.sync_now()
    file.rename(path)
    if durably:
        disk.sync_directory_now(directory)
    file.close()


def _encode(election: RememberedElection) -> bytes:
    entries = {
        "leaderId": _NO_NODE if election.leader_id is None else election.leader_id,
        "leaderEpoch": election.leader_epoch,
        "votedId": _NO_NODE if election.voted_id is None else election.voted_id,
        "votedDirectoryId": _NO_DIRECTORY,
        "data_version": _VERSION,
    }
    return json.dumps(entries, separators=(",", ":")).encode("ascii")


def _optional(number: int) -> int | None:
    return None if number == _NO_NODE else number
