"""Sentinels: a negative number of Kafka's protocol has one name, in core/wire/sentinels.py."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.reading import Source, python_files

HOME = "src/tidelog/core/wire/sentinels.py"
SPEAKERS = (
    "src/tidelog/core/wire",
    "src/tidelog/core/node/api",
    "src/tidelog/client/admin",
    "src/tidelog/client/consumer",
    "src/tidelog/client/producer",
    "src/tidelog/client/ranges",
)
"""Folders that put such numbers into messages and take them out."""


def judge_sentinels(source: Source) -> list[str]:
    """Names for negative numbers that this module gives itself."""
    if source.path == HOME:
        return []
    complaints = []
    for node in source.tree.body:
        match node:
            case ast.Assign(value=ast.UnaryOp(op=ast.USub(), operand=ast.Constant())):
                complaints.append(f"{source.path}:{node.lineno}: {ast.unparse(node)}")
            case ast.AnnAssign(value=ast.UnaryOp(op=ast.USub(), operand=ast.Constant())):
                complaints.append(f"{source.path}:{node.lineno}: {ast.unparse(node)}")
    return complaints


def test_a_number_that_means_something_is_named_once() -> None:
    sources = python_files(*SPEAKERS)
    assert len(sources) > 50
    complaints = [text for source in sources for text in judge_sentinels(source)]
    assert not complaints, "\n".join(complaints)


def test_no_name_stands_for_two_numbers() -> None:
    (home,) = (source for source in python_files("src") if source.path == HOME)
    names = [ast.unparse(node.target) for node in home.tree.body if isinstance(node, ast.AnnAssign)]
    assert len(names) == len(set(names)) > 10


@pytest.mark.parametrize("text", ["NOBODY = -1", "_UNKNOWN: int = -1", "EARLIEST = -2"])
def test_a_second_name_is_noticed(text: str) -> None:
    assert len(judge_sentinels(Source("src/tidelog/client/admin/x.py", text))) == 1
    assert judge_sentinels(Source(HOME, text)) == []


@pytest.mark.parametrize("text", ["LIMIT = 1", "def f(): x = -1", "A = B = 3"])
def test_other_numbers_are_fine(text: str) -> None:
    assert judge_sentinels(Source("src/tidelog/client/admin/x.py", text)) == []
