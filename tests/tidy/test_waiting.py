"""Waiting: tests wait for a condition, never for time, so no test sleeps."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.reading import Source, nodes, python_files


def judge_sleep(source: Source) -> list[str]:
    """Every use or import of something called sleep."""
    complaints = []
    for node in nodes(source.tree):
        match node:
            case ast.Attribute(attr="sleep") | ast.Name(id="sleep") | ast.alias(name="sleep"):
                complaints.append(f"{source.path}:{node.lineno}: sleep")
    return complaints


def test_no_test_sleeps() -> None:
    complaints = [text for source in python_files("tests") for text in judge_sleep(source)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.sleep(1)",
        "from time import sleep",
        "async def f():\n    await asyncio.sleep(0)",
        "wait = time.sleep",
    ],
)
def test_a_sleep_is_noticed(text: str) -> None:
    assert judge_sleep(Source("tests/unit/x.py", text)) != []


def test_waiting_for_a_condition_is_fine() -> None:
    text = "sim.run_until(lambda s: s.leader_epoch == 1, within_ms=20_000)  # no sleep"
    assert judge_sleep(Source("tests/unit/x.py", text)) == []
