"""The page for users about differences from Kafka, written from the table of explanations."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from tests.golden.explained import EXPLAINED
from tests.kafka.class_path import KAFKA_VERSION

FILE = Path(__file__).parents[2] / "docs" / "differences-from-kafka.md"

COLUMNS = 100

_HEAD = f"""\
# Where Tidelog answers otherwise than Apache Kafka

Tidelog is held against Apache Kafka {KAFKA_VERSION}: the same requests go to both, and the answers
are compared field by field, after ids, times and addresses were given names (`tests/golden`). The
wording of error messages is not compared. Whatever differs beyond this list is a bug.

This page is written by `./dev golden docs` from `tests/golden/explained.py`.
"""


def documentation() -> str:
    """The whole page."""
    sections = []
    for entry in EXPLAINED:
        cases = "Cases: " + ", ".join(f"`{pattern}`" for pattern in entry.cases)
        texts = [fill(text, COLUMNS, break_on_hyphens=False) for text in (entry.reason, cases)]
        sections.append("\n\n".join([f"## {entry.title}", *texts]) + "\n")
    return "\n".join([_HEAD, *sections])
