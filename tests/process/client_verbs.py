"""The command line on a real cluster: in this process for answers, as a process for signals."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from tidelog.cli.app import app

PATIENCE_S = 60.0


class Said(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    output: str
    errors: str

    @property
    def document(self) -> Any:
        """Its one JSON document."""
        return json.loads(self.output)

    @property
    def lines(self) -> list[Any]:
        """Its JSON lines."""
        return [json.loads(line) for line in self.output.splitlines()]


class CommandLine:
    """`tidelog VERB …` on one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: str, stdin: str | bytes = b"") -> Said:
        """In this process, whatever becomes of it."""
        given = [*arguments, "--bootstrap-server", self.bootstrap]
        result = CliRunner().invoke(app, given, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)

    def ok(self, *arguments: str, stdin: str | bytes = b"") -> Said:
        """It must succeed."""
        said = self(*arguments, stdin=stdin)
        assert said.code == 0, (arguments, said)
        return said

    def start(self, *arguments: str, directory: Path | None = None) -> subprocess.Popen[bytes]:
        """As a process of its own, for signals and pipes."""
        command = [sys.executable, "-m", "tidelog.cli.main", *arguments]
        return subprocess.Popen(
            [*command, "--bootstrap-server", self.bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
        )


def next_line(process: subprocess.Popen[bytes]) -> bytes:
    """What it says next, one line at a time; an assertion if it stays silent."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(PATIENCE_S), "it said nothing"
    return process.stdout.readline()
