"""The audit as a process of its own: `tidelog audit --json` over journal, topic and sink."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tidelog.demo.driver import MASTER
from tidelog.demo.errors import WITHIN_S, DemoFailed
from tidelog.demo.pipeline_file import QUICK_JAVA

_FOUND_SOMETHING = 1


def run_audit(arguments: Sequence[str]) -> dict[str, Any]:
    """The audit's document, whatever it found; DemoFailed if it could not judge."""
    command = [sys.executable, "-m", "tidelog.cli.main", "audit", "--json", "--master", MASTER]
    command += ["--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"]
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, errors = process.communicate(timeout=2 * WITHIN_S)
    except subprocess.TimeoutExpired:
        raise DemoFailed(f"the audit did not end within {2 * WITHIN_S:.0f} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode not in (0, _FOUND_SOMETHING) or not said.strip():
        lines = [line for line in errors.split("\n") if line.strip()]
        raise DemoFailed(lines[-1] if lines else f"the audit ended with {process.returncode}")
    document: dict[str, Any] = json.loads(said)
    return document
