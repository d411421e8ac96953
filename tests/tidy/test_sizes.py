"""Sizes: narrow lines, short functions, short files; a bigger one has a `Size:` sentence."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.plan import COLUMNS_MAX, FILE_LINES_MAX, FUNCTION_LINES_MAX
from tests.tidy.reading import Source, nodes, python_files

REASON = re.compile(r"^\s*(# )?Size: \S+( \S+){2,}")
"""At least three words: `# Size: one table, split it and the cases drift apart.`"""


def judge_sizes(source: Source) -> list[str]:
    """Everything that is too big and does not say why."""
    lines = source.lines
    complaints = [
        f"{source.path}:{number}: {len(line)} columns"
        for number, line in enumerate(lines, start=1)
        if len(line) > COLUMNS_MAX
    ]
    if len(lines) > FILE_LINES_MAX and not _says_why(lines, indented=False):
        complaints.append(f"{source.path}: {len(lines)} lines in one file")
    for node in nodes(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = lines[node.lineno - 1 : node.end_lineno]
            if len(body) > FUNCTION_LINES_MAX and not _says_why(body, indented=True):
                complaints.append(f"{source.path}:{node.lineno}: {node.name} has {len(body)} lines")
    return complaints


def _says_why(lines: list[str], *, indented: bool) -> bool:
    """A function's reason stands inside it, a file's at the left margin."""
    return any(REASON.match(line) and line.startswith(" ") == indented for line in lines)


def test_nothing_is_too_big_without_a_reason() -> None:
    complaints = [text for source in python_files() for text in judge_sizes(source)]
    assert not complaints, "\n".join(complaints)


def _function(lines: int, *, first: str = "    x = 1") -> str:
    return "\n".join(["def f():", first, *["    x = 1"] * (lines - 2)])


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("x = 1  # " + "y" * (COLUMNS_MAX - 9), 0),
        ("x = 1  # " + "y" * (COLUMNS_MAX - 8), 1),
        ("x = 1\n" * FILE_LINES_MAX, 0),
        ("x = 1\n" * (FILE_LINES_MAX + 1), 1),
        ("# Size: one long table.\n" + "x = 1\n" * FILE_LINES_MAX, 0),
        ("# Size: because\n" + "x = 1\n" * FILE_LINES_MAX, 1),
        (_function(FUNCTION_LINES_MAX), 0),
        (_function(FUNCTION_LINES_MAX + 1), 1),
        (_function(FUNCTION_LINES_MAX + 1, first="    # Size: one flat match."), 0),
        ("# Size: one flat match.\n" + _function(FUNCTION_LINES_MAX + 1), 1),
        ("class C:\n" + _function(51).replace("def", "  def").replace("    x", "      x"), 1),
    ],
)
def test_the_measures_are_exact(text: str, complaints: int) -> None:
    assert len(judge_sizes(Source("src/tidelog/core/x.py", text))) == complaints
