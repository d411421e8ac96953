"""A small journal and a large topic: other writers' records are counted, and cost little."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.audit_histories import History, Sent, differences, held, judge, ok
from tests.spark.test_audit_verdict import HISTORIES
from tidelog.spark.audit import pairs

pytestmark = pytest.mark.long


@pytest.fixture
def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few there are, they are treated as if they were many."""
    monkeypatch.setattr(pairs, "SMALL_ROWS", 0)


@pytest.mark.usefixtures("_many")
def test_every_history_is_judged_the_same_among_many_others(spark: SparkSession) -> None:
    assert differences(HISTORIES, judge(spark, HISTORIES)) == {}


@pytest.mark.usefixtures("_many")
def test_what_is_told_without_a_partition_is_found_among_many_others(spark: SparkSession) -> None:
    """Also where brokers set the time, and everybody's records look alike."""
    strangers = [held(each, "ping", sent_ms=-1) for each in range(1, 9)]
    history = History(
        name="unplaced",
        sent=[
            ok(0, 0),
            Sent(number=1, value="u", outcome="unknown", is_placed=False),
        ],
        held=[held(0, "v0", sent_ms=-1), *strangers, held(9, "u", sent_ms=-1)],
        classes={"kept": 1, "unknown, kept": 1, "unexpected": 8},
    )
    assert differences([history], judge(spark, [history])) == {}
