"""Which seeds are fresh: the code itself says so, and every change of it meets new worlds.

The code is what simulated worlds are made of. The same code meets the same worlds, here and
everywhere, so a red run is red again wherever it is run. `TIDELOG_FIRST_SEED` says where to begin
instead.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tidelog"
ROOMS = ("core", "client", "judge", "worlds/simulator")
LEFT_OUT = ("client/admin", "client/ranges", "client/shells", "client/sink")
"""Of these rooms: no simulated client uses them."""
HEX_DIGITS = 7


@cache
def first_fresh_seed() -> int:
    """Where the fresh seeds of this run begin; it is printed at the head of the run."""
    given = os.environ.get("TIDELOG_FIRST_SEED")
    return int(given) if given is not None else seed_of(SOURCE)


@cache
def number_of_all_code() -> int:
    """Of all of it: campaigns with processes and Spark have more of it than simulated worlds."""
    return seed_of(SOURCE, rooms=("",), left_out=())


def seed_of(
    source: Path, *, rooms: tuple[str, ...] = ROOMS, left_out: tuple[str, ...] = LEFT_OUT
) -> int:
    """A number made of the Python files of these rooms: their places and their bytes."""
    summed = hashlib.sha256()
    found = [path for room in rooms for path in (source / room).rglob("*.py")]
    for name in sorted(path.relative_to(source).as_posix() for path in found):
        if name.startswith(left_out):
            continue
        content = (source / name).read_bytes()
        summed.update(f"{name} {len(content)}\n".encode())
        summed.update(content)
    return int(summed.hexdigest()[:HEX_DIGITS], 16)
