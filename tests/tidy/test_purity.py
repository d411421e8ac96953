"""Purity: no clock, chance, socket, thread, file, log or `async` in a pure room."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.plan import (
    ALLOWED_NAMES,
    FORBIDDEN_ATTRIBUTES,
    FORBIDDEN_CALLS,
    FORBIDDEN_MODULES,
    IMPURE_INSIDE_PURE,
    PURE_ROOMS,
)
from tests.tidy.reading import Source, nodes, python_files


def is_pure(source: Source) -> bool:
    """Does the file stand in a pure room?"""
    module = f"{source.module}."
    return module.startswith(tuple(f"{room}." for room in PURE_ROOMS)) and not module.startswith(
        tuple(f"{room}." for room in IMPURE_INSIDE_PURE)
    )


def judge_purity(source: Source) -> list[str]:
    """What reaches out of the machine, one line each."""
    return [
        f"{source.path}:{getattr(node, 'lineno', 0)}: {offence}"
        for node in nodes(source.tree)
        if (offence := _offence(node)) is not None
    ]


def _offence(node: ast.AST) -> str | None:
    match node:
        case ast.Import(names=names):
            tops = {alias.name.split(".")[0] for alias in names}
            return _named("imports", tops & FORBIDDEN_MODULES)
        case ast.ImportFrom(module=str(module), names=names):
            wanted = {alias.name for alias in names}
            if module.split(".")[0] in FORBIDDEN_MODULES:
                unknown = wanted - ALLOWED_NAMES.get(module, frozenset())
                return _named(f"imports from {module}", unknown)
            return _named(f"imports from {module}", wanted & FORBIDDEN_ATTRIBUTES)
        case ast.Attribute(attr=attribute) if attribute in FORBIDDEN_ATTRIBUTES:
            return f"uses {attribute}"
        case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
            return f"calls {name}()"
        case ast.Call(func=ast.Name(id="Random"), args=[], keywords=[]):
            return "makes a Random() without a seed"
        case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            return "is asynchronous"
        case _:
            return None


def _named(what: str, names: set[str] | frozenset[str]) -> str | None:
    return f"{what} {', '.join(sorted(names))}" if names else None


def test_a_pure_room_reaches_out_for_nothing() -> None:
    pure = [source for source in python_files("src") if is_pure(source)]
    complaints = [text for source in pure for text in judge_purity(source)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "import os.path",
        "import random",
        "from random import random",
        "from random import Random, choice",
        "from asyncio import Queue",
        "import logging, struct",
        "from pathlib import Path",
        "from datetime import datetime",
        "from uuid import uuid4",
        "import uuid\nx = uuid.uuid4()",
        "def f():\n    import socket",
        "async def f(): ...",
        "print('hello')",
        "open('file')",
        "from random import Random\nr = Random()",
        "__import__('time')",
    ],
)
def test_reaching_out_is_noticed(text: str) -> None:
    assert judge_purity(Source("src/tidelog/core/node/x.py", text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "from random import Random\ndef f(random: Random) -> float: return random.random()",
        "import struct, zlib, bisect",
        "from random import Random\nr = Random(7)",
        "disk.open('file')",
    ],
)
def test_given_ports_and_plain_arithmetic_are_pure(text: str) -> None:
    assert judge_purity(Source("src/tidelog/core/node/x.py", text)) == []


def test_shells_and_worlds_are_not_judged() -> None:
    assert is_pure(Source("src/tidelog/core/wire/varint.py", ""))
    assert is_pure(Source("src/tidelog/client/producer.py", ""))
    assert not is_pure(Source("src/tidelog/client/shells/blocking_clients.py", ""))
    assert not is_pure(Source("src/tidelog/worlds/runtime/server.py", ""))
