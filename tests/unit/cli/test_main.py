"""The command line: a broker's options are understood without loading what only people need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidelog import __version__
from tidelog.cli.main import plain_broker_options


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidelog.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_plain_options_are_understood() -> None:
    arguments = ["--config", "a.toml", "--set", "x=1", "--set=y=2=3", "--log-level=debug"]
    options = plain_broker_options(arguments)
    assert options == {
        "--config": ["a.toml"],
        "--set": ["x=1", "y=2=3"],
        "--ready-file": [],
        "--log-level": ["debug"],
        "--faults": [],
        "--stop-with-stdin": [],
    }


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["--config"],
        ["--config", "a", "--config", "b"],
        ["--config", "a", "--what"],
        ["--config", "a", "--log-level", "loud"],
        ["a.toml"],
    ],
)
def test_anything_to_explain_goes_to_the_full_application(arguments: list[str]) -> None:
    assert plain_broker_options(arguments) is None


def test_a_broker_loads_neither_typer_nor_rich() -> None:
    code = (
        "import sys, tidelog.cli.main, tidelog.worlds.runtime.broker\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"typer", "rich", "click"} & set(loaded.stdout.split())


def test_version() -> None:
    assert run("--version").stdout == f"tidelog {__version__}\n"


@pytest.mark.parametrize("command", ["broker", "dump", "demo"])
def test_help_teaches(command: str) -> None:
    shown = run(command, "--help")
    assert shown.returncode == 0
    assert f"tidelog {command} --" in shown.stdout, "an example"


def test_a_mistake_in_the_usage_is_told() -> None:
    refused = run("broker", "--cofnig", "x")
    assert refused.returncode == 2
    assert "--cofnig" in refused.stderr
    assert run("broker").returncode == 2
