"""The command line as a person uses it: a process of its own, or a call for quick verbs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from tidelog.cli.app import app

COMMAND = [sys.executable, "-m", "tidelog.cli.main"]
END_WITHIN_S = 120.0


class Said(NamedTuple):
    """What a verb printed, and how it ended."""

    code: int
    out: str
    err: str


def tidelog_process(*arguments: str, cwd: Path | None = None) -> Said:
    """As typed in a shell."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200"},
        timeout=END_WITHIN_S,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def tidelog_verb(*arguments: str) -> Said:
    """The same without the second that a process takes to begin."""
    done = CliRunner().invoke(app, list(arguments), prog_name="tidelog")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Said(done.exit_code, done.stdout, done.stderr)
