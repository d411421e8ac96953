"""Ids: a type of its own for a number or for bytes is worth its name only where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import pytest

from tests.tidy.reading import Source, nodes, python_files

MODEL = "src/tidelog/core/model/"
CORE = "src/tidelog/core/"


def judge_new_types(sources: Iterable[Source]) -> list[str]:
    """NewTypes of core/model that no other module of core uses."""
    sources = list(sources)
    defined = [
        (source, name)
        for source in sources
        if source.path.startswith(MODEL)
        for name in _new_types(source.tree)
    ]
    return [
        f"{source.path}: {name} is used nowhere else in core"
        for source, name in defined
        if not any(
            _names(other.tree, name)
            for other in sources
            if other.path.startswith(CORE) and other.path != source.path
        )
    ]


def _new_types(tree: ast.Module) -> list[str]:
    return [
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("NewType")
    ]


def _names(tree: ast.Module, name: str) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == name)
        or (isinstance(node, ast.Attribute) and node.attr == name)
        for node in nodes(tree)
    )


def test_every_type_of_an_id_is_used() -> None:
    sources = python_files("src")
    assert not judge_new_types(sources), "\n".join(judge_new_types(sources))
    assert any(_new_types(source.tree) for source in sources)


IDS = Source(f"{MODEL}ids.py", 'LeaderEpoch = NewType("LeaderEpoch", int)\nx = LeaderEpoch(1)')


@pytest.mark.parametrize(
    "others",
    [
        [],
        [Source(f"{CORE}storage/log.py", "from tidelog.core.model.ids import LeaderEpoch")],
        [Source("src/tidelog/client/x.py", "def f(at: LeaderEpoch): ...")],
        [Source(f"{CORE}storage/log.py", "# LeaderEpoch")],
    ],
)
def test_a_type_that_nobody_uses_is_noticed(others: list[Source]) -> None:
    assert len(judge_new_types([IDS, *others])) == 1


@pytest.mark.parametrize("text", ["def f(at: LeaderEpoch): ...", "x = ids.LeaderEpoch(3)"])
def test_a_type_that_core_uses_is_fine(text: str) -> None:
    assert judge_new_types([IDS, Source(f"{CORE}storage/log.py", text)]) == []
