"""The audit's verdict: histories that it condemns, and those that it forgives."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from tests.spark.audit_histories import (
    START_MS,
    Held,
    History,
    Judged,
    Sent,
    differences,
    held,
    judge,
    ok,
    run,
)
from tidelog.cli.audit.report import CLASSES
from tidelog.spark.audit.transactions import ABORTED, OPEN

THREE = [held(0, "v0"), held(1, "v1"), held(2, "v2")]
# Size: one table of histories, each with what the audit must find in it.
SENT_THREE = [ok(0, 0), ok(1, 1), ok(2, 2)]

LOST = [
    History(name="all is well", sent=SENT_THREE, held=THREE, classes={"kept": 3}),
    History(name="nothing at all", sent=[], held=[]),
    History(name="the end is gone", sent=SENT_THREE, held=THREE[:2], finds=[("lost", 2)]),
    History(
        name="another record stands there",
        sent=SENT_THREE,
        held=[*THREE[:2], held(2, "other", leader_epoch=7)],
        finds=[("lost", 2)],
        classes={"kept": 2, "lost": 1, "unexpected": 1},
    ),
    History(
        name="the same value under another key is another record",
        sent=[ok(0, 0, key=b"a")],
        held=[held(0, "v0", key=b"b")],
        finds=[("lost", 0)],
    ),
    History(
        name="null and empty are not the same",
        sent=[
            Sent(number=0, offset=0, value=None),
            Sent(number=1, offset=1, key=None, value=""),
        ],
        held=[Held(offset=0, value=""), Held(offset=1, value="", key=b"")],
        finds=[("lost", 0), ("lost", 1)],
    ),
    History(
        name="nulls are found",
        sent=[Sent(number=0, offset=0, value=None, key=None)],
        held=[Held(offset=0, value=None, key=None)],
        classes={"kept": 1},
    ),
    History(
        name="two were told of one place",
        sent=[ok(0, 0, "same"), ok(1, 0, "same", run=1)],
        held=[held(0, "same")],
        finds=[("lost", 0)],
        classes={"kept": 1, "lost": 1},
    ),
    History(
        name="retention took the head",
        sent=[ok(number, number) for number in range(5)],
        held=[held(3, "v3"), held(4, "v4")],
        start=3,
        classes={"expired": 3, "kept": 2},
    ),
    History(
        name="a hole above the head is no retention",
        sent=[ok(number, number) for number in range(4)],
        held=[held(1, "v1"), held(3, "v3")],
        start=1,
        finds=[("lost", 2)],
    ),
    History(
        name="the leader alone has it",
        sent=SENT_THREE,
        held=THREE[:2],
        end=2,
        log_end=3,
        classes={"kept": 2, "uncommitted": 1},
    ),
    History(
        name="acks=0: sent, and somewhere",
        sent=[Sent(number=0, value="a"), Sent(number=1, value="b")],
        held=[held(0, "b"), held(1, "a")],
        finds=[("reordered", 1)],
        classes={"kept": 2},
    ),
    History(
        name="acks=0: sent, and nowhere",
        sent=[Sent(number=0, value="a"), Sent(number=1, value="b")],
        held=[held(0, "b")],
        finds=[("lost", None)],
    ),
    History(
        name="no offset was told, and the head is gone",
        sent=[Sent(number=0, value="a")],
        held=[held(5, "b")],
        start=5,
        classes={"untraceable": 1, "unexpected": 1},
    ),
]

MISPLACED = [
    History(
        name="acknowledged without an offset",
        sent=[Sent(number=0, value="a"), ok(1, 1, "b")],
        held=[held(0, "a"), held(1, "b")],
        classes={"kept": 2},
    ),
    History(
        name="acknowledged without an offset, and gone",
        sent=[Sent(number=0, value="a"), ok(1, 0, "b")],
        held=[held(0, "b")],
        finds=[("lost", None)],
        classes={"kept": 1, "lost": 1},
    ),
    History(
        name="an older attempt survived",
        sent=[ok(0, 3, "a")],
        held=[held(1, "a"), held(3, "other")],
        finds=[("misplaced", 1)],
        classes={"misplaced": 1, "unexpected": 1},
    ),
    History(
        name="an equal record of another time is not it",
        sent=[ok(0, 3, "a")],
        held=[held(1, "a", sent_ms=5), held(3, "other")],
        finds=[("lost", 3)],
        classes={"lost": 1, "unexpected": 2},
    ),
]

DUPLICATED = [
    History(
        name="once sent, twice there",
        sent=[ok(0, 0), ok(1, 1)],
        held=[held(0, "v0"), held(1, "v1"), held(2, "v0"), held(3, "v0")],
        finds=[("duplicated", 2), ("duplicated", 3)],
        classes={"kept": 2, "duplicated": 2},
    ),
    History(
        name="the retry was acknowledged, the first attempt is there too",
        sent=[ok(0, 5)],
        held=[held(2, "v0"), held(5, "v0")],
        finds=[("duplicated", 2)],
    ),
    History(
        name="unknown, and there twice",
        sent=[Sent(number=0, value="u", outcome="unknown")],
        held=[held(0, "u"), held(1, "u")],
        finds=[("duplicated", 1)],
        classes={"unknown, kept": 1, "duplicated": 1},
    ),
    History(
        name="equal values that were sent as often are none",
        sent=[ok(0, 0, "same"), ok(1, 1, "same"), ok(2, 2, "same", run=1)],
        held=[held(0, "same"), held(1, "same"), held(2, "same")],
        classes={"kept": 3},
    ),
    History(
        name="of equal values one is lost and none is invented",
        sent=[ok(0, 0, "same"), ok(1, 1, "same"), ok(2, 2, "same")],
        held=[held(0, "same"), held(2, "same")],
        finds=[("lost", 1)],
        classes={"kept": 2, "lost": 1},
    ),
    History(
        name="somebody else's record of the same value",
        sent=[ok(0, 0)],
        held=[held(0, "v0"), held(1, "v0", sent_ms=5)],
        classes={"kept": 1, "unexpected": 1},
    ),
    History(
        name="the first copy expired",
        sent=[ok(0, 0)],
        held=[held(4, "v0")],
        start=3,
        finds=[("duplicated", 4)],
        classes={"expired": 1, "duplicated": 1},
    ),
]

REORDERED = [
    History(
        name="two changed places",
        sent=[ok(0, 0), ok(1, 2), ok(2, 1), ok(3, 3)],
        held=[held(0, "v0"), held(1, "v2"), held(2, "v1"), held(3, "v3")],
        finds=[("reordered", 2)],
        classes={"kept": 4},
    ),
    History(
        name="two producers mix, each in order",
        sent=[ok(0, 0, "a0"), ok(1, 2, "a1"), ok(0, 1, "b0", run=1), ok(1, 3, "b1", run=1)],
        held=[held(0, "a0"), held(1, "b0"), held(2, "a1"), held(3, "b1")],
        classes={"kept": 4},
    ),
    History(
        name="outcomes are told in any order",
        sent=[ok(2, 2), ok(0, 0), ok(1, 1)],
        held=THREE,
        classes={"kept": 3},
    ),
]

OUTCOMES = [
    History(
        name="refused and there",
        sent=[Sent(number=0, value="x", outcome="refused")],
        held=[held(4, "x")],
        finds=[("refused but present", 4)],
        classes={"refused but present": 1},
    ),
    History(
        name="refused and not there",
        sent=[Sent(number=0, value="x", outcome="refused")],
        held=[held(0, "y")],
        classes={"refused": 1, "unexpected": 1},
    ),
    History(
        name="refused, and sent again with success",
        sent=[Sent(number=0, value="x", outcome="refused"), ok(1, 0, "x")],
        held=[held(0, "x")],
        classes={"refused": 1, "kept": 1},
    ),
    History(
        name="refused before it had a partition, and there",
        sent=[Sent(number=0, value="lonely", outcome="refused", is_placed=False)],
        held=[held(1, "lonely")],
        finds=[("refused but present", 1)],
    ),
    History(
        name="unknown: there, or not",
        sent=[
            Sent(number=0, value="x", outcome="unknown"),
            Sent(number=1, value="y", outcome="unknown"),
        ],
        held=[held(0, "y")],
        classes={"unknown, kept": 1, "unknown, absent": 1},
    ),
    History(
        name="of two equal ones the unknown may be there, so nothing refused is there",
        sent=[
            Sent(number=0, value="x", outcome="refused"),
            Sent(number=1, value="x", outcome="unknown"),
        ],
        held=[held(0, "x")],
        classes={"unknown, kept": 1, "refused": 1},
    ),
]

TRANSACTIONS = [
    History(
        name="aborted as told",
        sent=[ok(0, 0, outcome="aborted"), ok(1, 1, is_committed=True)],
        held=[held(0, "v0", state=ABORTED, is_visible=False), held(1, "v1")],
        classes={"aborted": 1, "kept": 1},
    ),
    History(
        name="told aborted, but committed",
        sent=[ok(0, 0, outcome="aborted")],
        held=[held(0, "v0")],
        finds=[("aborted but read", 0)],
    ),
    History(
        name="told committed, but aborted",
        sent=[ok(0, 0, is_committed=True)],
        held=[held(0, "v0", state=ABORTED, is_visible=False)],
        finds=[("lost", 0)],
    ),
    History(
        name="the journal knows no transactions",
        sent=[ok(0, 0), ok(1, 1)],
        held=[held(0, "v0", state=ABORTED, is_visible=False), held(1, "v1", state=OPEN)],
        classes={"aborted": 1, "open": 1},
    ),
    History(
        name="brokers show what their log aborts",
        sent=[],
        held=[held(0, "v0", state=ABORTED, is_visible=True)],
        finds=[("aborted but read", 0)],
    ),
    History(
        name="brokers hide what their log commits",
        sent=[ok(0, 0)],
        held=[held(0, "v0", is_visible=False)],
        finds=[("hidden", 0)],
    ),
    History(
        name="an aborted copy is none",
        sent=[ok(0, 1)],
        held=[held(0, "v0", state=ABORTED, is_visible=False), held(1, "v0")],
        classes={"aborted": 1, "kept": 1},
    ),
]

HISTORIES = [*LOST, *MISPLACED, *DUPLICATED, *REORDERED, *OUTCOMES, *TRANSACTIONS]


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> dict[str, Judged]:
    return judge(spark, HISTORIES)


@pytest.mark.parametrize("history", HISTORIES, ids=lambda each: each.name)
def test_history(history: History, judged: dict[str, Judged]) -> None:
    verdict = judged[history.name]
    assert verdict.finds == sorted(history.finds, key=str)
    if history.classes:
        assert verdict.classes == history.classes


def test_a_finding_has_the_evidence(judged: dict[str, Judged]) -> None:
    (row,) = judged["another record stands there"].rows
    assert row["evidence"] == (
        "acknowledged at offset 2 (acks=all), but another record of leader epoch 7 stands there"
    )
    assert (row["answered"], row["answered_offset"], row["acks"]) == ("ok", 2, "all")
    assert (row["run"], row["journal"], row["line"], row["number"]) == ("r0", "acks.jsonl", 4, 2)
    assert bytes(row["key"]) == b"k" and len(row["value_sha256"]) == 64
    assert row["answered_at"].astimezone(UTC) == datetime.fromtimestamp((START_MS + 2) / 1_000, UTC)
    (late,) = judged["two changed places"].rows
    assert late["evidence"] == (
        "record 1 stands at 2, behind record 2 of the same producer, which was sent later"
    )
    (moved,) = judged["an older attempt survived"].rows
    assert moved["evidence"] == "acknowledged at offset 3 (acks=all), but it stands at 1"
    (refused,) = judged["refused and there"].rows
    assert refused["evidence"] == "refused (SOME_ERROR), but it stands at 4"


@pytest.mark.scenario("X-50")
def test_a_wrong_offset_is_told_from_an_unknown_one(judged: dict[str, Judged]) -> None:
    """Acknowledged at 3 and standing at 1 is a finding; without an offset no place was promised."""
    assert judged["an older attempt survived"].finds == [("misplaced", 1)]
    assert judged["acknowledged without an offset"].finds == []
    assert judged["acknowledged without an offset"].classes == {"kept": 2}
    assert judged["acknowledged without an offset, and gone"].finds == [("lost", None)]


def test_every_class_has_a_meaning_for_people(judged: dict[str, Judged]) -> None:
    verdict = {verdict for each in judged.values() for verdict in each.classes}
    verdict |= {name for each in judged.values() for name, _ in each.finds}
    assert verdict <= CLASSES.keys()


@pytest.mark.long
def test_where_brokers_set_the_time_a_copy_is_certain_only_among_journals(
    spark: SparkSession,
) -> None:
    """Timestamps of the log are nobody's mark: an equal record may be another writer's."""
    histories = [
        History(
            name="copy",
            sent=[ok(0, 0)],
            held=[held(0, "v0", sent_ms=-1), held(1, "v0", sent_ms=-1)],
            classes={"kept": 1, "identical": 1},
        ),
        History(
            name="stranger",
            sent=[],
            held=[held(0, "x", sent_ms=-1)],
            classes={"unexpected": 1},
        ),
        History(
            name="unknown",
            sent=[Sent(number=0, value="u", outcome="unknown")],
            held=[held(0, "u", sent_ms=-1)],
            classes={"unknown, kept": 1},
        ),
    ]
    assert differences(histories, judge(spark, histories)) == {}
    strict = judge(spark, histories, is_strict=True)
    assert strict["copy"].finds == [("duplicated", 1)]
    assert strict["stranger"].finds == [("unexpected", 0)]
    cut = judge(spark, histories, is_strict=True, is_any_cut=True)
    assert cut["copy"].finds == [] and cut["stranger"].finds == []


@pytest.mark.long
def test_compaction_keeps_the_newest_of_each_key(spark: SparkSession) -> None:
    """Older ones of a key may be gone, and what a tombstone buried; the newest must be there."""
    histories = [
        History(
            name="superseded",
            sent=[ok(0, 0, key=b"a"), ok(1, 1, key=b"a"), ok(2, 2, key=b"b")],
            held=[held(1, "v1", key=b"a"), held(2, "v2", key=b"b")],
            classes={"compacted": 1, "kept": 2},
        ),
        History(
            name="the newest is gone",
            sent=[ok(0, 0, key=b"a"), ok(1, 1, key=b"a"), ok(2, 2, key=b"b")],
            held=[held(0, "v0", key=b"a"), held(2, "v2", key=b"b")],
            finds=[("lost", 1)],
        ),
        History(
            name="buried by a tombstone that is gone itself",
            sent=[
                ok(0, 0, key=b"a"),
                Sent(number=1, offset=1, key=b"a", value=None),
                ok(2, 2),
            ],
            held=[held(2, "v2")],
            classes={"compacted": 2, "kept": 1},
        ),
        History(
            name="risen behind its tombstone, and gone",
            sent=[
                Sent(number=0, offset=0, key=b"a", value=None),
                ok(1, 1, key=b"a"),
                ok(2, 2),
            ],
            held=[held(2, "v2")],
            finds=[("lost", 1)],
            classes={"compacted": 1, "lost": 1, "kept": 1},
        ),
    ]
    assert differences(histories, judge(spark, histories, is_compacted=True)) == {}
    plain = judge(spark, histories[:1])
    assert plain["superseded"].finds == [("lost", 0)]


@pytest.mark.long
def test_a_journal_of_two_writers_has_no_order(spark: SparkSession) -> None:
    history = [REORDERED[0]]
    mixed = judge(spark, history, runs=[run(0, is_mixed=True, cut="mixed"), run(1)])
    assert mixed["two changed places"].finds == []
