"""Verbs end with a code and at most one line; signals ask first and then insist."""

from __future__ import annotations

import os
import signal

import pytest
import typer

from tidelog.cli.exit_codes import Misused, Stop, VerbFailed, refusal, verb
from tidelog.client.settings import ConfigError
from tidelog.client.shells.blocking_clients import RequestFailed


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            VerbFailed("INVALID_CONFIG: no\n such  thing"),
            1,
            "tidelog x: INVALID_CONFIG: no such thing",
        ),
        (RequestFailed("no answer in time"), 1, "tidelog x: no answer in time"),
        (Misused("say which"), 2, "tidelog x: say which"),
        (ConfigError("foo is not a setting"), 2, "tidelog x: foo is not a setting"),
        (KeyboardInterrupt(), 130, None),
    ],
)
def test_an_error_is_one_line_and_a_code(
    error: BaseException, code: int, line: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, verb("x"):
        raise error
    assert ended.value.exit_code == code
    assert capsys.readouterr().err.splitlines() == ([] if line is None else [line])


def test_our_own_mistakes_are_seen_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), verb("x"):
        raise ZeroDivisionError


def test_what_the_broker_says_comes_after_the_name() -> None:
    assert refusal("INVALID_CONFIG", "so\nit is", "x") == "INVALID_CONFIG: so it is"
    assert refusal("INVALID_CONFIG", None, "x") == "INVALID_CONFIG: x"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_asks_and_a_second_insists(number: int) -> None:
    before = signal.getsignal(number)
    with Stop() as stop:
        os.kill(os.getpid(), number)
        assert stop.is_requested, "and nothing was interrupted"
        with pytest.raises(KeyboardInterrupt), stop.waiting():
            raise AssertionError("nobody waits any more")
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


def test_a_first_signal_ends_a_wait() -> None:
    with Stop() as stop, pytest.raises(KeyboardInterrupt), stop.waiting():
        os.kill(os.getpid(), signal.SIGINT)
