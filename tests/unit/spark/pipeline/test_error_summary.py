"""Of pages that Spark writes about a failure, the line is found that names the cause."""

from __future__ import annotations

import pytest

from tidelog.spark.pipeline.job.error_summary import first_sentence, root_cause

ANALYSIS = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `amout` cannot be resolved. Did you mean `amount`? \
SQLSTATE: 42703; line 2 pos 7;
'Project ['amout]
+- SubqueryAlias orders
"""
STREAM = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted. SQLSTATE: XXKST
=== Streaming Query ===
JVM stacktrace:
org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.Some.method(Some.scala:1)
Caused by: java.io.IOException: disk is full
\tat java.base/Some.method
"""


def test_the_first_sentence_is_without_the_plan() -> None:
    assert first_sentence(ANALYSIS) == (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `amout` cannot be resolved."
        " Did you mean `amount`?"
    )


def test_the_innermost_cause_is_named() -> None:
    assert root_cause(STREAM) == "IOException: disk is full"


@pytest.mark.parametrize("text", ["simply broken", "line one\nline two"])
def test_without_causes_it_is_what_was_said(text: str) -> None:
    assert root_cause(text) == text.replace("\n", " ")


def test_a_line_has_an_end() -> None:
    assert len(first_sentence("x" * 5_000)) == 400
