"""EndTxn by protocol, state, epoch and outcome: Kafka's table, cell by cell."""

from __future__ import annotations

import pytest

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.limits import EPOCH_PER_TRANSACTION
from tidelog.core.transactions.transaction_metadata import CLASSIC, TransactionMetadata
from tidelog.core.transactions.transaction_rules import judge_end
from tidelog.core.transactions.transaction_state import NEXT, TransactionStatus, become

S = TransactionStatus
PRODUCER_ID, PRODUCER_EPOCH = 7, 5
FENCED = ErrorCode.PRODUCER_FENCED.name
WRONG = ErrorCode.INVALID_TXN_STATE.name


def metadata(status: TransactionStatus) -> TransactionMetadata:
    return TransactionMetadata(
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
        timeout_ms=1,
        status=status,
        update_wall_ms=0,
    )


def verdict(status: TransactionStatus, version: int, *, epoch_behind: int, is_commit: bool) -> str:
    caller = ProducerIdAndEpoch(PRODUCER_ID, PRODUCER_EPOCH - epoch_behind)
    found = judge_end(metadata(status), caller, is_commit=is_commit, client_version=version)
    if found.error is not ErrorCode.NONE:
        return found.error.name
    return ("decides empty" if found.is_empty else "decides") if found.decides else "repeats"


@pytest.mark.parametrize(
    ("status", "abort_retried", "abort", "commit_retried", "commit"),
    [
        (S.EMPTY, FENCED, "decides empty", FENCED, WRONG),
        (S.ONGOING, FENCED, "decides", FENCED, "decides"),
        (S.COMPLETE_ABORT, "repeats", "decides empty", WRONG, WRONG),
        (S.COMPLETE_COMMIT, WRONG, "decides empty", "repeats", WRONG),
    ],
)
def test_with_an_epoch_per_transaction(
    status: TransactionStatus, abort_retried: str, abort: str, commit_retried: str, commit: str
) -> None:
    found = [
        verdict(status, EPOCH_PER_TRANSACTION, epoch_behind=behind, is_commit=is_commit)
        for is_commit in (False, True)
        for behind in (1, 0)
    ]
    assert found == [abort_retried, abort, commit_retried, commit]


@pytest.mark.parametrize(
    ("status", "abort", "commit"),
    [
        (S.EMPTY, WRONG, WRONG),
        (S.ONGOING, "decides", "decides"),
        (S.COMPLETE_ABORT, "repeats", WRONG),
        (S.COMPLETE_COMMIT, WRONG, "repeats"),
    ],
)
def test_in_the_classic_protocol(status: TransactionStatus, abort: str, commit: str) -> None:
    for is_commit, expected in ((False, abort), (True, commit)):
        assert verdict(status, CLASSIC, epoch_behind=0, is_commit=is_commit) == expected
        assert verdict(status, CLASSIC, epoch_behind=1, is_commit=is_commit) == FENCED


@pytest.mark.parametrize("version", [CLASSIC, EPOCH_PER_TRANSACTION])
def test_a_stranger_and_a_later_epoch_are_refused(version: int) -> None:
    known = metadata(S.ONGOING)
    stranger, later = ProducerIdAndEpoch(8, 5), ProducerIdAndEpoch(PRODUCER_ID, 6)

    def error(found: TransactionMetadata | None, caller: ProducerIdAndEpoch) -> ErrorCode:
        return judge_end(found, caller, is_commit=True, client_version=version).error

    assert error(None, later) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error(known, stranger) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error(known, later) is ErrorCode.PRODUCER_FENCED


def test_a_decision_has_no_way_back() -> None:
    assert NEXT[S.PREPARE_COMMIT] == {S.COMPLETE_COMMIT}
    assert NEXT[S.PREPARE_ABORT] == {S.COMPLETE_ABORT}
    with pytest.raises(AssertionError, match="PrepareCommit may not become CompleteAbort"):
        become(S.PREPARE_COMMIT, S.COMPLETE_ABORT)
