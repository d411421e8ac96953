"""Open transactions hold back the last stable offset; aborted ones are indexed for readers."""

from __future__ import annotations

import pytest

from tests.unit.core.storage.given import NOW_MS, Rig, append, batch
from tidelog.core.model.errors import ErrorCode
from tidelog.core.storage.log import Appended, Log
from tidelog.core.wire.control_records import end_txn_marker
from tidelog.core.wire.records import build


class Transactions:
    """Transactional producers, named by their ids."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.sequences: dict[int, int] = {}

    def write(self, producer_id: int, count: int = 1) -> Appended:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + count
        view = batch(
            count, producer_id=producer_id, producer_epoch=0, sequence=sequence, transactional=True
        )
        return append(self.log, view)

    def end(self, producer_id: int, *, commit: bool) -> Appended:
        view = build(
            [end_txn_marker(commit=commit, coordinator_epoch=0, timestamp_ms=NOW_MS)],
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
        result = self.log.append_as_leader(
            memoryview(view), leader_epoch=0, wall_ms=NOW_MS, from_client=False
        )
        self.log.check()
        return result

    def replicate(self) -> None:
        self.log.advance_high_watermark(self.log.log_end_offset)
        self.log.check()


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
def transactions(rig: Rig) -> Transactions:
    return Transactions(rig.open())


def test_an_open_transaction_holds_the_last_stable_offset(transactions: Transactions) -> None:
    log = transactions.log
    append(log)
    transactions.write(1, 2)
    append(log)
    transactions.replicate()
    assert (log.last_stable_offset, log.high_watermark) == (1, 4)

    transactions.end(1, commit=True)
    assert log.last_stable_offset == 1, "the marker is not replicated yet"
    transactions.replicate()
    assert log.last_stable_offset == 5


def test_the_oldest_open_transaction_counts(transactions: Transactions) -> None:
    log = transactions.log
    transactions.write(1)
    transactions.write(2)
    transactions.write(3)
    transactions.end(2, commit=True)
    transactions.end(1, commit=False)
    transactions.replicate()

    assert log.last_stable_offset == 2
    transactions.end(3, commit=True)
    transactions.replicate()
    assert log.last_stable_offset == log.log_end_offset


def test_aborted_transactions_are_told_to_whoever_reads_their_records(
    transactions: Transactions,
) -> None:
    log = transactions.log
    transactions.write(1, 2)  # 0, 1
    transactions.write(2)  # 2
    transactions.end(1, commit=False)  # 3
    append(log)  # 4
    transactions.end(2, commit=False)  # 5
    append(log)  # 6
    transactions.write(1)  # 7
    transactions.end(1, commit=True)  # 8
    transactions.replicate()

    assert log.aborted_transactions(0, 9) == [(1, 0), (2, 2)]
    assert log.aborted_transactions(4, 9) == [(2, 2)]
    assert log.aborted_transactions(0, 2) == [(1, 0)]
    assert log.aborted_transactions(6, 9) == []


def test_a_transaction_over_several_segments_is_found_from_its_first_record(
    transactions: Transactions,
) -> None:
    log = transactions.log
    transactions.write(1)
    for _ in range(30):
        append(log)
    transactions.end(1, commit=False)
    transactions.replicate()
    assert len(log.files.segments) > 2

    assert log.aborted_transactions(0, 5) == [(1, 0)]
    assert log.aborted_transactions(31, 32) == [(1, 0)]


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(rig: Rig, transactions: Transactions, clean: bool) -> None:
    log = transactions.log
    transactions.write(1)
    for _ in range(20):
        append(log)
    transactions.write(2)
    transactions.end(1, commit=False)
    if clean:
        log.close_cleanly()
    rig.kill()

    log = rig.open(clean=clean)
    transactions.log = log
    transactions.replicate()

    assert log.aborted_transactions(0, 30) == [(1, 0)]
    assert log.last_stable_offset == 21
    transactions.end(2, commit=False)
    transactions.replicate()
    assert log.aborted_transactions(0, 30) == [(1, 0), (2, 21)]
    assert log.last_stable_offset == log.log_end_offset


def test_a_truncation_reopens_the_transaction_whose_marker_it_cut(
    transactions: Transactions,
) -> None:
    log = transactions.log
    transactions.write(1)
    append(log)
    marker = transactions.end(1, commit=False).base_offset
    assert marker == 2

    log.truncate_to(2)
    log.check()

    assert log.aborted_transactions(0, 9) == []
    transactions.replicate()
    assert log.last_stable_offset == 0


def test_a_plain_batch_inside_a_transaction_is_refused(transactions: Transactions) -> None:
    transactions.write(1)

    plain = batch(producer_id=1, producer_epoch=0, sequence=1)

    assert append(transactions.log, plain).error == ErrorCode.INVALID_TXN_STATE


def test_a_marker_without_a_transaction_changes_nothing_for_readers(
    transactions: Transactions,
) -> None:
    assert transactions.end(5, commit=False).error == 0
    transactions.replicate()

    assert transactions.log.aborted_transactions(0, 9) == []
    assert transactions.log.last_stable_offset == 1


def test_an_open_transaction_keeps_its_idle_producer(transactions: Transactions) -> None:
    transactions.write(1)

    assert transactions.log.expire_producers(NOW_MS + 10**12) == 0


def test_a_follower_indexes_aborted_transactions_too(transactions: Transactions) -> None:
    transactions.write(1)
    transactions.end(1, commit=False)
    piece = transactions.log.read(0, bytes_max=10**6, end_offset=2)
    assert piece is not None
    follower = Rig().open()

    view = memoryview(piece.file.read(piece.position, piece.size_bytes))
    follower.append_as_follower(view, wall_ms=NOW_MS)

    assert follower.aborted_transactions(0, 2) == [(1, 0)]
