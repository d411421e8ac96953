"""Names: one full name per fence and epoch, no attic modules, and every module states its idea."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.tidy.plan import FORBIDDEN_IDENTIFIERS, FORBIDDEN_MODULE_NAMES, KAFKA_SPEAKING
from tests.tidy.reading import Source, nodes, python_files


def judge_identifiers(source: Source) -> list[str]:
    """Second names for offsets and epochs that this file *defines*.

    Reading `answer.epoch` of a wire message is fine: the name was defined where it is allowed.
    """
    return [
        f"{source.path}:{line}: {name}"
        for line, name in definitions(source.tree)
        if name.strip("_").lower() in FORBIDDEN_IDENTIFIERS
    ]


def definitions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name the file gives to something of its own."""
    for node in nodes(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def judge_module_name(source: Source) -> list[str]:
    """Names that say nothing about what is inside."""
    parts = PurePosixPath(source.path.removesuffix(".py")).parts
    return [f"{source.path}: {part}" for part in parts if part in FORBIDDEN_MODULE_NAMES]


def judge_docstring(source: Source) -> list[str]:
    """A module opens with its idea; the empty `__init__.py` of a test folder has none."""
    if source.path.startswith("tests/") and source.text.strip() == "":
        return []
    docstring = ast.get_docstring(source.tree) or ""
    first_sentence = docstring.split("\n\n")[0].strip()
    if len(first_sentence.split()) >= 3:
        return []
    return [f"{source.path}: the module's docstring does not state its idea"]


def test_every_fence_and_epoch_has_its_full_name() -> None:
    own = [source for source in python_files() if not source.path.startswith(KAFKA_SPEAKING)]
    complaints = [text for source in own for text in judge_identifiers(source)]
    assert not complaints, "\n".join(complaints)


def test_every_module_has_a_telling_name_and_states_its_idea() -> None:
    complaints = [
        text
        for source in python_files()
        for text in judge_module_name(source) + judge_docstring(source)
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    "text",
    [
        "lso = 3",
        "def f(epoch: int): ...",
        "def f(*, hw): ...",
        "class C:\n    last_offset: int",
        "class Epoch: ...",
        "self.leo = 3",
        "for max_offset in (): ...",
        "import x as hw",
        "def epoch(self): ...",
        "_epoch = 1",
        "if (leo := 1): ...",
        "[1 for epoch in ()]",
    ],
)
def test_a_second_name_is_noticed(text: str) -> None:
    assert len(judge_identifiers(Source("src/tidelog/core/x.py", text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "leader_epoch = answer.epoch",
        "EpochEndOffset(epoch=leader_epoch)",
        "log_end_offset = 1",
        "# the epoch of hw",
    ],
)
def test_full_names_and_words_of_wire_messages_are_fine(text: str) -> None:
    assert judge_identifiers(Source("src/tidelog/core/x.py", text)) == []


@pytest.mark.parametrize("path", ["src/tidelog/core/utils.py", "tests/helpers/x.py"])
def test_an_attic_is_noticed(path: str) -> None:
    assert len(judge_module_name(Source(path, ""))) == 1


@pytest.mark.parametrize("text", ["", "import x", '"""Code."""', "# Only a comment, no docstring."])
def test_a_module_without_an_idea_is_noticed(text: str) -> None:
    assert len(judge_docstring(Source("src/tidelog/core/x.py", text))) == 1
