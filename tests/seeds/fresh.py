"""Which seeds are fresh: each commit has its own, so every change of the code meets new worlds.

The same commit meets the same ones, here and everywhere, so a red run is red again. Without a
repository they are drawn; `TIDELOG_FIRST_SEED` says where to begin instead.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEX_DIGITS = 7


@cache
def first_fresh_seed() -> int:
    """Where the fresh seeds of this run begin; it is printed at the head of the run."""
    given = os.environ.get("TIDELOG_FIRST_SEED")
    if given is not None:
        return int(given)
    commit = _commit()
    return secrets.randbelow(16**HEX_DIGITS) if commit is None else int(commit[:HEX_DIGITS], 16)


def _commit() -> str | None:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
