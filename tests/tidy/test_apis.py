"""APIs: an API is a schema, a handler and a test, three files found by one name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import pytest

from tests.tidy.reading import Source, python_files

HANDLER = re.compile(r"src/tidelog/core/node/api/(api_\d\d_\w+)\.py")
SCHEMA = "src/tidelog/core/wire/messages/{}.py"
TEST = "tests/unit/core/node/api/test_{}.py"
TEST_OF_API = re.compile(r"tests/unit/core/node/api/test_(api_\d\d_\w+)\.py")


def judge_apis(sources: Iterable[Source]) -> list[str]:
    """APIs without a schema or a test of their name, and tests of APIs that are not there."""
    by_path = {source.path: source for source in sources}
    names = {match[1] for path in by_path if (match := HANDLER.fullmatch(path))}
    complaints = [
        f"{SCHEMA.format(name)} is missing" for name in names if SCHEMA.format(name) not in by_path
    ]
    for name in names:
        test = by_path.get(TEST.format(name))
        if test is None:
            complaints.append(f"{TEST.format(name)} is missing")
        elif not _has_tests(test):
            complaints.append(f"{test.path} tests nothing")
    complaints += [
        f"{path} tests an API that is not there"
        for path in by_path
        if (match := TEST_OF_API.fullmatch(path)) and match[1] not in names
    ]
    return sorted(complaints)


def _has_tests(source: Source) -> bool:
    return any(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for node in source.tree.body
    )


def test_every_api_has_its_schema_and_its_test() -> None:
    assert judge_apis(python_files()) == []


JOIN = "api_11_join_group"
HANDLER_FILE = Source(f"src/tidelog/core/node/api/{JOIN}.py", "")
SCHEMA_FILE = Source(SCHEMA.format(JOIN), "")
TEST_FILE = Source(TEST.format(JOIN), "def test_it(): ...")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([HANDLER_FILE, SCHEMA_FILE], f"test_{JOIN}.py is missing"),
        ([HANDLER_FILE, TEST_FILE], f"messages/{JOIN}.py is missing"),
        ([HANDLER_FILE, SCHEMA_FILE, Source(TEST_FILE.path, "x = 1")], "tests nothing"),
        ([SCHEMA_FILE, TEST_FILE], "not there"),
    ],
)
def test_an_api_that_lacks_a_file_is_noticed(files: list[Source], reason: str) -> None:
    (complaint,) = judge_apis(files)
    assert reason in complaint


def test_an_api_in_three_files_is_fine() -> None:
    assert judge_apis([HANDLER_FILE, SCHEMA_FILE, TEST_FILE]) == []


def test_a_schema_for_clients_alone_needs_no_handler() -> None:
    assert judge_apis([SCHEMA_FILE]) == []
