"""Each check of a history of transactions condemns a planted lie and forgives its innocent twin."""

from __future__ import annotations

import pytest

from tidelog.judge.history import CallOutcome
from tidelog.judge.transactions.transaction_checks import TRANSACTION_CHECKS, judge_transactions
from tidelog.judge.transactions.transaction_history import (
    FencesAtRest,
    GroupOffsetRead,
    OffsetsInTransaction,
    ProducerBegan,
    ProducerIdentity,
    ReadRecord,
    TransactionalRead,
    TransactionalWrite,
    TransactionBegan,
    TransactionEnd,
    TransactionOperation,
    Transformed,
)

P, Q, G = "orders-0", "orders-1", "billing"
OK, UNKNOWN, REFUSED = CallOutcome.OK, CallOutcome.UNKNOWN, CallOutcome.REFUSED

Case = tuple[str, str, list[TransactionOperation]]


def began(at: int, producer: str, producer_epoch: int, *, producer_id: int = 7) -> ProducerBegan:
    return ProducerBegan(
        at_us=at, invoked_us=at - 1, producer=producer, transactional_id="tx",
        identity=ProducerIdentity(producer_id, producer_epoch),
    )  # fmt: skip


def opened(
    at: int, transaction: str, *, producer: str = "one", producer_epoch: int = 0
) -> TransactionBegan:
    return TransactionBegan(
        at_us=at, producer=producer, transactional_id="tx", transaction=transaction,
        identity=ProducerIdentity(7, producer_epoch),
    )  # fmt: skip


def wrote(
    at: int,
    transaction: str,
    payload: str,
    offset: int | None,
    *,
    partition: str = P,
    outcome: CallOutcome = OK,
) -> TransactionalWrite:
    return TransactionalWrite(
        at_us=at, invoked_us=at - 1, transaction=transaction, partition=partition,
        payloads=(payload,), outcome=outcome, base_offset=offset,
    )  # fmt: skip


def ended(
    at: int, transaction: str, *, commit: bool = True, outcome: CallOutcome = OK
) -> TransactionEnd:
    return TransactionEnd(
        at_us=at, invoked_us=at - 1, transaction=transaction, is_commit=commit, outcome=outcome
    )


def read(
    at: int,
    *records: tuple[int, str],
    passed: int,
    partition: str = P,
    reader: str = "r",
    committed: bool = True,
    stable: int = 100,
    leader_epoch: int | None = 0,
    invoked: int | None = None,
    start: int = 0,
) -> TransactionalRead:
    return TransactionalRead(
        at_us=at, invoked_us=at - 1 if invoked is None else invoked, reader=reader,
        partition=partition, is_committed=committed, start_offset=start, next_offset=passed,
        records=tuple(ReadRecord(*each) for each in records), last_stable_offset=stable,
        high_watermark=100, leader_epoch=leader_epoch,
    )  # fmt: skip


def group_offset(at: int, transaction: str | None) -> GroupOffsetRead:
    return GroupOffsetRead(
        at_us=at, invoked_us=at - 1, reader="r", group=G, partition=P,
        offset=None if transaction is None else 5, transaction=transaction,
    )  # fmt: skip


def offsets(at: int, transaction: str, *, outcome: CallOutcome = OK) -> OffsetsInTransaction:
    return OffsetsInTransaction(
        at_us=at, invoked_us=at - 1, transaction=transaction, group=G, partition=P, offset=5,
        outcome=outcome,
    )  # fmt: skip


def rest(stable: int, high_watermark: int) -> FencesAtRest:
    return FencesAtRest(
        at_us=90, node=1, partition=P, last_stable_offset=stable, high_watermark=high_watermark
    )


TRANSFORMED = Transformed(at_us=95, group=G, source=(P,), target=(Q,), prefix="bill.")

T, U = "tx#1", "tx#2"
COMMITTED: list[TransactionOperation] = [
    opened(1, T), wrote(3, T, "a", 0), wrote(5, T, "b", 0, partition=Q), ended(9, T)
]  # fmt: skip
ABORTED: list[TransactionOperation] = [opened(1, T), wrote(3, T, "a", 0), ended(9, T, commit=False)]
LEFT_OPEN: list[TransactionOperation] = [opened(1, T), wrote(3, T, "a", 0)]
IN_DOUBT: list[TransactionOperation] = [
    opened(1, T), wrote(3, T, "a", 0), wrote(5, T, "b", 0, partition=Q),
    ended(9, T, outcome=UNKNOWN),
]  # fmt: skip
TAKEN_OVER: list[TransactionOperation] = [opened(1, T), began(20, "two", 1)]

LIES: list[Case] = [
    (
        "half of a committed transaction is passed over",
        "hidden",
        [*COMMITTED, read(20, (0, "a"), passed=2), read(21, passed=2, partition=Q)],
    ),
    (
        "a read_uncommitted reader does not get it either",
        "hidden",
        [*COMMITTED, read(20, passed=2, committed=False)],
    ),
    ("the same record at two offsets", "duplicated",
     [*COMMITTED, read(20, (0, "a"), (1, "a"), passed=2)]),
    ("a record of nobody", "unexpected", [*COMMITTED, read(20, (0, "a"), (1, "z"), passed=2)]),
    ("a record of another partition", "unexpected",
     [*COMMITTED, read(20, (0, "a"), (1, "b"), passed=2)]),
    ("an aborted record", "aborted but read", [*ABORTED, read(20, (0, "a"), passed=2)]),
    ("of a transaction that nobody ended", "aborted but read",
     [*LEFT_OPEN, read(20, (0, "a"), passed=2)]),
    (
        "of a commit that was refused",
        "aborted but read",
        [*LEFT_OPEN, ended(9, T, outcome=REFUSED), read(20, (0, "a"), passed=2)],
    ),
    (
        "one partition counts, the other does not",
        "torn transaction",
        [*IN_DOUBT, read(20, (0, "a"), passed=2), read(21, passed=2, partition=Q)],
    ),
    (
        "one reader gets it, another does not",
        "torn transaction",
        [*IN_DOUBT, read(20, (0, "a"), passed=2), read(21, passed=2, reader="s")],
    ),
    (
        "a record before its commit was asked",
        "undecided read",
        [*LEFT_OPEN, read(5, (0, "a"), passed=1), ended(9, T)],
    ),
    ("beyond the last stable offset", "undecided read", [read(5, passed=4, stable=3)]),
    (
        "the last stable offset goes back",
        "last stable offset back",
        [read(5, passed=0, stable=8), read(9, passed=0, stable=6)],
    ),
    ("readers stop before the end", "hanging transaction", [rest(7, 9)]),
    ("a zombie commits", "zombie write", [*TAKEN_OVER, ended(30, T)]),
    ("a zombie writes", "zombie write", [*TAKEN_OVER, wrote(30, T, "a", 0)]),
    ("a zombie commits offsets", "zombie write", [*TAKEN_OVER, offsets(30, T)]),
    (
        "a zombie of another producer id",
        "zombie write",
        [opened(1, T), began(20, "two", 0, producer_id=9), ended(30, T)],
    ),
    ("offsets of an aborted transaction", "aborted offsets",
     [*ABORTED, offsets(5, T), group_offset(20, T)]),
    ("offsets before the commit", "aborted offsets",
     [opened(1, T), offsets(5, T), group_offset(6, T), ended(9, T)]),
    (
        "two results",
        "transformed twice",
        [
            *LEFT_OPEN, ended(9, T), opened(30, U), wrote(31, U, "bill.a@1", 1, partition=Q),
            wrote(33, U, "bill.a@2", 2, partition=Q), ended(40, U), read(50, (0, "a"), passed=2),
            read(51, (1, "bill.a@1"), (2, "bill.a@2"), passed=3, partition=Q), TRANSFORMED,
        ],
    ),
    ("no result", "not transformed",
     [opened(1, T), wrote(3, T, "a", 0), ended(9, T), read(20, (0, "a"), passed=2), TRANSFORMED]),
    (
        "a result of an aborted record",
        "transformed from nothing",
        [
            *ABORTED, opened(30, U), wrote(31, U, "bill.a@1", 1, partition=Q), ended(40, U),
            read(50, passed=2), read(51, (1, "bill.a@1"), passed=3, partition=Q), TRANSFORMED,
        ],
    ),
]  # fmt: skip

INNOCENT: list[tuple[str, list[TransactionOperation]]] = [
    ("seen whole", [*COMMITTED, read(20, (0, "a"), passed=2),
                    read(21, (0, "b"), passed=2, partition=Q)]),
    ("not there yet", [*COMMITTED, read(20, passed=0), read(21, passed=0, partition=Q)]),
    ("an aborted record is left out", [*ABORTED, read(20, passed=2)]),
    ("a read_uncommitted reader gets an aborted one",
     [*ABORTED, read(20, (0, "a"), passed=2, committed=False)]),
    ("in doubt, and committed", [*IN_DOUBT, read(20, (0, "a"), passed=2),
                                 read(21, (0, "b"), passed=2, partition=Q)]),
    ("in doubt, and aborted", [*IN_DOUBT, read(20, passed=2), read(21, passed=2, partition=Q)]),
    ("refused at first, then committed",
     [*LEFT_OPEN, ended(9, T, outcome=REFUSED), ended(12, T), read(20, (0, "a"), passed=2)]),
    ("in doubt, then refused: it may be committed",
     [*IN_DOUBT, ended(12, T, outcome=REFUSED), read(20, (0, "a"), passed=2),
      read(21, (0, "b"), passed=2, partition=Q)]),
    ("a write of unknown fate in an aborted transaction",
     [opened(1, T), wrote(3, T, "a", None, outcome=UNKNOWN), ended(9, T, commit=False),
      read(20, passed=2)]),
    ("read as soon as the commit is asked",
     [*LEFT_OPEN, ended(20, T, outcome=UNKNOWN), read(19, (0, "a"), passed=1)]),
    ("a new leader knows less",
     [read(5, passed=0, stable=8), read(9, passed=0, stable=6, leader_epoch=1)]),
    ("asked before the other was answered",
     [read(5, passed=0, stable=8), read(9, passed=0, stable=6, invoked=4)]),
    ("a follower knows less", [read(5, passed=0, stable=8),
                               read(9, passed=0, stable=6, leader_epoch=None)]),
    ("all is stable", [rest(9, 9)]),
    ("a zombie is refused", [*TAKEN_OVER, ended(30, T, outcome=REFUSED)]),
    ("a zombie's request was sent before", [*TAKEN_OVER, ended(20, T)]),
    ("the successor's own transaction",
     [*TAKEN_OVER, opened(21, U, producer="two", producer_epoch=1), ended(30, U)]),
    ("a successor of another id",
     [opened(1, T), began(20, "two", 1), opened(25, U, producer="two", producer_epoch=2),
      ended(30, U)]),
    ("offsets of a committed transaction", [opened(1, T), offsets(5, T), ended(9, T),
                                            group_offset(20, T)]),
    ("offsets in doubt", [opened(1, T), offsets(5, T), ended(9, T, outcome=UNKNOWN),
                          group_offset(20, T)]),
    ("no offsets", [group_offset(20, None)]),
    (
        "one result for each, the aborted try apart",
        [
            opened(1, T), wrote(3, T, "a", 0), ended(9, T),
            opened(30, U), wrote(31, U, "bill.a@1", 0, partition=Q), ended(35, U, commit=False),
            opened(36, "tx#3"), wrote(37, "tx#3", "bill.a@2", 2, partition=Q), ended(40, "tx#3"),
            read(50, (0, "a"), passed=2), read(51, (2, "bill.a@2"), passed=4, partition=Q),
            TRANSFORMED,
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("about", "name", "history"), LIES, ids=[lie[0] for lie in LIES])
def test_a_lie_is_condemned_under_its_name(
    about: str, name: str, history: list[TransactionOperation]
) -> None:
    found = judge_transactions(history)

    assert [anomaly.name for anomaly in found] == [name], about
    assert found[0].text


@pytest.mark.parametrize(("about", "history"), INNOCENT, ids=[case[0] for case in INNOCENT])
def test_the_innocent_are_forgiven(about: str, history: list[TransactionOperation]) -> None:
    assert judge_transactions(history) == [], about


def test_every_check_condemns_something() -> None:
    condemning = {check for check in TRANSACTION_CHECKS for _, _, lie in LIES if check(lie)}

    assert condemning == set(TRANSACTION_CHECKS)
