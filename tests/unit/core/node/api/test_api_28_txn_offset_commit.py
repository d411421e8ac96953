"""TxnOffsetCommit: a group's offsets count when the transaction commits."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.transaction_broker import TransactionBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_28_txn_offset_commit as api

UNKNOWN = (-1, ErrorCode.NONE)
UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


@pytest.mark.scenario("D4-F4")
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", api.VERSIONS)
def test_offsets_wait_for_the_marker(version: int, commit: bool) -> None:
    broker = TransactionBroker()
    producer = broker.producer()
    end_version = 5 if version >= 5 else 4
    if version < 5:
        assert broker.add_offsets(producer) == ErrorCode.NONE

    assert broker.commit_offset(producer, 7, version=version) == ErrorCode.NONE
    assert broker.fetch_offset() == UNKNOWN
    assert broker.fetch_offset(require_stable=True) == UNSTABLE
    assert broker.end(producer, commit=commit, version=end_version).error_code == ErrorCode.NONE

    assert broker.fetch_offset(require_stable=True) == ((7, 0) if commit else UNKNOWN)


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_a_group_that_was_not_added_commits_nothing(version: int, code: ErrorCode) -> None:
    broker = TransactionBroker()

    assert broker.commit_offset(broker.producer(), 7, version=version) == code
    assert broker.fetch_offset(require_stable=True) == UNKNOWN


def test_a_zombie_commits_nothing() -> None:
    broker = TransactionBroker()
    zombie = broker.producer()
    broker.add_offsets(zombie)
    assert broker.commit_offset(zombie, 7) == ErrorCode.NONE
    broker.producer()

    assert broker.commit_offset(zombie, 8) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert broker.fetch_offset(require_stable=True) == UNKNOWN


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "nothing"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ({"generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "nobody", "generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_what_is_refused_as_in_a_plain_commit(
    fields: dict[str, str | int], code: ErrorCode
) -> None:
    broker = TransactionBroker()
    producer = broker.producer()
    broker.add_offsets(producer)

    assert broker.commit_offset(producer, 7, **fields) == code  # type: ignore[arg-type]
