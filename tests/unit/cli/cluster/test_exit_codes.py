"""Verbs about a local cluster end with one line and an honest code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.cli.cluster.exit_codes import data_option, run
from tidelog.cluster.errors import ClusterError, ClusterUsageError, WaitTimeout


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ClusterError("no\nbroker"), 1, "tidelog up: no broker\n"),
        (WaitTimeout("in vain"), 1, "tidelog up: in vain\n"),
        (ClusterUsageError("what?"), 2, "tidelog up: what?\n"),
        (OSError(28, "No space left", "there"), 1, "tidelog up: there: No space left\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_trouble_is_one_line_and_a_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise error

    assert run("up", fail) == code
    assert capsys.readouterr().err == line


def test_without_trouble_the_verb_says_how_it_ended() -> None:
    assert run("up", lambda: 7) == 7


def test_our_own_mistakes_are_seen_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError):
        run("up", lambda: 1 // 0)


def test_hints_name_the_data_directory_only_if_they_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDELOG_DATA", raising=False)
    assert data_option(Path("tidelog-data")) == ""
    assert data_option(tmp_path / "tidelog-data") == ""
    assert data_option(Path("a b")) == " --data 'a b'"
    monkeypatch.setenv("TIDELOG_DATA", "a b")
    assert data_option(Path("a b")) == ""
