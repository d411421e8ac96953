"""Control records: markers and leader changes round trip, and damage is refused."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer

from tests.unit.core.wire.test_messages_against_kio import assert_same_values
from tidelog.core.wire.control_records import (
    ControlType,
    EndTransactionMarker,
    KRaftVersion,
    KRaftVersionFeature,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    VoterEndpoint,
    VoterRecord,
    control_type,
    end_txn_marker,
    leader_change,
    quorum_record,
    read_end_txn_marker,
    read_leader_change,
    read_quorum_record,
)
from tidelog.core.wire.record_batch import CorruptBatch, read_header
from tidelog.core.wire.records import NewRecord, Record, build, iterate


def only(new: NewRecord) -> Record:
    (record,) = iterate(build([new], control=True))
    return record


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_how_the_transaction_ended(commit: bool) -> None:
    new = end_txn_marker(commit=commit, coordinator_epoch=6, timestamp_ms=12)
    batch = build([new], control=True, transactional=True, producer_id=4, producer_epoch=1)
    (record,) = iterate(batch)

    assert read_header(batch).is_control
    assert control_type(record) == (ControlType.COMMIT if commit else ControlType.ABORT)
    assert read_end_txn_marker(record) == EndTransactionMarker(commit, 6)
    assert read_leader_change(record) is None


def test_a_marker_has_the_bytes_of_kafka() -> None:
    new = end_txn_marker(commit=True, coordinator_epoch=3)
    assert new.key == bytes.fromhex("0000 0001")
    assert new.value == bytes.fromhex("0000 00000003")


def test_a_leader_change_round_trips() -> None:
    change = LeaderChange(1, (VoterRecord(1), VoterRecord(2)), (VoterRecord(1),))
    record = only(leader_change(change, timestamp_ms=5))

    assert read_leader_change(record) == change
    assert read_end_txn_marker(record) is None


def test_a_leader_change_has_the_bytes_that_kafka_reads() -> None:
    """Version 0: Kafka takes every leader change for one, whatever it says."""
    new = leader_change(
        LeaderChange(1, (VoterRecord(1), VoterRecord(2)), (VoterRecord(1),)), timestamp_ms=5
    )
    assert new.key == bytes.fromhex("0000 0002")
    assert new.value == bytes.fromhex("0000 00000001 03 00000001 00 00000002 00 02 00000001 00 00")


def test_a_leader_change_of_version_1_is_read() -> None:
    directory_id = bytes(range(16))
    value = bytes.fromhex("0001 00000001 02 00000001" + directory_id.hex() + "00 01 00")
    record = only(NewRecord(value, bytes.fromhex("00000002")))
    assert read_leader_change(record) == LeaderChange(1, (VoterRecord(1, directory_id),), ())


@pytest.mark.parametrize("length", range(13))
def test_a_leader_change_cut_short_is_corrupt(length: int) -> None:
    new = leader_change(LeaderChange(1, (VoterRecord(1),), ()), timestamp_ms=5)
    assert new.value is not None
    with pytest.raises(CorruptBatch):
        read_leader_change(only(new._replace(value=new.value[:length])))


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_a_control_record_needs_its_key(key: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        control_type(only(NewRecord(b"", key)))


def test_an_unknown_type_is_left_to_the_reader() -> None:
    record = only(NewRecord(b"", bytes.fromhex("0000 0063")))
    assert control_type(record) == 99
    assert read_end_txn_marker(record) is None


VOTERS = KRaftVoters(
    voters=[
        KRaftVoter(
            voter_id=3,
            voter_directory_id=bytes(range(16)),
            endpoints=[VoterEndpoint(name="CONTROLLER", host="node-3", port=50_000)],
            k_raft_version_feature=KRaftVersionFeature(max_supported_version=1),
        )
    ]
)
QUORUM_RECORDS = [
    (
        SnapshotHeader(last_contained_log_timestamp=77),
        ControlType.SNAPSHOT_HEADER,
        "snapshot_header_record.v0.SnapshotHeaderRecord",
    ),
    (
        SnapshotFooter(),
        ControlType.SNAPSHOT_FOOTER,
        "snapshot_footer_record.v0.SnapshotFooterRecord",
    ),
    (
        KRaftVersion(k_raft_version=1),
        ControlType.KRAFT_VERSION,
        "k_raft_version_record.v0.KRaftVersionRecord",
    ),
    (VOTERS, ControlType.KRAFT_VOTERS, "voters_record.v0.VotersRecord"),
]
KINDS: list[Any] = [type(message) for message, _, _ in QUORUM_RECORDS]


@pytest.mark.parametrize(("message", "kind", "_name"), QUORUM_RECORDS)
def test_a_record_of_the_quorum_round_trips_and_is_taken_for_no_other(
    message: Any, kind: ControlType, _name: str
) -> None:
    record = only(quorum_record(message, timestamp_ms=5))

    assert control_type(record) == kind
    for cls in KINDS:
        assert read_quorum_record(cls, record) == (message if cls is type(message) else None)
    assert read_leader_change(record) is None


@pytest.mark.parametrize(("message", "_kind", "name"), QUORUM_RECORDS)
def test_a_record_of_the_quorum_has_the_bytes_that_kio_gives_it(
    message: Any, _kind: ControlType, name: str
) -> None:
    module, _, class_name = name.rpartition(".")
    theirs = getattr(import_module(f"kio.schema.{module}.data"), class_name)
    value = quorum_record(message, timestamp_ms=5).value
    assert value is not None

    parsed, size = entity_reader(theirs)(value, 0)
    assert size == len(value)
    assert_same_values(message, parsed, 0)
    buffer = io.BytesIO()
    entity_writer(theirs)(buffer, parsed)
    assert buffer.getvalue() == value


@pytest.mark.parametrize(("message", "_kind", "_name"), QUORUM_RECORDS)
def test_a_record_of_the_quorum_cut_short_or_from_the_future_is_corrupt(
    message: Any, _kind: ControlType, _name: str
) -> None:
    new = quorum_record(message, timestamp_ms=5)
    assert new.value is not None

    for size in range(len(new.value)):
        with pytest.raises(CorruptBatch):
            read_quorum_record(type(message), only(new._replace(value=new.value[:size])))
    future = b"\x00\x01" + new.value[2:]
    with pytest.raises(CorruptBatch, match="version 1"):
        read_quorum_record(type(message), only(new._replace(value=future)))
