"""Exceptions: every one that Tidelog defines derives from `tidelog.errors.TidelogError`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

import pytest

import tidelog.errors
from tests.tidy.reading import Source, nodes, python_files

ROOT = "TidelogError"
BUILTIN = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)


def judge_exceptions(sources: Iterable[Source]) -> list[str]:
    """Exception classes that do not derive from the root, by the names of their bases."""
    classes = [
        (source.path, node.lineno, node.name, {ast.unparse(b).split(".")[-1] for b in node.bases})
        for source in sources
        for node in nodes(source.tree)
        if isinstance(node, ast.ClassDef)
    ]
    rooted = _closure(classes, {ROOT})
    exceptions = _closure(classes, {*BUILTIN, ROOT})
    return sorted(
        f"{path}:{line}: {name} is no {ROOT}"
        for path, line, name, bases in classes
        if bases & exceptions and not bases & rooted and name != ROOT
    )


def _closure(classes: list[tuple[str, int, str, set[str]]], known: set[str]) -> set[str]:
    """The known names, and those of all classes below them."""
    known = set(known)
    while grown := {name for _, _, name, bases in classes if bases & known} - known:
        known |= grown
    return known


def test_every_exception_derives_from_the_root() -> None:
    complaints = judge_exceptions(python_files("src"))
    assert not complaints, "\n".join(complaints)


def test_the_root_is_where_users_look_for_it() -> None:
    assert tidelog.errors.TidelogError.__name__ == ROOT
    assert tidelog.errors.TidelogError.__mro__[1] is Exception


@pytest.mark.parametrize(
    "text",
    [
        "class A(Exception): ...",
        "class A(ValueError): ...",
        "class A(Mixin, AssertionError): ...",
        "def f():\n    class A(Exception): ...",
        "class Exit(SystemExit): ...",
    ],
)
def test_an_exception_of_its_own_is_noticed(text: str) -> None:
    assert len(judge_exceptions([Source("src/tidelog/x.py", text)])) == 1


def test_one_that_derives_from_such_a_one_is_noticed_too() -> None:
    text = "class A(Exception): ...\nclass B(A): ..."
    assert len(judge_exceptions([Source("src/tidelog/x.py", text)])) == 2


@pytest.mark.parametrize(
    "text",
    [
        "class A(TidelogError): ...",
        "class A(errors.TidelogError, ValueError): ...",
        "class A(TidelogError): ...\nclass B(A): ...\nclass C(B, OSError): ...",
        "class TidelogError(Exception): ...",
        "class Table(dict): ...",
    ],
)
def test_the_family_of_the_root_is_fine(text: str) -> None:
    assert judge_exceptions([Source("src/tidelog/x.py", text)]) == []
