"""Sums over Spark's progress reports come out even, and a lie in them is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.spark.pipeline.job.accounts import SinkAccount, lag_by_partition, report_of

PROGRESS: dict[str, Any] = {
    "batchId": 7,
    "numInputRows": 100,
    "processedRowsPerSecond": 50.5,
    "durationMs": {"addBatch": 900, "triggerExecution": 1_000},
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [
        {
            "operatorName": "dedupeWithinWatermark",
            "numRowsDroppedByWatermark": 2,
            "customMetrics": {"numDroppedDuplicateRows": 8},
        },
        {"operatorName": "stateStoreSave", "numRowsDroppedByWatermark": 1, "customMetrics": {}},
    ],
    "sources": [
        {
            "endOffset": {"orders": {"0": 60, "1": 40}},
            "latestOffset": {"orders": {"0": 65, "1": 40}},
        }
    ],
    "observedMetrics": {
        "source:orders": {"read": 100, "dead": 5},
        "arrived:valid": {"rows": 90},
        "kept:valid": {"rows": 80},
        "sink": {"rows": 12},
    },
}


def test_a_report_tells_what_became_of_the_rows() -> None:
    report = report_of(PROGRESS)
    assert report is not None
    assert (report.batch_id, report.rows, report.duration_ms) == (7, 12, 1_000)
    assert report.sources == {"orders": (100, 5)}
    assert report.views == {"valid": (90, 80)}
    assert (report.duplicates, report.late, report.late_groups) == (8, 2, 1)
    assert report.behind == {"orders-0": 5, "orders-1": 0}


def test_accounts_add_up_and_come_out_even() -> None:
    account = SinkAccount()
    report = report_of(PROGRESS)
    assert report is not None
    account.add(report)
    account.add(report)
    assert (account.batches, account.rows, account.read, account.dead) == (2, 24, 200, 10)
    assert account.sources["orders"].parsed == 190
    assert account.views["valid"].dropped == account.duplicates + account.late == 20
    assert account.imbalance() is None


def test_rows_that_vanished_are_noticed() -> None:
    lying = {
        **PROGRESS,
        "observedMetrics": {**PROGRESS["observedMetrics"], "kept:valid": {"rows": 79}},
    }
    account = SinkAccount()
    report = report_of(lying)
    assert report is not None
    account.add(report)
    imbalance = account.imbalance()
    assert imbalance is not None
    assert "11 rows were dropped, but 8 are duplicates and 2 came late" in imbalance


def test_a_report_without_a_batch_is_none() -> None:
    assert report_of({"batchId": 7, "durationMs": {"triggerExecution": 3}}) is None


def test_offsets_may_be_text_and_other_sources_have_none() -> None:
    sources: list[Mapping[str, Any]] = [
        {"endOffset": '{"t": {"0": 1}}', "latestOffset": '{"t": {"0": 4, "1": 9}}'},
        {"endOffset": 5, "latestOffset": 7},
        {"endOffset": None, "latestOffset": "no JSON"},
    ]
    assert lag_by_partition(sources) == {"t-0": 3}
