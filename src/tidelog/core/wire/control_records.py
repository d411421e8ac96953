"""Control records: what brokers write between the records of users.

A control batch holds records whose key is a version and a type. The end of a transaction stands in
the logs of users. The others stand in the metadata log and its snapshots: the change of leader that
opens an epoch, the first and last record of a snapshot, the quorum's version and its voters.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple, TypeVar

from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.records import NewRecord, Record
from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
    uuid,
)


class ControlType(IntEnum):
    """What a control record says. Readers skip the types that they do not know."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """How a producer's transaction ended, as the coordinator of that epoch decided."""

    commit: bool
    coordinator_epoch: int


class VoterRecord(NamedTuple):
    """A member of the metadata quorum and the directory that holds its log."""

    id: int
    directory_id: bytes = bytes(16)


class LeaderChange(NamedTuple):
    """The first record of a leader's epoch in the metadata log."""

    leader: int
    voters: tuple[VoterRecord, ...]
    granting_voters: tuple[VoterRecord, ...]


class SnapshotHeader(Message, versions="0", flexible_from=0):
    """The first record of a snapshot: how old the newest record is that it stands for."""

    version: int = int16()
    last_contained_log_timestamp: int = int64()


class SnapshotFooter(Message, versions="0", flexible_from=0):
    """The last record of a snapshot: without it the snapshot is unfinished."""

    version: int = int16()


class KRaftVersion(Message, versions="0", flexible_from=0):
    """The version of the quorum's own protocol: 0 for voters from settings, 1 for voters from the
    log."""

    version: int = int16()
    k_raft_version: int = int16()


class VoterEndpoint(Struct):
    """One of a voter's listeners."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class KRaftVersionFeature(Struct):
    """The versions of the quorum's protocol that a voter can speak, both ends included."""

    min_supported_version: int = int16()
    max_supported_version: int = int16()


class KRaftVoter(Struct):
    """A member of the quorum, with the ways to reach it."""

    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    endpoints: list[VoterEndpoint] = array(VoterEndpoint)
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature)


class KRaftVoters(Message, versions="0", flexible_from=0):
    """All voters from this record on."""

    version: int = int16()
    voters: list[KRaftVoter] = array(KRaftVoter)


_KEY = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")
_LEADER_CHANGE = struct.Struct(">hi")
_LEADER_CHANGE_VERSION = 1
"""The newest that is read. Kafka's own reader takes every leader change for version 0, whatever the
record says, so version 0 is what is written."""
_VOTER_ID = struct.Struct(">i")
_DIRECTORY_ID_BYTES = 16


def control_type(record: Record) -> int:
    """The type in a control record's key: a ControlType, or a number of a future one."""
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptBatch("a control record needs a key of four bytes")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptBatch(f"control record key version {version}")
    return int(kind)


def end_txn_marker(*, commit: bool, coordinator_epoch: int, timestamp_ms: int = -1) -> NewRecord:
    """For a batch built with `control` and `transactional`."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return NewRecord(
        key=_KEY.pack(0, kind), value=_MARKER.pack(0, coordinator_epoch), timestamp_ms=timestamp_ms
    )


def read_end_txn_marker(record: Record) -> EndTransactionMarker | None:
    """None for a control record of another type."""
    kind = control_type(record)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _MARKER.size:
        raise CorruptBatch("an end-of-transaction marker is cut short")
    version, coordinator_epoch = _MARKER.unpack_from(record.value)
    if version < 0:
        raise CorruptBatch(f"end-of-transaction marker version {version}")
    return EndTransactionMarker(kind == ControlType.COMMIT, coordinator_epoch)


def leader_change(change: LeaderChange, *, timestamp_ms: int) -> NewRecord:
    """For a batch built with `control`; the voters' directories are not written (version 0)."""
    value = bytearray(_LEADER_CHANGE.pack(0, change.leader))
    for voters in (change.voters, change.granting_voters):
        assert len(voters) < 127, "the count must fit one byte of a varint"
        value.append(len(voters) + 1)
        for voter in voters:
            value += _VOTER_ID.pack(voter.id) + b"\x00"
    value.append(0)  # no tagged fields
    return NewRecord(
        key=_KEY.pack(0, ControlType.LEADER_CHANGE), value=bytes(value), timestamp_ms=timestamp_ms
    )


def read_leader_change(record: Record) -> LeaderChange | None:
    """None for a control record of another type. Reads Kafka's versions 0 and 1."""
    if control_type(record) != ControlType.LEADER_CHANGE:
        return None
    value = record.value or b""
    try:
        version, leader = _LEADER_CHANGE.unpack_from(value)
        if not 0 <= version <= _LEADER_CHANGE_VERSION:
            raise CorruptBatch(f"leader change version {version}")
        voters, position = _read_voters(value, _LEADER_CHANGE.size, with_directory=version > 0)
        granting, position = _read_voters(value, position, with_directory=version > 0)
    except (IndexError, struct.error) as error:
        raise CorruptBatch(f"a leader change is cut short: {error}") from None
    return LeaderChange(leader, voters, granting)


def _read_voters(
    value: bytes, position: int, *, with_directory: bool
) -> tuple[tuple[VoterRecord, ...], int]:
    count = value[position] - 1
    position += 1
    if not 0 <= count < 127:
        raise CorruptBatch(f"a leader change with {count} voters")
    voters = []
    for _ in range(count):
        (voter_id,) = _VOTER_ID.unpack_from(value, position)
        position += _VOTER_ID.size
        directory_id = bytes(_DIRECTORY_ID_BYTES)
        if with_directory:
            directory_id = value[position : position + _DIRECTORY_ID_BYTES]
            position += _DIRECTORY_ID_BYTES
        if value[position] != 0:
            raise CorruptBatch("a voter with tagged fields")
        position += 1
        voters.append(VoterRecord(voter_id, directory_id))
    return tuple(voters), position


QuorumRecord = SnapshotHeader | SnapshotFooter | KRaftVersion | KRaftVoters
Q = TypeVar("Q", SnapshotHeader, SnapshotFooter, KRaftVersion, KRaftVoters)

_QUORUM_TYPES: dict[type[QuorumRecord], ControlType] = {
    SnapshotHeader: ControlType.SNAPSHOT_HEADER,
    SnapshotFooter: ControlType.SNAPSHOT_FOOTER,
    KRaftVersion: ControlType.KRAFT_VERSION,
    KRaftVoters: ControlType.KRAFT_VOTERS,
}


def quorum_record(message: QuorumRecord, *, timestamp_ms: int) -> NewRecord:
    """For a batch built with `control`."""
    key = _KEY.pack(0, _QUORUM_TYPES[type(message)])
    return NewRecord(key=key, value=encode(message, 0), timestamp_ms=timestamp_ms)


def read_quorum_record(cls: type[Q], record: Record) -> Q | None:
    """None for a control record of another type."""
    if control_type(record) != _QUORUM_TYPES[cls]:
        return None
    try:
        message = decode(cls, memoryview(record.value or b""), 0)
    except MalformedMessage as error:
        raise CorruptBatch(f"a control record is damaged: {error}") from None
    if message.version != 0:
        raise CorruptBatch(f"{cls.__name__} version {message.version}")
    return message
