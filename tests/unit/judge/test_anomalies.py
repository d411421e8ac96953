"""The catalogue: one name for each anomaly, evidence by fields, one text made of them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tidelog.judge.anomalies import CATALOGUE, LOST, READ_THEN_LOST

DOCS = Path(__file__).parents[3] / "docs" / "anomalies.md"


def test_the_text_is_made_of_the_fields_that_the_evidence_has() -> None:
    gone = READ_THEN_LOST.found(at_us=1, partition="p", payload="a", offset=7)
    replaced = READ_THEN_LOST.found(at_us=1, partition="p", payload="a", offset=7, replaced_by="b")

    assert gone.text == "a reader was given 'a' at offset 7, now nothing is there"
    assert replaced.text == "a reader was given 'a' at offset 7, now 'b' is there"


def test_evidence_with_other_fields_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="lost"):
        LOST.found(at_us=1, partition="p", payload="a")


def test_an_anomaly_travels_between_processes() -> None:
    found = READ_THEN_LOST.found(at_us=1, partition="p", payload="a", offset=7)

    assert pickle.loads(pickle.dumps(found)) == found


def test_the_docs_list_the_whole_catalogue_in_its_words() -> None:
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|")[:2])
        for line in DOCS.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| name")
    ]

    assert rows == [(kind.name, kind.meaning) for kind in CATALOGUE.values()]
