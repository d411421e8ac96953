"""Each check of a history condemns a planted lie and forgives its innocent twin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.judge.histories import (
    ACKS_1,
    CLEAN,
    LAST_KNOWN,
    REFUSED,
    UNCLEAN,
    UNKNOWN,
    P,
    committed,
    damaged,
    elected,
    end,
    final,
    lost_tail,
    moved,
    read,
    wrote,
)
from tidelog.judge.excuses import BatchesForgotten, Excuse, Retries
from tidelog.judge.history import (
    CallOutcome,
    FinalLog,
    HeadDeleted,
    Operation,
    ProducerIdGiven,
    Seen,
    Sequence32,
    TopicRequested,
    TopicsListed,
)
from tidelog.judge.history_checks import CHECKS, judge

FORGOTTEN = BatchesForgotten(at_us=1, partition=P, broker_id=1)

Case = tuple[str, str, list[Operation], list[Excuse]]


def topic(
    at: int, topic_id: str, *, creation: bool = True, outcome: CallOutcome = CallOutcome.OK
) -> TopicRequested:
    return TopicRequested(
        at_us=at,
        invoked_us=at - 1,
        topic="orders",
        is_creation=creation,
        outcome=outcome,
        topic_id=topic_id,
    )


def listed(at: int, *topic_ids: str) -> TopicsListed:
    topics = tuple(("orders", topic_id) for topic_id in topic_ids)
    return TopicsListed(at_us=at, invoked_us=at - 1, topics=topics)


def deleted(at: int, below_offset: int | None) -> HeadDeleted:
    return HeadDeleted(at_us=at, partition=P, below_offset=below_offset)


def given(producer_id: int) -> ProducerIdGiven:
    return ProducerIdGiven(at_us=producer_id, producer_id=producer_id, producer_epoch=0)


def with_sequences(*sequences: int, payloads: str = "abcdef", later_from: int = 99) -> FinalLog:
    """Numbered records; from `later_from` on they are of the next producer epoch."""
    records = tuple(
        Seen(index, payloads[index], Sequence32(500, int(index >= later_from), sequence))
        for index, sequence in enumerate(sequences)
    )
    return FinalLog(
        at_us=90, partition=P, log_start_offset=0, end_offset=len(records), records=records
    )


CONDEMNED: list[Case] = [
    ("lost", "acknowledged by all, absent", [wrote(1, "a", 0), final(9, "")], []),
    ("lost", "acknowledged without an offset, absent", [wrote(1, "a"), final(9, "")], []),
    ("lost", "a clean election takes nothing that was committed", [
        wrote(1, "a", 0), final(9, ""),
    ], [elected(2, CLEAN, kept=0)]),
    ("lost", "the unclean leader held it", [
        wrote(1, "ab", 0), final(9, "b"),
    ], [elected(2, UNCLEAN, kept=1)]),
    ("lost", "the last known leader comes back with its whole log", [
        wrote(1, "a", 0), final(9, ""),
    ], [elected(2, LAST_KNOWN, kept=0)]),
    ("lost", "another replica than the last known leader lost its tail", [
        wrote(1, "a", 0), final(9, ""),
    ], [lost_tail(2, broker=3, floor=0), elected(3, LAST_KNOWN, kept=0, leader=1)]),
    ("lost", "the last known leader had synced it", [
        wrote(1, "ab", 0), final(9, ""),
    ], [lost_tail(2, broker=1, floor=1), elected(3, LAST_KNOWN, kept=0, leader=1)]),
    ("lost", "the last known leader had recovered its tail before", [
        wrote(1, "ab", 0), final(9, ""),
    ], [
        lost_tail(2, broker=1, floor=0, until=3), elected(4, LAST_KNOWN, kept=0, leader=1),
    ]),
    ("lost", "acks=1, and the leader never changed", [
        wrote(1, "a", 0, acks=ACKS_1), final(9, ""),
    ], []),
    ("lost", "acks=1, the new leader held it", [
        wrote(1, "ab", 0, acks=ACKS_1), final(9, "b"),
    ], [elected(2, CLEAN, kept=1)]),
    ("lost", "acks=1, but a reader had it", [
        wrote(1, "a", 0, acks=ACKS_1), read(3, 0, "a"), final(9, ""),
    ], [elected(4, CLEAN, kept=0)]),
    ("lost", "acks=1, and the leader that is elected again had lost nothing", [
        wrote(1, "a", 0, acks=ACKS_1), final(9, ""),
    ], [elected(3, LAST_KNOWN, kept=0, predecessor=1), lost_tail(2, broker=1, floor=1)]),
    ("lost", "acks=1, written after the leader had lost its tail", [
        wrote(5, "a", 0, acks=ACKS_1), final(9, ""),
    ], [lost_tail(2, broker=1, floor=0), elected(6, LAST_KNOWN, kept=0, predecessor=1)]),
    ("lost", "the unclean election came before the write", [
        wrote(5, "a", 0), final(9, ""),
    ], [elected(2, UNCLEAN, kept=0)]),
    ("read then lost", "read, then absent", [
        wrote(1, "a", outcome=UNKNOWN), read(3, 0, "a"), final(9, ""),
    ], []),
    ("read then lost", "two readers disagree", [
        wrote(1, "ab", outcome=UNKNOWN), read(3, 0, "a"), read(5, 0, "b"),
    ], [elected(4, CLEAN, kept=0)]),
    ("read then lost", "replaced after a clean election", [
        wrote(1, "ab", outcome=UNKNOWN), read(3, 0, "a"), final(9, "b"),
    ], [elected(4, CLEAN, kept=0)]),
    ("duplicated", "one payload twice", [wrote(1, "a", outcome=UNKNOWN), final(9, "aa")], []),
    ("duplicated", "under a new producer epoch, and nobody forgot anything", [
        wrote(1, "ab", 0), with_sequences(0, 1, 0, payloads="abb", later_from=2),
    ], []),
    ("duplicated", "somebody forgot, but only after its outcome was known", [
        wrote(1, "ab", 0), with_sequences(0, 1, 0, payloads="abb", later_from=2),
    ], [replace(FORGOTTEN, at_us=2)]),
    ("duplicated", "somebody had forgotten before it was written", [
        wrote(4, "ab", 0), with_sequences(0, 1, 0, payloads="abb", later_from=2),
    ], [FORGOTTEN]),
    ("duplicated", "somebody had forgotten another batch, whose outcome was known before", [
        wrote(2, "a", 0, invoked=0), wrote(9, "b", 2, invoked=4),
        with_sequences(0, 1, 0, payloads="abb", later_from=2),
    ], [FORGOTTEN]),
    ("reordered", "somebody had forgotten before it was written", [
        wrote(4, "a", 1, order=1), wrote(5, "b", outcome=UNKNOWN, order=2),
        with_sequences(0, 0, payloads="ba", later_from=1),
    ], [FORGOTTEN]),
    ("duplicated", "somebody forgot, but the producer epoch is the same", [
        wrote(1, "ab", 0), with_sequences(0, 1, 2, payloads="abb"),
    ], [FORGOTTEN]),
    ("reordered", "somebody forgot, but the producer epoch is the same", [
        wrote(1, "a", 1, order=1), wrote(2, "b", 0, order=2),
        with_sequences(0, 1, payloads="ba"),
    ], [FORGOTTEN]),
    ("reordered", "two writes stand the wrong way round", [
        wrote(1, "a", 1, order=1), wrote(2, "b", 0, order=2), final(9, "ba"),
    ], []),
    ("reordered", "a sequence is repeated", [
        wrote(1, "ab", outcome=UNKNOWN), with_sequences(3, 3),
    ], []),
    ("reordered", "offsets go back", [
        wrote(1, "ab", outcome=UNKNOWN),
        replace(final(9, "ab"), records=(Seen(1, "a"), Seen(0, "b"))),
    ], []),
    ("gap", "a reader was led past a record", [
        wrote(1, "abc", 0), read(3, 0, "a"), read(4, 1, "c", first=2), final(9, "abc"),
    ], []),
    ("gap", "a record left out of one answer", [
        wrote(1, "abc", 0), read(3, 0, "a_c"), final(9, "abc"),
    ], []),
    ("gap", "a seek is obeyed", [
        wrote(1, "abc", 0), moved(2, 0), read(3, 0, "c", first=2), final(9, "abc"),
    ], []),
    ("stale", "answered by a leader that the reader knew to be deposed", [
        read(3, 0, "", known=6, served=5),
    ], []),
    ("stale", "the end of an earlier leadership for one who knows better", [
        end(3, 0, leader_epoch=5, known=6),
    ], []),
    ("stale", "a new leader tells an old end", [
        wrote(1, "a", 0), end(3, 0, leader_epoch=6), final(9, "a", leader_epoch=5),
    ], []),
    ("stale", "the successor was elected after the answer to the write", [
        wrote(1, "a", 0), end(5, 0, leader_epoch=5), final(9, "a", leader_epoch=5),
    ], [elected(3, CLEAN, kept=1, leader_epoch=6)]),
    ("dirty read", "beyond the high watermark of its leader epoch", [
        wrote(1, "ab", 0), committed(2, 1, leader_epoch=5),
        read(3, 0, "ab", leader_epoch=5), committed(4, 2, leader_epoch=5), final(9, "ab"),
    ], []),
    ("dirty read", "only a later leader has committed so much", [
        wrote(1, "ab", 0), committed(2, 1, leader_epoch=5), committed(2, 2, leader_epoch=6),
        read(3, 0, "ab", leader_epoch=5, served=5), final(9, "ab"),
    ], []),
    ("dirty read", "an unclean leader's record where its predecessor had committed another", [
        wrote(1, "ab", 0), committed(2, 2, leader_epoch=5), committed(4, 1, leader_epoch=6),
        wrote(5, "c", outcome=UNKNOWN), read(6, 1, "c", leader_epoch=6), final(9, "ac"),
    ], [elected(3, UNCLEAN, kept=1)]),
    ("dirty read", "the answer itself names a lower high watermark", [
        wrote(1, "ab", 0), read(3, 0, "ab", high_watermark=1), final(9, "ab"),
    ], []),
    ("dirty read", "an end beyond the high watermark", [
        wrote(1, "ab", 0), committed(2, 1, leader_epoch=5),
        end(3, 2, leader_epoch=5), final(9, "ab", leader_epoch=6),
    ], []),
    ("non-monotonic", "an offset is given twice", [
        wrote(1, "ab", 0), read(3, 0, "ab"), read(4, 1, "b"), final(9, "ab"),
    ], []),
    ("non-monotonic", "the end goes back", [end(3, 7), end(5, 6)], []),
    ("non-monotonic", "the end goes back with a clean election", [
        end(3, 7), end(5, 6),
    ], [elected(4, CLEAN, kept=6)]),
    ("misplaced", "read elsewhere before its head was deleted", [
        wrote(1, "ab", 0), read(3, 0, "ba"), deleted(4, 2), final(9, "", log_start=2),
    ], []),
    ("misplaced", "the answer named another offset", [
        wrote(1, "a", 5), wrote(2, "b", outcome=UNKNOWN), final(9, "ba"),
    ], []),
    ("misplaced", "the unclean leader held it where it was", [
        wrote(1, "xa", 0), wrote(2, "b", outcome=UNKNOWN), final(9, "x_a"),
    ], [elected(3, UNCLEAN, kept=2)]),
    ("refused but present", "refused, yet there", [
        wrote(1, "a", outcome=REFUSED), final(9, "a"),
    ], []),
    ("unexpected", "never written", [read(3, 0, "z")], []),
    ("corrupt", "a wrong checksum", [read(3, 0, "", corrupt=0)], []),
    ("corrupt", "another batch was damaged", [read(3, 0, "", corrupt=0)], [damaged(1, 1, 3)]),
    ("corrupt", "it was damaged later", [read(3, 0, "", corrupt=0)], [damaged(4, 0, 3)]),
    ("corrupt", "it was repaired before", [read(3, 0, "", corrupt=0)], [damaged(0, 0, 3, until=1)]),
    ("head missing", "the log starts later by itself", [
        wrote(1, "ab", 0), final(9, "b", log_start=1),
    ], []),
    ("producer id reused", "twice the same", [given(7), given(7)], []),
    ("topic forgotten", "created and not listed", [topic(1, "A"), listed(3)], []),
    ("topic resurrected", "deleted and listed again", [
        topic(1, "A"), topic(3, "A", creation=False), listed(5, "A"),
    ], []),
]  # fmt: skip

FORGIVEN: list[Case] = [
    ("lost", "acknowledged without an offset, lost by an unclean election", [
        wrote(1, "a"), final(9, ""),
    ], [elected(2, UNCLEAN, kept=0)]),
    ("misplaced", "acks=1, and an election kept the first copy only", [
        wrote(1, "a", 1, acks=ACKS_1), final(9, "a"),
    ], [elected(2, CLEAN, kept=1)]),
    ("lost", "unknown may be absent", [wrote(1, "a", outcome=UNKNOWN), final(9, "")], []),
    ("lost", "an unclean election", [
        wrote(1, "ab", 0), final(9, "a"),
    ], [elected(2, UNCLEAN, kept=1)]),
    ("lost", "the last known leader lost its unsynced tail", [
        wrote(1, "ab", 0), final(9, "a"),
    ], [lost_tail(2, broker=1, floor=1), elected(3, LAST_KNOWN, kept=1, leader=1)]),
    ("lost", "acks=1, and the new leader never had it", [
        wrote(1, "ab", 0, acks=ACKS_1), final(9, "a"),
    ], [elected(2, CLEAN, kept=1)]),
    ("lost", "acks=1, and the leader lost its tail before it was elected again", [
        wrote(1, "a", 0, acks=ACKS_1), final(9, ""),
    ], [lost_tail(2, broker=1, floor=0), elected(3, LAST_KNOWN, kept=0, predecessor=1)]),
    ("lost", "acks=1, the answer crossed the election", [
        wrote(5, "a", 0, acks=ACKS_1, invoked=1), final(9, ""),
    ], [elected(2, CLEAN, kept=0)]),
    ("lost", "deleted on purpose", [
        wrote(1, "ab", 0), deleted(2, 1), final(9, "b", log_start=1),
    ], []),
    ("read then lost", "an unclean election took what was read", [
        wrote(1, "ab", outcome=UNKNOWN), read(3, 0, "a"), final(9, "b"),
    ], [elected(4, UNCLEAN, kept=0)]),
    ("read then lost", "read again and again", [
        wrote(1, "a", 0), read(3, 0, "a"), read(4, 0, "a", reader="other"), final(9, "a"),
    ], []),
    ("duplicated", "a writer without numbers sends again", [
        wrote(1, "a", outcome=UNKNOWN), final(9, "aa"),
    ], [Retries(writer="w")]),
    ("duplicated", "a leader forgot the batch, whose writer never heard of it", [
        wrote(1, "ab", outcome=UNKNOWN), with_sequences(0, 1, 0, payloads="abb", later_from=2),
    ], [replace(FORGOTTEN, at_us=5)]),
    ("duplicated", "a leader restarted and forgot the batch", [
        wrote(1, "ab", 0), with_sequences(0, 1, 0, payloads="abb", later_from=2),
    ], [FORGOTTEN]),
    ("duplicated", "a leader forgot another batch that was under way with it", [
        wrote(8, "a", 2, invoked=0), wrote(9, "b", 3, invoked=4),
        with_sequences(0, 1, 0, 1, payloads="abab", later_from=2),
    ], [FORGOTTEN]),
    ("reordered", "a leader restarted and forgot the batch", [
        wrote(1, "a", 1, order=1), wrote(2, "b", outcome=UNKNOWN, order=2),
        with_sequences(0, 0, payloads="ba", later_from=1),
    ], [FORGOTTEN]),
    ("reordered", "a writer without numbers sends again", [
        wrote(1, "a", 1, order=1), wrote(2, "b", 0, order=2), final(9, "ba"),
    ], [Retries(writer="w")]),
    ("reordered", "two writers stand as they like", [
        wrote(1, "a", 1, order=2), wrote(2, "b", 0, order=1, writer="v"), final(9, "ba"),
    ], []),
    ("gap", "holes that are in the log, too", [
        wrote(1, "a", 0), wrote(2, "c", 2), read(3, 0, "a_c"), final(9, "a_c"),
    ], []),
    ("gap", "the reader went there itself", [
        wrote(1, "abc", 0), read(3, 0, "a"), moved(4, 2), read(5, 2, "c"), final(9, "abc"),
    ], []),
    ("stale", "a deposed leader for one who does not know", [
        wrote(1, "a", 0), end(3, 0, leader_epoch=5), final(9, "a", leader_epoch=6),
    ], []),
    ("stale", "a successor acknowledged what the deposed leader wrote", [
        wrote(3, "a", 0, invoked=1), end(5, 0, leader_epoch=5), final(9, "a", leader_epoch=5),
    ], [elected(6, CLEAN, kept=1), elected(2, CLEAN, kept=1, leader_epoch=6)]),
    ("stale", "the write was answered after the question", [
        wrote(4, "a", 0), end(5, 0, leader_epoch=6, invoked=3), final(9, "a", leader_epoch=6),
    ], []),
    ("dirty read", "committed before it was read", [
        wrote(1, "ab", 0), committed(2, 2, leader_epoch=5),
        read(3, 0, "ab", leader_epoch=5, high_watermark=2), end(4, 2, leader_epoch=5),
        final(9, "ab"),
    ], []),
    ("dirty read", "a replica that has not heard of the high watermark of its new leader", [
        wrote(1, "ab", 0), committed(2, 2, leader_epoch=5), committed(3, 1, leader_epoch=6),
        read(4, 0, "ab", leader_epoch=5, served=6), final(9, "ab"),
    ], []),
    ("dirty read", "where nobody saw high watermarks", [
        wrote(1, "ab", 0), read(3, 0, "ab", leader_epoch=5), end(4, 2, leader_epoch=5),
        final(9, "ab"),
    ], []),
    ("non-monotonic", "a reader that sought reads again", [
        wrote(1, "ab", 0), read(3, 0, "ab"), moved(4, 0), read(5, 0, "a"), final(9, "ab"),
    ], []),
    ("non-monotonic", "the end goes back with an unclean election", [
        end(3, 7), end(5, 6),
    ], [elected(4, UNCLEAN, kept=6)]),
    ("non-monotonic", "two clients ask two leaders", [
        end(3, 7), end(5, 6, reader="other"),
    ], []),
    ("misplaced", "an unclean leader holds an earlier attempt elsewhere", [
        wrote(1, "a", 0), wrote(1, "x", outcome=UNKNOWN), final(9, "xa"),
    ], [elected(2, UNCLEAN, kept=0)]),
    ("misplaced", "an unknown offset promises no place", [
        wrote(1, "a", outcome=CallOutcome.OK), wrote(2, "b", 0), final(9, "ba"),
    ], []),
    ("misplaced", "the answer names the place", [wrote(1, "a", 0), final(9, "a")], []),
    ("refused but present", "an unknown write appears", [
        wrote(1, "a", outcome=UNKNOWN), final(9, "a"),
    ], []),
    ("unexpected", "somebody wrote it", [wrote(1, "a", 0), read(3, 0, "a"), final(9, "a")], []),
    ("corrupt", "a right checksum", [wrote(1, "a", 0), read(3, 0, "a")], []),
    ("corrupt", "a damaged batch", [read(3, 0, "", corrupt=1)], [damaged(1, 0, 3)]),
    ("corrupt", "repaired on its way", [read(3, 0, "", corrupt=1)], [damaged(1, 0, 3, until=2)]),
    ("head missing", "somebody deleted", [
        wrote(1, "ab", 0), deleted(2, 1), final(9, "b", log_start=1),
    ], []),
    ("head missing", "retention may take what it likes", [
        wrote(1, "ab", 0), deleted(2, None), final(9, "b", log_start=1),
    ], []),
    ("producer id reused", "two of them", [given(7), given(8)], []),
    ("producer id reused", "a newer epoch of the same id", [
        given(7), replace(given(7), producer_epoch=1),
    ], []),
    ("topic forgotten", "a deletion was asked for, nobody knows how it went", [
        topic(1, "A"), topic(3, "A", creation=False, outcome=UNKNOWN), listed(5),
    ], []),
    ("topic forgotten", "created and listed", [topic(1, "A"), listed(3, "A")], []),
    ("topic resurrected", "the name is back under another id", [
        topic(1, "A"), topic(3, "A", creation=False), topic(5, "B"), listed(7, "B"),
    ], []),
]  # fmt: skip


def parameters(cases: list[Case]) -> list[object]:
    return [pytest.param(check, h, e, id=f"{check}: {why}") for check, why, h, e in cases]


@pytest.mark.parametrize(("check", "history", "excuses"), parameters(CONDEMNED))
def test_a_lie_is_condemned_by_its_check(
    check: str, history: list[Operation], excuses: list[Excuse]
) -> None:
    assert check in {anomaly.name for anomaly in judge(history, excuses)}


@pytest.mark.parametrize(("check", "history", "excuses"), parameters(FORGIVEN))
def test_an_innocent_history_is_forgiven_by_every_check(
    check: str, history: list[Operation], excuses: list[Excuse]
) -> None:
    assert judge(history, excuses) == []


@pytest.mark.parametrize(
    ("check", "history", "excuses"),
    parameters([case for case in FORGIVEN if case[3]]),
)
def test_nothing_is_forgiven_without_its_excuse(
    check: str, history: list[Operation], excuses: list[Excuse]
) -> None:
    assert check in {anomaly.name for anomaly in judge(history)}


def test_every_check_has_both_a_lie_and_an_innocent_twin() -> None:
    assert len(CHECKS) == len({check for check, *_ in CONDEMNED})
    assert {check for check, *_ in CONDEMNED} == {check for check, *_ in FORGIVEN}
