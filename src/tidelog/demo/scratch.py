"""A Spark that is killed cannot clean up: all that it writes on the way goes where we can."""

from __future__ import annotations

import os
from pathlib import Path


def spark_scratch(directory: Path) -> dict[str, str]:
    """The environment of a program whose Spark keeps temporary files there: blocks and artifacts,
    unpacked libraries, and the sockets to Python, whose names must not be long."""
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    return {
        **os.environ,
        "SPARK_LOCAL_DIRS": str(directory),
        "SPARK_SUBMIT_OPTS": f'{options} "-Djava.io.tmpdir={directory}"'.strip(),
    }
