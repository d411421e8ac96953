"""`tidelog demo`: the account in words, the exit code, and what is refused at once."""

from __future__ import annotations

import io
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tidelog.cli import demo
from tidelog.cli.app import app
from tidelog.cli.demo_report import print_account
from tidelog.demo import mission
from tidelog.demo.accounts import Account, DemoFinding
from tidelog.demo.errors import DemoFailed
from tidelog.demo.mission import DemoOptions
from tidelog.spark import java, session

CLEAN = Account(
    sent=100,
    orders=93,
    repeats=5,
    broken=2,
    acknowledged=100,
    refused=0,
    unknown=0,
    kept=100,
    lost=0,
    duplicated=0,
    processed=93,
    missing=0,
    double=0,
    dropped=5,
    dead=2,
    results=15,
    revenue_cents=123_456,
)
LOST = replace(
    CLEAN, lost=1, findings=(DemoFinding(name="lost", count=1, example="told ok at offset 7"),)
)


@pytest.fixture(autouse=True)
def no_java_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "ensure_java", lambda: Path())


def played(monkeypatch: pytest.MonkeyPatch, outcome: Account | Exception) -> None:
    def run(wish: DemoOptions, say: object) -> Account:
        assert wish.directory.is_dir()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(mission, "run", run)


def words(account: Account) -> str:
    file = io.StringIO()
    print_account(account, Console(file=file, width=200), sink="table")
    return file.getvalue()


def test_a_clean_account_says_so_last() -> None:
    said = words(CLEAN)
    assert "1,234.56" in said and "93 orders, 5 of them sent twice, and 2 broken records" in said
    assert "15  records in the revenue topic, read committed" in said
    assert said.splitlines()[-1].startswith("every acknowledged order was kept and processed")


def test_a_finding_is_named_with_its_evidence() -> None:
    said = words(LOST)
    assert "lost, 1 times; for example: told ok at offset 7" in said
    assert said.splitlines()[-1] == "NOT what was promised: see above"
    assert "exactly once" not in said


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(CLEAN, 0), (LOST, demo.FOUND_SOMETHING), (DemoFailed("no brokers"), demo.COULD_NOT_RUN)],
)
def test_the_exit_code_is_the_verdict(
    monkeypatch: pytest.MonkeyPatch, outcome: Account | Exception, code: int
) -> None:
    played(monkeypatch, outcome)
    shown = CliRunner().invoke(app, ["demo"])
    assert shown.exit_code == code, shown.output
    if isinstance(outcome, Exception):
        assert shown.stderr == "tidelog demo: could not run: no brokers\n"


def test_what_is_kept_is_in_a_new_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played(monkeypatch, CLEAN)
    place = tmp_path / "mission"
    assert CliRunner().invoke(app, ["demo", "--keep", str(place)]).exit_code == 0
    assert place.is_dir()
    again = CliRunner().invoke(app, ["demo", "--keep", str(place)])
    assert again.exit_code == 2 and "is there already" in again.stderr


def test_without_spark_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(who: str) -> None:
        raise session.SparkMissing(f"{who} needs Spark: {session.INSTALL}")

    monkeypatch.setattr(session, "require_spark", missing)
    shown = CliRunner().invoke(app, ["demo"])
    assert shown.exit_code == 2
    assert shown.stderr.count("\n") == 1 and "pip install 'tidelog[spark]'" in shown.stderr


def test_nobody_at_the_bootstrap_address_is_one_line() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        shown = CliRunner().invoke(app, ["demo", "--bootstrap", address])
    assert shown.exit_code == 2
    assert shown.stderr.count("\n") == 1 and f"no broker can be reached: {address}" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--bootstrap", "nowhere"], "--bootstrap"),
        (["leader", "--bootstrap", "localhost:9092"], "leader takes neither"),
        (["--rate", "0"], "--rate"),
        (["tragedy"], "tragedy"),
    ],
)
def test_bad_usage_is_told(arguments: list[str], told: str) -> None:
    shown = CliRunner().invoke(app, ["demo", *arguments])
    assert shown.exit_code == 2 and told in shown.stderr
