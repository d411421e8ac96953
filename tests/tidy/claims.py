"""Who claims to show which scenario: the markers of tests, and the stories in the lab's book.

Every module of `tidelog.lab.stories` is imported by the package, so every story there counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from tests.tidy.reading import Source, nodes, python_files, text_files

CLAIMING_NAME = re.compile(r"test_(?:(d\d)_([a-z]\d+[abc]?)|(x)_(\d+))(?:_|$)")
STORIES = "src/tidelog/lab/stories/"
GUIDE = "docs/guide-"
EXPLAINED = re.compile(r"\*\*(D\d-[A-Z]{1,2}\d+)\*\* ((?:(?!\*\*D|\n\n|\n- |\n\|).)*)", re.DOTALL)
"""A page of the guide explains a sentence of a document, and names what shows it."""
PLAYERS = ("tests/stories/test_lab.py", "tests/process/test_stories.py")
"""They give the stories' scenarios to pytest, and claim nothing by themselves."""


class Claim(NamedTuple):
    """One id that a test or story claims to show."""

    path: str
    line: int
    id: str
    where: str
    """The test's or the story's name."""
    text: str
    """What is shown, as a sentence."""


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim of the house."""
    tests = [
        source
        for source in python_files("tests")
        if not source.path.startswith("tests/tidy/") and source.path not in PLAYERS
    ]
    everything = [*tests, *_story_files(), *guide_pages()]
    return tuple(claim for source in everything for claim in claims_of(source))


def guide_pages() -> list[Source]:
    return [source for source in text_files() if source.path.startswith(GUIDE)]


def claims_of(source: Source) -> Iterator[Claim]:
    """The claims of one file; an id that is not a plain string is given as its source text."""
    if source.path.startswith(STORIES):
        yield from _stories(source)
        return
    if source.path.startswith(GUIDE):
        yield from _explanations(source)
        return
    functions = [
        node
        for node in nodes(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for call in _calls(source.tree):
        match call.func:
            case ast.Attribute(attr="scenario", value=ast.Attribute(attr="mark")):
                function = next((each for each in functions if _is_decorated(each, call)), None)
                for argument in call.args:
                    name = function.name if function else "the whole file"
                    text = _sentence(function) if function else ""
                    yield Claim(source.path, call.lineno, _plain(argument), name, text)
    for function in functions:
        if found := CLAIMING_NAME.match(function.name):
            scenario = "-".join(filter(None, found.groups())).upper()
            text = _sentence(function)
            yield Claim(source.path, function.lineno, scenario, function.name, text)


def _stories(source: Source) -> Iterator[Claim]:
    for function in source.tree.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(func=ast.Name(id="story"), args=arguments):
                    title = (ast.get_docstring(function) or "").split("\n\n")[0].replace("\n", " ")
                    words = _step_texts(source.tree)
                    for argument in arguments:
                        scenario = _plain(argument)
                        text = words.get(scenario, title)
                        yield Claim(source.path, decorator.lineno, scenario, function.name, text)


def _step_texts(tree: ast.Module) -> dict[str, str]:
    """id → the sentence of the first step that names it, of those that are plain text."""
    texts: dict[str, str] = {}
    for call in _calls(tree):
        match call:
            case ast.Call(
                func=ast.Attribute(attr="step"), args=[*ids, ast.Constant(value=str(text))]
            ):
                for argument in ids:
                    texts.setdefault(_plain(argument), text)
    return texts


def _explanations(source: Source) -> Iterator[Claim]:
    for match in EXPLAINED.finditer(source.text):
        line = source.text.count("\n", 0, match.start()) + 1
        sentence = " ".join(match[2].split()).partition(": [")[0].partition(" ([")[0].strip(" |")
        yield Claim(source.path, line, match[1], PurePosixPath(source.path).name, sentence)


def _story_files() -> list[Source]:
    return [source for source in python_files("src/tidelog/lab") if source.path.startswith(STORIES)]


def _calls(tree: ast.Module) -> list[ast.Call]:
    found = [node for node in nodes(tree) if isinstance(node, ast.Call)]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _plain(argument: ast.expr) -> str:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    return ast.unparse(argument)


def _is_decorated(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> bool:
    return any(call in ast.walk(decorator) for decorator in function.decorator_list)


def _sentence(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    docstring = (ast.get_docstring(function) or "").split("\n\n")[0].replace("\n", " ")
    return docstring or function.name.removeprefix("test_").replace("_", " ")
