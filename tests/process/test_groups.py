"""Tests that share something expensive are run by one worker: their clusters start once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.process.waiting import PATIENCE_S
from tests.tidy.reading import ROOT

MARKED = """
import os

import pytest


@pytest.mark.parametrize("number", range(20))
@pytest.mark.xdist_group("shared")
def test_where(number):
    with open({told!r}, "a") as told:
        told.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    told = tmp_path / "told"
    file = tmp_path / "test_marked.py"
    file.write_text(MARKED.format(told=str(told)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-n", "2", str(file)]
    command += ["--dist", "loadgroup", "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)

    assert run.returncode == 0, run.stdout + run.stderr
    workers = told.read_text().split()
    assert len(workers) == 20
    assert len(set(workers)) == 1
