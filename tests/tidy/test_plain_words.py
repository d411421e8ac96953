"""Plain words: no dialect in names, modules are nouns, and no two public classes share a name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest

from tests.tidy.plan import DIALECT
from tests.tidy.reading import Source, nodes, python_files
from tests.tidy.test_names import definitions

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
SCHEMAS = "src/tidelog/core/wire/messages/"
"""Message classes repeat the names of Kafka's own schemas."""


def judge_words(source: Source) -> list[str]:
    """Names that this file defines with a word of the dialect, its own module name included.

    A test's name is a sentence and may use any word.
    """
    module = PurePosixPath(source.path).stem
    names = [(1, module), *definitions(source.tree)]
    return [
        f"{source.path}:{line}: {name}"
        for line, name in names
        if not name.startswith("test_") and DIALECT & {word.lower() for word in WORD.findall(name)}
    ]


def judge_gerund(source: Source) -> list[str]:
    """A module is a thing: `truncation`, not `truncating`."""
    module = PurePosixPath(source.path).stem
    is_gerund = module.endswith("ing") and "_" not in module and module not in ("string", "king")
    return [f"{source.path}: a bare gerund"] if is_gerund else []


def shared_class_names(sources: Iterable[Source]) -> list[str]:
    """Public classes of the package that have their name in common with another."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for source in sources:
        if source.path.startswith(SCHEMAS):
            continue
        for node in nodes(source.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(source.path)
    return [f"{name}: {', '.join(found)}" for name, found in homes.items() if len(found) > 1]


def test_names_are_plain_words() -> None:
    complaints = [text for source in python_files("src", "bench") for text in judge_words(source)]
    assert not complaints, "\n".join(complaints)


def test_modules_are_nouns() -> None:
    complaints = [text for source in python_files("src") for text in judge_gerund(source)]
    assert not complaints, "\n".join(complaints)


def test_no_two_public_classes_share_a_name() -> None:
    complaints = shared_class_names(python_files("src"))
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/tidelog/core/x.py", "told = 3"),
        ("src/tidelog/core/x.py", "class SinkWish: ..."),
        ("src/tidelog/core/x.py", "def f(asked_ms: int): ..."),
        ("src/tidelog/core/x.py", "self._place = 1"),
        ("src/tidelog/core/told_errors.py", ""),
    ],
)
def test_dialect_is_noticed(path: str, text: str) -> None:
    assert len(judge_words(Source(path, text))) == 1


@pytest.mark.parametrize("text", ["placement = 1", "reply = 2", "def test_told(): ...", "# told"])
def test_plain_names_are_fine(text: str) -> None:
    assert judge_words(Source("src/tidelog/core/x.py", text)) == []


def test_a_gerund_and_a_shared_name_are_noticed() -> None:
    assert judge_gerund(Source("src/tidelog/core/looking.py", ""))
    assert not judge_gerund(Source("src/tidelog/core/log_matching.py", ""))
    one, other = (Source(f"src/tidelog/{name}.py", "class Same: ...") for name in "ab")
    assert shared_class_names([one, other]) == ["Same: src/tidelog/a.py, src/tidelog/b.py"]
