"""`tidelog pipeline`: what checking prints, and how a run looks to people and to programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.process.command_line import tidelog_verb
from tests.process.ports import free_port
from tests.unit.spark.pipeline.good_file import GOOD
from tidelog.cli.pipeline.show import (
    HEADER,
    JsonShow,
    PlainShow,
    batch_line,
    behind_text,
    picture,
    sink_row,
    summary_lines,
)
from tidelog.spark.pipeline.job import plan_runner
from tidelog.spark.pipeline.job.accounts import BatchReport, SinkAccount
from tidelog.spark.pipeline.job.events import (
    BatchCompleted,
    PipelineStarted,
    PipelineStatus,
    PipelineWarning,
    RunEnding,
    RunOutcome,
    SinkStatus,
)

REPORT = BatchReport(
    batch_id=7,
    query_rows=100,
    rows=80,
    rows_per_s=1_234.5,
    duration_ms=1_500,
    duplicates=8,
    late=2,
    late_groups=1,
    sources={"orders": (100, 5)},
    views={"valid": (90, 80)},
    behind={"orders-0": 5, "orders-1": 0},
    watermark=None,
)


def account() -> SinkAccount:
    made = SinkAccount()
    made.add(REPORT)
    return made


def test_a_good_file_is_ok(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(GOOD)
    said = tidelog_verb("pipeline", "check", str(file))
    assert (said.code, said.out) == (0, f"{file}: ok: 1 source, 1 step, 1 sink\n")
    said = tidelog_verb("pipeline", "check", str(file), "--json")
    expected = {"file": str(file), "ok": True, "errors": [], "warnings": []}
    assert (said.code, json.loads(said.out)) == (0, expected)


def test_a_bad_file_is_told_line_by_line_with_code_2(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(GOOD.replace("FROM orders", "FROM ordres").replace("SELECT", "SELECT rand(),"))
    said = tidelog_verb("pipeline", "check", str(file))
    assert said.code == 2
    first, second, last = said.out.splitlines()
    assert first.startswith(f"{file}:12: steps.valid.sql: warning: rand() returns other values")
    assert second.startswith(f"{file}:13: steps.valid.sql: reads 'ordres', which is not a source")
    assert last == f"{file}: 1 error, 1 warning"
    document = json.loads(tidelog_verb("pipeline", "check", str(file), "--json").out)
    assert document["ok"] is False
    assert [(each["line"], each["key"]) for each in document["errors"]] == [(13, "steps.valid.sql")]


def test_a_bad_file_is_not_run(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(GOOD.replace("checkpoint", "chekpoint"))
    said = tidelog_verb("pipeline", "run", str(file))
    assert said.code == 2
    assert f"{file}:1: chekpoint: is not known here; did you mean 'checkpoint'?" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "none.toml"], "none.toml: No such file or directory"),
        (["run", "none.toml"], "none.toml: No such file or directory"),
        (
            ["run", "GOOD", "--bootstrap", "nowhere"],
            "--bootstrap: 'nowhere' is not a broker address",
        ),
        (["run", "GOOD", "--master", "loca[2]"], "--master: 'loca[2]' is not a Spark master"),
    ],
)
def test_a_mistake_in_the_usage_is_one_line(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    file = tmp_path / "p.toml"
    file.write_text(GOOD)
    said = tidelog_verb("pipeline", *(str(file) if each == "GOOD" else each for each in arguments))
    assert said.code == 2
    assert told in said.err
    assert said.err.count("\n") == 1


def test_brokers_that_are_not_there_are_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_early(**settings: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(plan_runner, "spark_session", too_early)
    file, address = tmp_path / "p.toml", f"127.0.0.1:{free_port()}"
    file.write_text(GOOD)
    said = tidelog_verb("pipeline", "run", str(file), "--bootstrap", address)
    reached = f"sources.orders: no broker can be reached: {address} (connection refused)"
    assert (said.code, said.err) == (1, f"tidelog pipeline run: {reached}\n")
    assert not (tmp_path / "state").exists(), "nothing was begun"


def test_a_batch_is_one_line() -> None:
    assert batch_line("revenue", REPORT) == (
        "revenue: batch 7, 100 read, 5 dead, 8 duplicates, 2 late, 80 written, 1.5 s,"
        " 1,234 rows/s, behind 5 (orders-0: 5)"
    )


def test_the_worst_partitions_are_named() -> None:
    behind = {"t-0": 1, "t-1": 0, "t-2": 30, "t-3": 4, "t-4": 2}
    assert behind_text(behind) == "37 (t-2: 30, t-3: 4, t-4: 2, …)"
    assert behind_text({"t-0": 0}) == "0"


def test_the_summary_is_sums_that_come_out_even() -> None:
    outcome = RunOutcome(ending=RunEnding.FINISHED, accounts={"revenue": account()})
    assert summary_lines(outcome) == [
        "sink revenue: 80 rows in 1 batch",
        "  source orders: read 100 = 95 parsed + 5 dead",
        "  valid: 90 = 80 kept + 8 duplicates + 2 late",
        "  1 group came after being written",
    ]


def test_programs_get_an_object_for_each_event(capsys: pytest.CaptureFixture[str]) -> None:
    show = JsonShow()
    show.tell(PipelineWarning(text="careful"))
    show.tell(PipelineStarted(name="p", sinks=("a",), log=None))
    show.tell(BatchCompleted(sink="a", report=REPORT))
    show.tell(PipelineStatus(sinks=(), is_stopping=False))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["warning", "started", "batch"]
    assert lines[2]["sources"] == {"orders": {"read": 100, "dead": 5}}
    assert lines[2]["behind"] == {"orders-0": 5, "orders-1": 0}


def test_people_get_warnings_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    show = PlainShow()
    show.tell(PipelineWarning(text="careful"))
    show.tell(BatchCompleted(sink="a", report=REPORT))
    said = capsys.readouterr()
    assert said.err == "tidelog pipeline run: careful\n"
    assert "a: batch 7" in said.out


def sink(**changed: object) -> SinkStatus:
    fields: dict[str, object] = {
        "name": "revenue",
        "is_topic": True,
        "is_active": True,
        "is_busy": True,
        "open_s": 1.26,
        "account": account(),
        **changed,
    }
    return SinkStatus(**fields)  # type: ignore[arg-type]


def test_the_table_shows_a_sink_and_the_age_of_its_transaction() -> None:
    row = dict(zip(HEADER, sink_row(sink(), is_stopping=False), strict=True))
    assert row == {
        "sink": "revenue",
        "state": "writing",
        "batch": "7",
        "rows/s": "1,234",
        "batch time": "1.5 s",
        "read": "100",
        "dead": "5",
        "written": "80",
        "behind": "5",
        "open": "transaction 1.3 s",
    }
    idle = sink(is_busy=False, open_s=None, account=SinkAccount())
    assert sink_row(idle, is_stopping=False)[1:3] == ("waiting", "-")
    assert sink_row(sink(), is_stopping=True)[1] == "stopping"
    assert sink_row(sink(is_active=False), is_stopping=True)[1] == "ended"


def test_the_picture_names_every_partition() -> None:
    drawn = picture(PipelineStatus(sinks=(sink(), sink(name="other")), is_stopping=False))
    assert drawn.row_count == 2
    assert drawn.caption == "behind by partition  orders-0: 5  orders-1: 0"
