"""Doors: a room imports only the rooms and libraries that the plan gives it."""

from __future__ import annotations

import ast
import posixpath
import sys
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.tidy.plan import DOORS, LIBRARIES, ROOMS_WITH_ROOMS
from tests.tidy.reading import Source, nodes, python_files


def judge_doors(source: Source) -> list[str]:
    """What this file imports without a door."""
    assert source.module is not None
    if source.module == "":
        home = ""
    else:
        room = room_of(source.module)
        if room is None:
            return [f"{source.path}: the plan has no room for it"]
        home = room
    complaints = []
    for line, imported, name in imports(source.tree):
        reason = _refusal(home, imported, name)
        if reason is not None:
            complaints.append(f"{source.path}:{line}: {reason}")
    return complaints


def room_of(module: str) -> str | None:
    """The innermost room that holds the module: `core.wire.messages.x` is in `core.wire`."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        candidate = ".".join(parts[:length])
        if candidate in DOORS:
            # `core` and `worlds` are wings: only their own front page is in them.
            is_wing = candidate not in ROOMS_WITH_ROOMS and any(
                other.startswith(candidate + ".") for other in DOORS
            )
            return candidate if not is_wing or length == len(parts) else None
    return None


def imports(tree: ast.Module) -> Iterator[tuple[int, str, str | None]]:
    """(line, module, name) of every import, wherever it stands; the name is None for `import`."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, module, alias.name


def _refusal(home: str, imported: str, name: str | None) -> str | None:
    if imported.startswith("."):
        return f"relative import {imported}"
    top = imported.split(".")[0]
    if top != "tidelog":
        if top in sys.stdlib_module_names or top in LIBRARIES.get(home, ()):
            return None
        return f"{home or 'tidelog'} may not import the library {top}"
    if imported == "tidelog" and (name is None or name.startswith("__")):
        return None
    target = imported.removeprefix("tidelog").removeprefix(".")
    if name is not None and room_of(f"{target}.{name}".removeprefix(".")) not in (None, target):
        target = f"{target}.{name}".removeprefix(".")  # `from tidelog.core import wire`
    room = room_of(target) if target else None
    if room is None:
        return f"{imported} is in no room of the plan"
    if room == home:
        return None
    if room not in DOORS.get(home, ()):
        return f"no door from {home or 'tidelog'} to {room}"
    if name is not None and name.startswith("_") and not name.startswith("__"):
        return f"{name} is private to {room}"
    return None


def test_every_import_goes_through_a_door() -> None:
    complaints = [text for source in python_files("src") for text in judge_doors(source)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("path", "line", "reason"),
    [
        ("core/model/x.py", "from tidelog.core.wire.crc import crc32c", "no door"),
        ("core/storage/x.py", "import tidelog.core.node.node", "no door"),
        ("core/storage/x.py", "from tidelog.core import node", "no door"),
        ("core/node/x.py", "from tidelog.worlds.runtime.server import serve", "no door"),
        ("worlds/simulator/x.py", "from tidelog.worlds.runtime import broker", "no door"),
        ("core/wire/x.py", "    from tidelog.core.storage import log", "no door"),
        ("core/wire/x.py", "import kio", "may not import the library kio"),
        ("core/storage/x.py", "import crc32c", "may not import the library crc32c"),
        ("core/wire/x.py", "from .varint import read", "relative"),
        ("cli/x.py", "from tidelog.worlds.runtime.server import _private", "private"),
        ("cli/x.py", "import pyspark", "may not import the library pyspark"),
        ("client/x.py", "import numpy", "may not import the library numpy"),
        ("spark/columns/x.py", "from pyspark.sql import SparkSession", "library pyspark"),
        ("spark/columns/x.py", "from tidelog.spark.source import reader", "no door"),
        ("spark/pipeline/file/x.py", "import pyspark", "library pyspark"),
        ("spark/x.py", "", "the plan has no room"),
        ("core/attic/x.py", "", "the plan has no room"),
        ("attic/x.py", "", "the plan has no room"),
        ("core/node/x.py", "from tidelog.core.attic import old", "in no room"),
    ],
)
def test_a_missing_door_is_noticed(path: str, line: str, reason: str) -> None:
    body = f"if True:\n{line}\n" if line.startswith(" ") else line
    complaints = judge_doors(Source(f"src/tidelog/{path}", body))
    assert len(complaints) == 1
    assert reason in complaints[0]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("core/wire/messages/x.py", "from tidelog.core.wire.schema import Field"),
        ("core/wire/crc.py", "import crc32c"),
        ("core/node/x.py", "from tidelog.core.storage.log import Log"),
        ("core/node/x.py", "from tidelog.core import storage"),
        ("cli/main.py", "from tidelog import __version__"),
        ("cli/main.py", "from tidelog.worlds.runtime.broker import main"),
        ("spark/source/x.py", "from tidelog.spark.columns.decode import Decoder"),
        ("spark/source/x.py", "from pyspark.sql.datasource import DataSource"),
        ("../pyspark_tidelog/__init__.py", "from tidelog.spark.source import reader"),
    ],
)
def test_a_door_of_the_plan_is_open(path: str, line: str) -> None:
    source = Source(posixpath.normpath(f"src/tidelog/{path}"), line)
    assert judge_doors(source) == []


def judge_plan(
    doors: Mapping[str, Iterable[str]], libraries: Iterable[str], modules: Iterable[str]
) -> list[str]:
    """Rooms of the plan without a module, and doors or libraries of rooms that it does not have."""
    existing = {""}
    for module in modules:
        parts = module.split(".")
        existing |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    complaints = [f"there is no room {room}" for room in doors if room not in existing]
    complaints += [
        f"the door from {room} to {target} leads nowhere"
        for room, targets in doors.items()
        for target in targets
        if target not in doors or target not in existing
    ]
    return complaints + [
        f"libraries for no room: {room}" for room in libraries if room not in doors
    ]


def test_every_door_leads_to_a_room_that_exists() -> None:
    modules = [source.module for source in python_files("src") if source.module is not None]
    assert judge_plan(DOORS, LIBRARIES, modules) == []


@pytest.mark.parametrize(
    ("doors", "libraries", "count"),
    [
        ({"core.wire": ()}, (), 0),
        ({"core.wire": (), "core.model": ("core.wire",)}, ("core.wire",), 0),
        ({"core.wire": (), "core.groups": ()}, (), 1),
        ({"core.wire": (), "core.groups": (), "core.model": ("core.groups",)}, (), 2),
        ({"core.wire": ("core.model",)}, (), 1),
        ({"core.wire": ()}, ("core.model",), 1),
    ],
)
def test_a_door_that_leads_nowhere_is_noticed(
    doors: dict[str, tuple[str, ...]], libraries: tuple[str, ...], count: int
) -> None:
    modules = ["core.wire.crc", "core.model.ids"]
    assert len(judge_plan(doors, libraries, modules)) == count
