"""`tidelog up` is understood without typer, and whatever needs a word goes to typer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.cli.cluster.up_options import UpOptions, plain_up_options, read_settings
from tidelog.cluster.errors import ClusterUsageError


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], UpOptions()),
        (["--brokers", "5"], UpOptions(brokers=5)),
        (["--brokers=5", "--port=0"], UpOptions(brokers=5, port=0)),
        (["--racks", "a, b"], UpOptions(racks=("a", "b"))),
        (["--data", "x", "--detach"], UpOptions(data=Path("x"), detach=True)),
        (["-d", "-v", "--profile", "fast"], UpOptions(detach=True, verbose=True, profile="fast")),
        (["--controllers", "3"], UpOptions(controllers=3)),
        (["--set", "a=1", "--set=b=2=3"], UpOptions(settings=("a=1", "b=2=3"))),
    ],
)
def test_plain_options_are_understood(arguments: list[str], expected: UpOptions) -> None:
    assert plain_up_options(arguments, {}) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["more"], ["--brokers"], ["--brokers", "many"], ["--brokers=-1"]),
        *(["--detach=yes"], ["--bro", "3"], ["--port", "1.5"]),
    ],
)
def test_anything_to_explain_goes_to_the_full_application(arguments: list[str]) -> None:
    assert plain_up_options(arguments, {}) is None


def test_the_data_directory_may_come_from_the_environment_and_the_option_counts_more() -> None:
    environment = {"TIDELOG_DATA": "there"}
    assert plain_up_options([], environment) == UpOptions(data=Path("there"))
    assert plain_up_options(["--data", "here"], environment) == UpOptions(data=Path("here"))


def test_settings_are_pairs() -> None:
    assert read_settings(["a=1", " b.c = x=y "]) == {"a": "1", "b.c": "x=y"}
    for text in ("a", "=1", ""):
        with pytest.raises(ClusterUsageError, match="KEY=VALUE"):
            read_settings([text])


def test_starting_a_cluster_loads_neither_typer_nor_rich_nor_the_client() -> None:
    code = (
        "import sys, tidelog.cli.main, tidelog.cli.cluster.up_run\n"
        "print(*(name for name in sys.modules if name.split('.')[0] in ('typer', 'rich', 'click')\n"
        "        or name.startswith(('tidelog.client', 'tidelog.core', 'tidelog.worlds'))))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    root_error = {"tidelog.core", "tidelog.core.model", "tidelog.core.model.exceptions"}
    assert set(loaded.stdout.split()) <= root_error
