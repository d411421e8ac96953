"""Each check condemns a planted lie and forgives its innocent twin."""

from __future__ import annotations

import pytest

from tidelog.judge.history import (
    CallOutcome,
    FinalLog,
    HeadDeleted,
    MediumDamaged,
    OffsetRefused,
    Operation,
    PowerLost,
    ProducerIdGiven,
    RecordsRead,
    Seen,
    Sequence32,
    Survives,
    TopicRequested,
    TopicsListed,
    Wrote,
)
from tidelog.judge.lone_broker.checks import CHECKS, judge

P = "orders/0"


def wrote(
    at: int,
    payloads: str,
    base_offset: int | None = None,
    *,
    outcome: CallOutcome = CallOutcome.OK,
    survives: Survives = Survives.KILL,
    invoked: int | None = None,
) -> Wrote:
    return Wrote(
        at_us=at,
        invoked_us=at - 1 if invoked is None else invoked,
        partition=P,
        payloads=tuple(payloads),
        outcome=outcome,
        base_offset=base_offset,
        survives=survives,
    )


def read(
    at: int,
    start_offset: int,
    payloads: str,
    *,
    first: int | None = None,
    high_watermark: int = 99,
    log_start_offset: int = 0,
    corrupt_offset: int | None = None,
) -> RecordsRead:
    base = start_offset if first is None else first
    records = tuple(
        Seen(base + index, payload) for index, payload in enumerate(payloads) if payload != "_"
    )
    return RecordsRead(
        at_us=at,
        invoked_us=at - 1,
        partition=P,
        start_offset=start_offset,
        records=records,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        corrupt_offset=corrupt_offset,
    )


def final(at: int, payloads: str, *, log_start_offset: int = 0) -> FinalLog:
    records = tuple(
        Seen(log_start_offset + index, each) for index, each in enumerate(payloads) if each != "_"
    )
    return FinalLog(
        at_us=at,
        partition=P,
        log_start_offset=log_start_offset,
        end_offset=log_start_offset + len(payloads),
        records=records,
    )


def numbered(*sequences: int) -> FinalLog:
    records = tuple(
        Seen(index, "abcdef"[index], Sequence32(500, 0, sequence))
        for index, sequence in enumerate(sequences)
    )
    return FinalLog(
        at_us=90, partition=P, log_start_offset=0, end_offset=len(records), records=records
    )


def unplugged(at: int, floor_offset: int) -> PowerLost:
    return PowerLost(at_us=at, partition=P, floor_offset=floor_offset, because="power loss")


def requested(
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


UNKNOWN, REFUSED = CallOutcome.UNKNOWN, CallOutcome.REFUSED
SAFE = Survives.POWER_LOSS

CONDEMNED: list[tuple[str, str, list[Operation]]] = [
    ("lost", "an acknowledged record is absent", [wrote(1, "a", 0), final(9, "")]),
    ("lost", "a promise does not survive", [
        wrote(1, "a", 0, survives=SAFE), unplugged(2, 0), final(9, ""),
    ]),
    ("lost", "the broker had called it safe", [wrote(1, "ab", 0), unplugged(2, 1), final(9, "")]),
    ("lost", "read after the power loss, then gone", [
        wrote(1, "a", 0), unplugged(2, 0), read(4, 0, "a"), final(9, ""),
    ]),
    ("lost", "a later survivor proves that the earlier one was kept", [
        wrote(1, "abc", 0), unplugged(2, 1), read(4, 2, "c"), final(9, "a_c"),
    ]),
    ("lost", "a survivor of two losses proves what was known between them", [
        wrote(1, "s", 0), wrote(1, "b", 2), unplugged(2, 1), read(4, 1, "a"), unplugged(6, 1),
        read(8, 2, "b"), final(9, "s_b"),
    ]),
    ("changed", "an offset holds another record", [
        wrote(1, "a", 0), wrote(2, "b", 1), read(3, 0, "ax"), final(9, "ax"),
    ]),
    ("misplaced", "a duplicate is answered with a new offset", [
        wrote(1, "a", 5), wrote(2, "b", outcome=UNKNOWN), final(9, "ba"),
    ]),
    ("duplicated", "one payload twice", [wrote(1, "a", outcome=UNKNOWN), final(9, "aa")]),
    ("refused but present", "refused, yet there", [wrote(1, "a", outcome=REFUSED), final(9, "a")]),
    ("unexpected", "never written", [read(3, 0, "z")]),
    ("gap", "a record is left out", [wrote(1, "abc", 0), read(3, 0, "a_c"), final(9, "abc")]),
    ("gap", "nothing where something is", [
        wrote(1, "a", 0), read(3, 0, "", high_watermark=1), final(9, "a"),
    ]),
    ("gap", "out of range, yet there", [
        wrote(1, "a", 0),
        OffsetRefused(at_us=3, invoked_us=2, partition=P, start_offset=0),
        final(9, "a"),
    ]),
    ("gap", "a sound record is hidden by the damage before it", [
        wrote(1, "ab", 0),
        MediumDamaged(at_us=2, partition=P, start_offset=0, end_offset=1, may_be_cut=False),
        read(3, 1, "", corrupt_offset=0, high_watermark=2),
        final(9, "_b"),
    ]),
    ("lost", "cut because of damage, although no unclean end made anybody look there", [
        wrote(1, "ab", 0),
        MediumDamaged(at_us=2, partition=P, start_offset=0, end_offset=1, may_be_cut=False),
        final(9, ""),
    ]),
    ("corrupt", "told of damage at a sound record behind it", [
        wrote(1, "ab", 0),
        MediumDamaged(at_us=2, partition=P, start_offset=0, end_offset=1, may_be_cut=False),
        read(3, 1, "", corrupt_offset=1),
        final(9, "_b"),
    ]),
    ("corrupt", "a wrong checksum on a good medium", [
        wrote(1, "a", 0), read(3, 0, "", corrupt_offset=0), final(9, "a"),
    ]),
    ("head missing", "the log starts later by itself", [
        wrote(1, "ab", 0), final(9, "b", log_start_offset=1),
    ]),
    ("reordered", "offsets go back", [
        wrote(1, "ab", outcome=UNKNOWN),
        FinalLog(
            at_us=9, partition=P, log_start_offset=0, end_offset=2,
            records=(Seen(1, "a"), Seen(0, "b")),
        ),
    ]),
    ("reordered", "a sequence is repeated", [wrote(1, "ab", outcome=UNKNOWN), numbered(3, 3)]),
    ("producer id reused", "twice the same", [
        ProducerIdGiven(at_us=1, producer_id=7, producer_epoch=0),
        ProducerIdGiven(at_us=2, producer_id=7, producer_epoch=0),
    ]),
    ("topic forgotten", "created and not listed", [requested(1, "A"), listed(3)]),
    ("topic resurrected", "deleted and listed again", [
        requested(1, "A"), requested(3, "A", creation=False), listed(5, "A"),
    ]),
]  # fmt: skip

FORGIVEN: list[tuple[str, str, list[Operation]]] = [
    ("lost", "unknown may be absent", [wrote(1, "a", outcome=UNKNOWN), final(9, "")]),
    ("lost", "a power loss took a suffix that nobody called safe", [
        wrote(1, "abc", 0), unplugged(2, 1), final(9, "a"),
    ]),
    ("lost", "a medium broke, and everything behind it was cut", [
        wrote(1, "abc", 0, survives=SAFE),
        MediumDamaged(at_us=2, partition=P, start_offset=1, end_offset=2, may_be_cut=True),
        final(9, "a"),
    ]),
    ("lost", "the answer was under way when the plug was pulled", [
        unplugged(2, 0), wrote(3, "a", 0, invoked=1), final(9, ""),
    ]),
    ("changed", "a lost suffix is written anew", [
        wrote(1, "ab", 0), unplugged(2, 1), wrote(3, "x", 1), read(4, 0, "ax"), final(9, "ax"),
    ]),
    ("changed", "an unknown write took the place of a lost one, a known write came behind it", [
        wrote(1, "a", 0), unplugged(2, 0), wrote(3, "x", outcome=UNKNOWN), wrote(4, "y", 1),
        read(5, 0, "xy"), final(9, "xy"),
    ]),
    ("changed", "lost and replaced unseen before a second loss that others survived", [
        wrote(1, "a", 0), unplugged(2, 0), wrote(3, "x", outcome=UNKNOWN), wrote(4, "y", 1),
        unplugged(5, 0), read(6, 1, "y"), final(9, "xy"),
    ]),
    ("misplaced", "the answer names the place", [wrote(1, "a", 0), final(9, "a")]),
    ("duplicated", "an unknown write appears once", [
        wrote(1, "a", outcome=UNKNOWN), read(2, 0, "a"), read(3, 0, "a"), final(9, "a"),
    ]),
    ("refused but present", "an unknown write appears", [
        wrote(1, "a", outcome=UNKNOWN), final(9, "a"),
    ]),
    ("unexpected", "somebody wrote it", [wrote(1, "a", 0), read(3, 0, "a"), final(9, "a")]),
    ("gap", "offsets that nobody knows of may be missing", [
        wrote(1, "a", 0), wrote(2, "c", 2), read(3, 0, "a_c"),
    ]),
    ("gap", "the record is beyond the high watermark", [
        wrote(1, "a", 0), read(3, 0, "", high_watermark=0), final(9, "a"),
    ]),
    ("gap", "out of range below a deleted head", [
        wrote(1, "ab", 0),
        HeadDeleted(at_us=2, partition=P, below_offset=1),
        OffsetRefused(at_us=3, invoked_us=2, partition=P, start_offset=0),
        final(9, "b", log_start_offset=1),
    ]),
    ("gap", "out of range when it was asked, written since", [
        wrote(5, "a", 0),
        OffsetRefused(at_us=6, invoked_us=2, partition=P, start_offset=0),
        final(9, "a"),
    ]),
    ("corrupt", "the medium was damaged there", [
        wrote(1, "a", 0),
        MediumDamaged(at_us=2, partition=P, start_offset=0, end_offset=1, may_be_cut=False),
        read(3, 0, "", corrupt_offset=0),
        final(9, ""),
    ]),
    ("head missing", "nothing was durable, and only a later file survived", [
        wrote(1, "ab", 0),
        unplugged(2, 0),
        read(4, 1, "b", log_start_offset=1),
        final(9, "b", log_start_offset=1),
    ]),
    ("head missing", "retention may take what it likes", [
        wrote(1, "ab", 0),
        HeadDeleted(at_us=2, partition=P, below_offset=None),
        final(9, "b", log_start_offset=1),
    ]),
    ("reordered", "sequences may have holes after a loss", [
        wrote(1, "abc", outcome=UNKNOWN), numbered(0, 1, 5),
    ]),
    ("producer id reused", "a newer epoch of the same id", [
        ProducerIdGiven(at_us=1, producer_id=7, producer_epoch=0),
        ProducerIdGiven(at_us=2, producer_id=7, producer_epoch=1),
    ]),
    ("topic forgotten", "a deletion was asked for, nobody knows how it went", [
        requested(1, "A"), requested(3, "A", creation=False, outcome=UNKNOWN), listed(5),
    ]),
    ("topic resurrected", "the name is back under another id", [
        requested(1, "A"), requested(3, "A", creation=False), requested(5, "B"), listed(7, "B"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "history"), [pytest.param(c, h, id=f"{c}: {why}") for c, why, h in CONDEMNED]
)
def test_a_lie_is_condemned_by_its_check(check: str, history: list[Operation]) -> None:
    assert check in {anomaly.name for anomaly in judge(history)}


@pytest.mark.parametrize(
    ("check", "history"), [pytest.param(c, h, id=f"{c}: {why}") for c, why, h in FORGIVEN]
)
def test_an_innocent_history_is_forgiven_by_every_check(
    check: str, history: list[Operation]
) -> None:
    assert judge(history) == []


def test_every_check_has_both_a_lie_and_an_innocent_twin() -> None:
    assert len(CHECKS) == len({check for check, _, _ in CONDEMNED})
    assert {check for check, _, _ in CONDEMNED} == {check for check, _, _ in FORGIVEN}
